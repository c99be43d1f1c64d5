"""A test case that writes a short log and names the codes of its findings and hints."""

import unittest

from .author import Author
from .tales import check


class LogCase(unittest.TestCase):
    """Starts with a claimed partition; nothing the author writes is rejected."""

    def setUp(self):
        self.a = Author()
        self.a.claim()

    def found(self, *codes, **options):
        """Checks the log: exactly these findings; returns the codes of the hints."""
        result = check(self.a.records(), **options)
        self.assertEqual(sum(result.rejected.values()), 0, result.rejected)
        self.assertEqual(sorted(f.code for f in result.findings.kept if not f.hint), sorted(codes))
        return {f.code for f in result.findings.kept if f.hint}

    def running(self, **created):
        """A task whose handler was entered."""
        task = self.a.create(**created)
        self.a.assign(task)
        self.a.start(task)
        return task
