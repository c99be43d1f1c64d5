"""Entry point of `python3 -m checker` (run from `tests/`)."""

import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
