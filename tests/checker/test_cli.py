"""The container, the verdict file and the command line."""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import testkit
from checker.cli import main
from checker.container import MAGIC, read_sections, write_section
from checker.decode import Record
from testkit.author import Author
from testkit.tales import every_kind, witness_lines


class Container(unittest.TestCase):
    def test_sections_come_back_as_written(self):
        records = every_kind()[0].records() + [Record(999, -1, None, [(b"a", None), (b"a", b"")], None)]
        out = io.BytesIO()
        write_section(out, 7, records)
        write_section(out, 8, [], start=5)
        sections = read_sections(out.getvalue(), "x")
        first = next(sections)
        self.assertEqual((first.partition, first.start, list(first.records())), (7, 0, records))
        self.assertEqual((first.end, first.problem), (1000, None))
        second = next(sections)
        self.assertEqual((second.partition, second.start, list(second.records()), second.end), (8, 5, [], 5))
        self.assertIsNone(next(sections, None))

    def test_any_cut_is_a_problem(self):
        out = io.BytesIO()
        write_section(out, 7, every_kind()[0].records()[:3])
        data = out.getvalue()
        for length in range(len(MAGIC) + 10, len(data)):
            section = next(read_sections(data[:length], "x"))
            list(section.records())
            self.assertIsNotNone(section.problem, length)


class CommandLine(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.records = every_kind()[0].records()
        self.dump = self.write("good.dtlog", self.records)
        self.lines = witness_lines(self.records)

    def write(self, name, records, partition=7, **kwargs):
        path = self.directory / name
        with path.open("wb") as out:
            write_section(out, partition, records, **kwargs)
        return str(path)

    def verdicts(self, lines, name="verdicts"):
        path = self.directory / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return str(path)

    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(arguments))
        return code, out.getvalue(), err.getvalue()

    def test_content(self):
        code, out, _ = self.run_main(self.dump, "--compare", self.verdicts(self.lines), "--complete")
        self.assertEqual(code, 0, out)
        self.assertIn("partition 7", out)
        self.assertIn("1 partitions, 96 records, 0 findings, 2 hints", out)
        self.assertEqual(self.run_main(self.dump, "--strict")[0], 1)

    def test_json(self):
        code, out, _ = self.run_main(self.dump, "--output", "json")
        partition = json.loads(out)["partitions"][0]
        self.assertEqual((code, partition["records"], partition["rejected"], partition["quarantined"]),
                         (0, 96, {"stale_epoch": 1}, {"no_value": 1}))
        self.assertEqual(partition["closed"], {"CANCELLED": 1, "FAILED_PERMANENTLY": 3, "SUCCESS": 5})
        self.assertEqual(partition["accepted"], partition["applied"] + partition["control"])

    def test_verdict_lines(self):
        out = self.run_main(self.dump, "--verdicts")[1]
        self.assertIn("offset 6: complete t1 e=1 => SUCCESS\n", out)
        self.assertIn("offset 46: ? => quarantined(no_value)\n", out)
        self.assertIn("offset 51: complete t5 e=1 => rejected(stale_epoch)\n", out)

    def test_findings(self):
        self.lines[10]["verdict"] = "rejected:wrong_run"
        code, out, _ = self.run_main(self.dump, "--compare", self.verdicts(self.lines))
        self.assertEqual(code, 1)
        self.assertIn("offset 10: verdict_differs: judged accepted, the verdict file says rejected:wrong_run", out)

    def test_bounds_in_the_verdict_file(self):
        stated = self.lines + [{"partition": 7, "start_offset": 0, "end_offset": 99}]
        for line in stated:
            line["partition"] = 7
        self.assertIn("end_differs", self.run_main(self.dump, "--compare", self.verdicts(stated))[1])

    def test_a_cut_dump(self):
        cut = self.directory / "cut.dtlog"
        cut.write_bytes(Path(self.dump).read_bytes()[:-100])
        code, out, _ = self.run_main(str(cut))
        self.assertEqual(code, 1)
        self.assertIn("invariant 19 cut_off", out)
        self.assertIn("end_differs", self.run_main(self.write("end.dtlog", self.records, end=120))[1])

    def test_unreadable(self):
        other = self.directory / "other"
        other.write_bytes(b"not a dump")
        for arguments in ([str(other)], [str(self.directory / "absent")], [self.dump, self.dump],
                          [self.dump, "--compare", str(other)],
                          [self.dump, self.write("other.dtlog", [], partition=3), "--compare", self.verdicts(self.lines)],
                          [self.dump, "--compare", self.verdicts([{"offset": 1, "verdict": "perhaps"}], "p")],
                          [self.dump, "--compare", self.verdicts([{"offset": 1, "partition": 8, "verdict": "accepted"}], "q")]):
            code, _, err = self.run_main(*arguments)
            self.assertEqual((code, err[:12]), (2, "cannot read:"), arguments)

    def test_unknown_rules(self):
        author = Author()
        author.claim()
        author.control("RulesActivated", activated=2)
        self.assertEqual(self.run_main(self.write("rules.dtlog", author.records()))[0], 2)

    def test_limits_are_options(self):
        author = Author()
        author.claim()
        task = author.create(not_before=author.now + 3_000)
        author.assign(task)
        dump = self.write("early.dtlog", author.records())
        self.assertEqual(self.run_main(dump)[0], 1)
        self.assertEqual(self.run_main(dump, "--broker-tolerance-ms", "5000")[0], 0)

    def test_both_entry_points(self):
        tests = testkit.REPO / "tests"
        for command in ([sys.executable, "-m", "checker", self.dump], [sys.executable, str(tests / "checker" / "check.py"), self.dump]):
            done = subprocess.run(command, cwd=tests, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("0 findings", done.stdout)


if __name__ == "__main__":
    unittest.main()
