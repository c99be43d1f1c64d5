"""Independent checker of Dualtrack's event track.

Reads the raw records of a partition, decodes, folds and audits them, and says what does not add up.
It shares no code with the product: everything here was written from the texts named in README.md.
It must never write to a log, a store or the network.
"""
