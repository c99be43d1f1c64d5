"""Decoding: the shared vectors, the golden fixtures and the identities of schemas/decoding.md."""

import json
import re
import unittest

import testkit
from checker import ids
from checker.crc32c import crc32c
from checker.decode import Decoder
from checker.jsonform import to_json
from testkit.encode import value_of

FIXTURES = testkit.REPO / "schemas" / "fixtures"
DECODER = Decoder()


def joined(parts):
    """Value of a vector from its parts."""
    if parts is None:
        return None
    return b"".join(
        bytes.fromhex(part) if isinstance(part, str) else bytes.fromhex(part["repeat"]) * part["times"] for part in parts
    )


def header_list(pairs):
    """Headers of a vector or fixture as the decoder takes them."""
    return [(name.encode(), None if value is None else bytes.fromhex(value)) for name, value in pairs]


class SharedVectors(unittest.TestCase):
    """fixtures/decoding-vectors.json."""

    @classmethod
    def setUpClass(cls):
        cls.vectors = json.loads((FIXTURES / "decoding-vectors.json").read_text(encoding="utf-8"))["vectors"]

    def test_every_vector_comes_out_as_stated(self):
        for vector in self.vectors:
            with self.subTest(vector["name"]):
                got = DECODER.decode(header_list(vector["headers"]), joined(vector["value"]))
                self.assertEqual(got if isinstance(got, str) else "ok", vector["expect"])
                if isinstance(got, dict):
                    self.assertEqual(value_of(got), joined(vector["value"]), "not the only encoding")
                if "event" in vector:
                    self.assertEqual(to_json(DECODER.schema, got), vector["event"])

    def test_every_reason_of_the_text_has_a_vector(self):
        text = (testkit.REPO / "schemas" / "decoding.md").read_text(encoding="utf-8")
        reasons = set(re.findall(r"^\| \d \| `(\w+)` \|", text, re.M))
        faults = re.findall(r"`(\w+)`", re.search(r"^Faults: (.*)$", text, re.M).group(1))
        reasons |= {f"datum_{fault}" for fault in faults}
        self.assertEqual(len(reasons), 18)
        self.assertEqual(reasons, {vector["expect"] for vector in self.vectors} - {"ok"})


class GoldenFixtures(unittest.TestCase):
    """fixtures/v1, once it is there."""

    def test_golden_records_decode_to_their_json(self):
        files = sorted((FIXTURES / "v1").glob("*.json"))
        if not files:
            self.skipTest("no golden fixtures yet")
        for file in files:
            with self.subTest(file.name):
                stated = json.loads(file.read_text(encoding="utf-8"))
                value = file.with_suffix(".bin").read_bytes()
                got = DECODER.decode([(name.encode(), text.encode()) for name, text in stated["headers"]], value)
                self.assertIsInstance(got, dict, got)
                self.assertEqual(to_json(DECODER.schema, got), stated["event"])
                self.assertEqual(value_of(got), value)
                task_id = got["task_id"]
                self.assertEqual(ids.read_key(stated["key"].encode())[0], "control" if task_id is None else "task")


class Identities(unittest.TestCase):
    """The examples of the text."""

    def test_crc(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(crc32c(bytes(32)), 0x8A9136AA)
        self.assertEqual(crc32c(b"\xff" * 32), 0x62A8AB43)
        self.assertEqual(crc32c(bytes(range(32))), 0x46DD794E)
        self.assertEqual(crc32c(b""), 0)

    def test_execution_id(self):
        self.assertEqual(ids.uuid_text(ids.execution_id(42, 3)), "00000000-0000-8005-9000-000018000000")

    def test_event_ids(self):
        for name, text in (
            ("owner|7|3|0|c-1|99|1", "5fd05fea-4f07-5f91-a668-be0cd18188c0"),
            ("verdict|42|5|TaskRetryApproved|e-1|0", "c2bce8a5-5926-53f2-bbf1-6f8979d85165"),
            ("seal|7|65536|a-1", "64d605ab-8ade-54f2-bd4c-40dffcfa9aa4"),
        ):
            self.assertEqual(ids.uuid_text(ids.name_uuid(name)), text)

    def test_keys(self):
        for key, read in (
            (b"#7", ("control", 7)), (b"#07", ("other", -1)), (b"#65536", ("other", -1)), (b"#", ("other", -1)),
            (b"42", ("task", 42)), (b"0", ("other", -1)), (b"042", ("other", -1)), (b"+42", ("other", -1)),
            (b"9223372036854775807", ("task", 2**63 - 1)), (b"9223372036854775808", ("other", -1)),
            (None, ("other", -1)), (b"", ("other", -1)), ("٤".encode(), ("other", -1)),
        ):
            self.assertEqual(ids.read_key(key), read, key)


if __name__ == "__main__":
    unittest.main()
