"""The verdict file (README.md §3): what the production fold said at the time, and its state hashes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .container import Unreadable
from .crc32c import crc32c
from .decode import Event, Record
from .findings import Findings
from .ids import uuid_text

_VERDICT = re.compile(r"accepted|rejected:[a-z_]+|quarantined:[a-z0-9_]+")
_HASH = re.compile(r"[0-9a-f]{32}")


class Witness:
    """Statements about one partition by offset; each is used up when its record comes."""

    def __init__(self, partition: int | None) -> None:
        self.partition = partition
        self.lines: dict[int, dict[str, Any]] = {}
        self.start: int | None = None
        self.end: int | None = None
        self.has_verdicts = False

    def add(self, line: dict[str, Any], place: str) -> None:
        """Takes in one line of the file."""
        if "offset" not in line:
            self.start, self.end = line.get("start_offset", self.start), line.get("end_offset", self.end)
            return
        offset = line["offset"]
        if not isinstance(offset, int):
            raise Unreadable(f"{place}: offset {offset!r} is not a number")
        if "verdict" in line:
            self.has_verdicts = True
            if not isinstance(line["verdict"], str) or not _VERDICT.fullmatch(line["verdict"]):
                raise Unreadable(f"{place}: unknown verdict {line['verdict']!r}")
        if "state_hash" in line and not _HASH.fullmatch(str(line["state_hash"])):
            raise Unreadable(f"{place}: state_hash is not 32 hexadecimal digits")
        known = self.lines.setdefault(offset, line)
        if known is not line:
            if any(key in known and known[key] != value for key, value in line.items()):
                raise Unreadable(f"{place}: contradicts an earlier line about offset {offset}")
            known.update(line)

    def compare(self, findings: Findings, record: Record, event: Event | None, verdict: str, state_hash) -> None:
        """Compares one judged record; `state_hash` is asked only where the file states one."""
        line = self.lines.pop(record.offset, None)
        if line is None:
            if self.has_verdicts:
                findings.add(19, "not_witnessed", record.offset, "the verdict file doesn't know this record")
            return
        stated = line.get("verdict")
        if stated is not None and stated != verdict:
            findings.add(None, "verdict_differs", record.offset, f"judged {verdict}, the verdict file says {stated}")
        if "crc32c" in line:
            own = f"{crc32c(record.value or b''):08x}"
            if line["crc32c"] != own:
                findings.add(None, "value_differs", record.offset, f"crc32c of the value is {own}, was {line['crc32c']}")
        if "event_id" in line and event is not None and line["event_id"] != uuid_text(event["event_id"]):
            findings.add(None, "event_differs", record.offset, f"event is {uuid_text(event['event_id'])}, was {line['event_id']}")
        if "state_hash" in line:
            own = state_hash()
            if line["state_hash"] != own:
                findings.add(None, "state_hash", record.offset, f"state hash is {own}, the verdict file says {line['state_hash']}")

    def finish(self, findings: Findings, start: int, end: int, stopped: bool) -> None:
        """After the last record: what the file knows and the log doesn't have."""
        if self.start is not None and self.start != start:
            findings.add(19, "start_differs", start, f"the log starts at {start}, the verdict file says {self.start}")
        if self.end is not None and self.end != end and not stopped:
            findings.add(19, "end_differs", end, f"the log ends at {end}, the verdict file says {self.end}")
        for offset in () if stopped else sorted(self.lines):
            findings.add(19, "record_missing", offset, "the verdict file knows a record that the log doesn't have")


def read_witnesses(files: list[Path]) -> dict[int | None, Witness]:
    """Witnesses by partition; lines without `partition` stand under None."""
    witnesses: dict[int | None, Witness] = {}
    for file in files:
        try:
            with file.open(encoding="utf-8") as lines:
                for number, text in enumerate(lines, 1):
                    if not text.strip():
                        continue
                    place = f"{file}:{number}"
                    line = json.loads(text)
                    if not isinstance(line, dict):
                        raise Unreadable(f"{place}: not an object")
                    partition = line.pop("partition", None)
                    witnesses.setdefault(partition, Witness(partition)).add(line, place)
        except (OSError, ValueError) as error:
            raise Unreadable(f"{file}: {error}") from error
    return witnesses
