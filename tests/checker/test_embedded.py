"""Directories of the embedded event log, whole and damaged."""

import tempfile
import unittest
from pathlib import Path

import testkit  # noqa: F401  (makes the package importable)
from checker.container import Unreadable
from checker.embedded import read_directory
from testkit.author import Author
from testkit.directory import write_directory
from testkit.tales import DECODER, every_kind
from checker.partition import check_section


class Directories(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name) / "log"
        other = Author(3)
        other.claim()
        for _ in range(30):
            other.complete(self.assigned(other))
        self.logs = {7: every_kind()[0].records(), 3: other.records()}
        self.files = write_directory(self.root, self.logs)

    @staticmethod
    def assigned(author):
        task = author.create()
        author.assign(task)
        return task

    def problems(self):
        found = []
        for section in read_directory(self.root):
            list(section.records())
            found.append(section.problem)
        return found

    def overwrite(self, index, position, content):
        data = bytearray(self.files[index].read_bytes())
        data[position:position + len(content)] = content
        self.files[index].write_bytes(data)

    def test_partitions_come_back_record_by_record(self):
        self.assertGreater(len(self.files), 3)
        sections = {section.partition: section for section in read_directory(self.root)}
        self.assertEqual(set(sections), {3, 7})
        for partition, records in self.logs.items():
            self.assertEqual(list(sections[partition].records()), records)
            self.assertIsNone(sections[partition].problem)
            result = check_section(sections[partition], DECODER)
            self.assertEqual(result.findings.hard, 0)

    def test_torn_tails_are_not_damage(self):
        last = self.files[-1].read_bytes()
        for cut in range(1, 60):
            self.files[-1].write_bytes(last[:-cut])
            self.assertEqual(self.problems(), [None, None], cut)

    def test_a_segment_whose_creation_was_cut_off_is_empty(self):
        self.files[-1].with_name(f"{len(self.files) + 1:020}.seg").write_bytes(b"DTEVLOG1")
        self.assertEqual(self.problems(), [None, None])

    def test_flips_are_found(self):
        length = len(self.files[1].read_bytes())
        for position in range(8, length - 200, 97):
            before = self.files[1].read_bytes()
            self.overwrite(1, position, bytes([before[position] ^ 0x10]))
            self.assertTrue(any(self.problems()), position)
            self.files[1].write_bytes(before)

    def test_a_flip_before_a_mark_of_the_newest_segment_is_damage(self):
        self.overwrite(-1, 140, b"\xff\xff\xff\xff")
        self.assertTrue(any(self.problems()))

    def test_missing_and_foreign_segments(self):
        kept = self.files[1].read_bytes()
        self.files[1].unlink()
        self.assertIn("segment 2 is missing", self.problems()[0])
        self.files[1].write_bytes(self.files[2].read_bytes())
        self.assertIn("segment 2 is missing", self.problems()[0])
        self.files[1].write_bytes(kept[:-1])
        self.assertTrue(any(self.problems()))

    def test_metadata(self):
        meta = self.root / "log.meta"
        meta.write_text(meta.read_text(encoding="utf-8").replace("partitions=8", "partitions=9"), encoding="utf-8")
        self.assertRaises(Unreadable, read_directory, self.root)
        meta.unlink()
        self.assertRaises(Unreadable, read_directory, self.root)


if __name__ == "__main__":
    unittest.main()
