"""From the raw parts of a record to an event, or to the one reason why not (schemas/decoding.md §2)."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from .avro import Compiler, Fault, read_datum
from .crc32c import crc32c

SCHEMA_FILE = Path(__file__).resolve().parents[2] / "schemas" / "task-execution-event.avsc"
MAX_VALUE_BYTES = 2_097_152
_CRC_TEXT = re.compile(rb"[0-9a-f]{8}")

Event = dict[str, Any]


class Record(NamedTuple):
    """One record as it stands in the log."""

    offset: int
    broker_ms: int
    key: bytes | None
    headers: list[tuple[bytes, bytes | None]]
    value: bytes | None


class Decoder:
    """Decodes by the schema ids active at present; `schema_ids` grows with later versions."""

    def __init__(self, schema_file: Path = SCHEMA_FILE) -> None:
        self.schema = json.loads(schema_file.read_text(encoding="utf-8"))
        self.schema_ids = {1: Compiler().reader(self.schema)}

    def decode(self, headers: list[tuple[bytes, bytes | None]], value: bytes | None) -> Event | str:
        """The event (its `body` without the union), or the reason why the record is malformed."""
        if not value:
            return "no_value"
        if len(value) > MAX_VALUE_BYTES:
            return "too_large"
        found = dict(headers)
        if len(found) != len(headers):
            found = _without_repeated(headers)
        crc = found.get(b"crc32c")
        if crc != b"%08x" % crc32c(value):
            return "crc_mismatch" if crc and _CRC_TEXT.fullmatch(crc) else "crc_missing"
        if len(value) < 5 or value[0] != 0:
            return "framing"
        reader = self.schema_ids.get(int.from_bytes(value[1:5], "big"))
        if reader is None:
            return "unknown_schema"
        try:
            event = read_datum(reader, value, 5)
        except Fault as fault:
            return f"datum_{fault.args[0]}"
        branch, body = event["body"]
        if branch != event["kind"]:
            return "kind_mismatch"
        event["body"] = body
        if found.get(b"kind") != branch.encode() or found.get(b"rule-version") != b"%d" % event["rule_version"]:
            return "header_mismatch"
        return event


def _without_repeated(headers: list[tuple[bytes, bytes | None]]) -> dict[bytes, bytes | None]:
    """Headers that occur exactly once: a repeated one is as good as absent (§1)."""
    names = Counter(name for name, _ in headers)
    return {name: content for name, content in headers if names[name] == 1}
