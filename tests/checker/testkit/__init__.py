"""Helpers of the checker's tests: an encoder, writers of honest logs, and damages. Importing it finds the package."""

import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPO / "tests"))
