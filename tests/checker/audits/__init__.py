"""What accepted records must keep beyond the fold: one module per group of invariants.

Each check is a function `(audit, book, at, event)` run before the book takes the event in. None of them changes
anything but the findings and its own notes in the book.
"""
