#!/usr/bin/env python3
"""Entry point of `python3 tests/checker/check.py`, for callers that stand anywhere."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from checker.cli import main  # noqa: E402  (the path above must come first)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
