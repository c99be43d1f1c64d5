"""Damaged logs: whatever is done to a good log, an auditor with raw log and verdict file must see it."""

import copy
import unittest
from random import Random

import testkit
from checker.container import read_sections
from testkit import damages_of_content, damages_of_place  # noqa: F401  (they register their damages)
from testkit.damages import DAMAGES
from testkit.rough import ROUGH
from testkit.tales import Memory, DECODER, check, every_kind, witness_lines, witness_of
from checker.partition import check_section
from checker.verdicts import read_witnesses

LOGS = testkit.REPO / "tests" / "checker" / "logs"


class GoodLog(unittest.TestCase):
    def test_a_good_log_has_no_findings(self):
        author, _ = every_kind()
        records = author.records()
        result = check(records, witness_of(witness_lines(records)), complete=True)
        self.assertEqual(result.findings.hard, 0, [f.as_text() for f in result.findings.kept])
        self.assertEqual({f.code for f in result.findings.kept}, {"quarantined", "result_conflict"})

    def test_another_writers_record_between_an_annotation_and_its_event_is_nobodys_fault(self):
        author, _ = every_kind()
        kinds = [entry.event["kind"] if entry.event else None for entry in author.entries]
        place = kinds.index("TaskFailureAnalysis") + 1
        late = copy.deepcopy(author.entries[kinds.index("TaskRetryApproved")])
        author.entries.insert(place, late)
        found = check(author.records()).findings
        self.assertNotIn("annotation_apart", {finding.code for finding in found.kept})


class Damages(unittest.TestCase):
    def test_there_are_enough_of_them(self):
        self.assertGreaterEqual(len(DAMAGES), 50)

    def test_every_damage_is_found(self):
        good = every_kind()[0].records()
        lines = witness_lines(good)
        for name, (code, damage) in DAMAGES.items():
            with self.subTest(name):
                damaged = damage(*every_kind())
                self.assertNotEqual(damaged, good)
                found = check(damaged, witness_of(lines)).findings
                self.assertGreater(found.hard, 0)
                self.assertIn(code, {finding.code for finding in found.kept if not finding.hint})

    def test_what_breaks_an_invariant_needs_no_witness(self):
        of_the_witness = {"verdict_differs", "record_missing", "not_witnessed", "state_hash"}
        for name, (code, damage) in DAMAGES.items():
            if code not in of_the_witness:
                with self.subTest(name):
                    found = check(damage(*every_kind())).findings
                    self.assertIn(code, {finding.code for finding in found.kept if not finding.hint})

    def test_a_changed_field_nobody_judges_is_found_by_the_checksum_in_the_verdict_file(self):
        author, tasks = every_kind()
        lines = witness_lines(author.records())
        offset = next(o for o, e in enumerate(author.entries) if e.event and e.event["kind"] == "TaskStarted")
        line = next(line for line in lines if line["offset"] == offset)
        line["crc32c"] = dict(author.records()[offset].headers)[b"crc32c"].decode()
        self.assertEqual(check(author.records(), witness_of(lines)).findings.hard, 0)
        author.entries[offset].event["body"]["memory_usage_percent"] = 11
        found = check(author.records(), witness_of(lines)).findings
        self.assertEqual([finding.code for finding in found.kept if not finding.hint], ["value_differs"])

    def test_no_forgery_upsets_the_checker(self):
        """Random overwritten fields with a good checksum: any outcome is fine but an exception."""
        for seed in range(60):
            random, (author, _) = Random(seed), every_kind()
            for _ in range(5):
                entry = random.choice([entry for entry in author.entries if entry.event])
                entry.event = copy.deepcopy(entry.event)
                if random.random() < 0.2:
                    entry.event["kind"], entry.event["body"] = random.choice(
                        [(e.event["kind"], copy.deepcopy(e.event["body"])) for e in author.entries if e.event])
                _overwrite(random.choice((entry.event, entry.event["body"])), random)
                entry.broker_ms = random.choice((entry.broker_ms, 0, -(1 << 63), (1 << 63) - 1))
            check(author.records(), complete=True)

    def test_rough_damages_of_a_good_log(self):
        _rough(self, every_kind()[0].records(), None)


class LogsOfOthers(unittest.TestCase):
    """Logs under `logs/`: `NAME.dtlog` with `NAME.verdicts.jsonl`."""

    def test_they_are_good_and_their_damages_are_found(self):
        files = sorted(LOGS.glob("*.dtlog")) if LOGS.is_dir() else []
        if not files:
            self.skipTest("no logs of others yet")
        for file in files:
            for section in read_sections(file.read_bytes(), str(file)):
                records = list(section.records())
                stated = _witness(file, section.partition)
                with self.subTest(file.name, partition=section.partition):
                    self.assertIsNone(section.problem)
                    found = check_section(Memory(records, section.partition), DECODER, stated).findings
                    self.assertEqual(found.hard, 0, [f.as_text() for f in found.kept if not f.hint][:5])
                    if 20 < len(records) <= 5_000:
                        _rough(self, records, file, section.partition)


def _overwrite(fields, random):
    """One field, at any depth, by another value of its type."""
    name = random.choice([name for name in fields if name != "kind"] or [""])
    value = fields.get(name)
    if isinstance(value, dict) and value and name != "labels":
        _overwrite(value, random)
    elif isinstance(value, bool):
        fields[name] = not value
    elif isinstance(value, int):
        fields[name] = random.choice((0, 1, value + 1, max(value - 1, 0)))
    elif isinstance(value, bytes) and name != "history":
        fields[name] = bytes(len(value))
    elif isinstance(value, list):
        fields[name] = value * random.randrange(3)


def _witness(file, partition):
    stated = file.with_name(file.name.removesuffix(".dtlog") + ".verdicts.jsonl")
    if not stated.exists():
        return None
    witnesses = read_witnesses([stated])
    return witnesses.get(partition) or witnesses.get(None)


def _rough(test, records, file, partition=7):
    """Every rough damage, with the stated verdicts or those of an undamaged pass."""
    lines = None if file and _witness(file, partition) else witness_lines(records, every=1)
    for seed, rough in enumerate(ROUGH * 3):
        with test.subTest(rough.__name__, seed=seed):
            witness = witness_of(lines) if lines is not None else _witness(file, partition)
            damaged = rough(records, Random(seed))
            test.assertGreater(check_section(Memory(damaged, partition), DECODER, witness).findings.hard, 0)


if __name__ == "__main__":
    unittest.main()
