"""Writes directories as the embedded event log lays them out."""

from __future__ import annotations

from pathlib import Path
from struct import pack
from uuid import UUID

from checker.crc32c import crc32c
from checker.decode import Record

LOG_ID = UUID("e32272ba-7849-4679-b3a8-5a57d4c01f44")


def write_directory(root: Path, logs: dict[int, list[Record]], partitions: int = 8, per_segment: int = 40) -> list[Path]:
    """All partitions' records in turns, a mark after every tenth; returns the segment files."""
    (root / "segments").mkdir(parents=True)
    meta = f"dualtrack-event-log 1\nlog_id={LOG_ID}\npartitions={partitions}\nfirst_segment=1\ninitialised=true\n"
    (root / "log.meta").write_text(f"{meta}crc32c={crc32c(meta.encode()):08x}\n", encoding="utf-8")
    turns = sorted((record.offset, partition, record) for partition, records in logs.items() for record in records)
    bases, files, previous = [0] * partitions, [], 0
    for number, start in enumerate(range(0, len(turns), per_segment), 1):
        head = b"DTEVLOG1" + pack("<HHI16sQqQ", 1, partitions, 60 + 8 * partitions, LOG_ID.bytes, number, 0, previous)
        head += pack(f"<{partitions}Q", *bases)
        out = bytearray(head + pack("<I", crc32c(head)))
        for count, (_, partition, record) in enumerate(turns[start:start + per_segment], 1):
            _entry(out, number, partition, record)
            bases[partition] = record.offset + 1
            if count % 10 == 0:
                _mark(out, number)
        files.append(root / "segments" / f"{number:020}.seg")
        files[-1].write_bytes(out)
        previous = len(out)
    return files


def _entry(out: bytearray, number: int, partition: int, record: Record) -> None:
    body = bytearray(record.key or b"")
    for name, content in record.headers:
        body += pack("<HI", len(name), len(content or b"")) + name + (content or b"")
    body += record.value or b""
    flags = (record.key is not None) | (record.value is not None) << 1
    _frame(out, number, pack("<BBIHHQqII", 1, flags, len(body), partition, len(record.headers), record.offset, record.broker_ms,
                             len(record.key or b""), crc32c(bytes(body))), bytes(body))


def _mark(out: bytearray, number: int) -> None:
    _frame(out, number, pack("<BBIHHQqII", 2, 0, 0, 0, 0, 0, 0, 0, 0), b"")


def _frame(out: bytearray, number: int, fields: bytes, body: bytes) -> None:
    fields = b"\xd7\xe1" + fields
    crc = crc32c(LOG_ID.bytes + pack("<Q", number) + fields + pack("<Q", len(out)))
    out += fields + pack("<I", crc) + body + b"\x5a"
