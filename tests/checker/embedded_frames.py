"""Bytes of the embedded event log: metadata, segment headers, entries. All numbers little-endian."""

from __future__ import annotations

import re
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from .container import Unreadable
from .crc32c import crc32c
from .decode import Record

SEGMENT_MAGIC = b"DTEVLOG1"
ENTRY_MAGIC = b"\xd7\xe1"
TRAILER = 0x5A
RECORD, MARK = 1, 2
_FIXED = Struct("<8sHHI16sQqQ")
_ENTRY = Struct("<2sBBIHHQqIII")
_HEADER = Struct("<HI")
_META = re.compile(r"dualtrack-event-log 1\nlog_id=([0-9a-f-]{36})\npartitions=(\d+)\nfirst_segment=(\d+)\ninitialised=(true|false)\n")


class Meta(NamedTuple):
    """The file `log.meta`."""

    log_id: bytes
    partitions: int
    first_segment: int


class Segment(NamedTuple):
    """Header of a segment file."""

    log_id: bytes
    number: int
    previous_length: int
    bases: tuple[int, ...]
    length: int


class Entry(NamedTuple):
    """Header of an entry; the body follows it, then the trailer."""

    kind: int
    flags: int
    body_length: int
    partition: int
    headers: int
    offset: int
    broker_ms: int
    key_length: int
    body_crc: int

    @property
    def length(self) -> int:
        """Bytes of the whole entry."""
        return _ENTRY.size + self.body_length + 1


def parse_meta(text: str, source: str) -> Meta:
    """`log.meta`, its checksum compared."""
    body, mark, crc = text.rpartition("crc32c=")
    match = _META.fullmatch(body)
    if not mark or not match or crc != f"{crc32c(body.encode()):08x}\n":
        raise Unreadable(f"{source}: damaged, or not the metadata of an event log")
    return Meta(UUID(match[1]).bytes, int(match[2]), int(match[3]))


def parse_segment(data: bytes, partitions: int) -> Segment | str:
    """Header of a segment, or what is wrong with it."""
    length = _FIXED.size + partitions * 8 + 4
    if len(data) < length:
        return "the header is cut off"
    if crc32c(data[:length - 4]) != int.from_bytes(data[length - 4:length], "little"):
        return "the header doesn't match its checksum"
    magic, version, stated, stated_length, log_id, number, _, previous = _FIXED.unpack_from(data, 0)
    if (magic, version, stated, stated_length) != (SEGMENT_MAGIC, 1, partitions, length):
        return f"not a segment of format 1 with {partitions} partitions"
    bases = Struct(f"<{partitions}Q").unpack_from(data, _FIXED.size)
    return Segment(log_id, number, previous, bases, length)


def parse_entry(data: bytes, pos: int, segment: Segment) -> Entry | None:
    """The entry at `pos`, if one was written at exactly this place of this segment and is all there."""
    if data[pos:pos + 2] != ENTRY_MAGIC or pos + _ENTRY.size > len(data):
        return None
    fields = _ENTRY.unpack_from(data, pos)
    if entry_crc(data[pos:pos + _ENTRY.size - 4], pos, segment.log_id, segment.number) != fields[10]:
        return None
    entry = Entry(*fields[1:10])
    end = pos + entry.length
    if entry.kind not in (RECORD, MARK) or entry.flags > 3 or end > len(data) or data[end - 1] != TRAILER:
        return None
    return entry


def entry_crc(fields: bytes, pos: int, log_id: bytes, number: int) -> int:
    """Checksum of an entry's header: over log id, number of the segment, the fields, and its own place."""
    return crc32c(log_id + number.to_bytes(8, "little") + fields + pos.to_bytes(8, "little"))


def parse_body(data: bytes, pos: int, entry: Entry) -> Record | None:
    """The record of an entry, if its body fits."""
    body = data[pos + _ENTRY.size:pos + entry.length - 1]
    if crc32c(body) != entry.body_crc or entry.key_length > len(body):
        return None
    at, headers = entry.key_length, []
    for _ in range(entry.headers):
        if at + _HEADER.size > len(body):
            return None
        name_length, value_length = _HEADER.unpack_from(body, at)
        at += _HEADER.size
        end = at + name_length + value_length
        if end > len(body):
            return None
        headers.append((body[at:at + name_length], body[at + name_length:end]))
        at = end
    key = body[:entry.key_length] if entry.flags & 1 else None
    return Record(entry.offset, entry.broker_ms, key, headers, body[at:] if entry.flags & 2 else None)
