"""The dump container `*.dtlog` (README.md §2): raw records of one or more partitions in one file."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import BinaryIO, Iterable, Iterator

from .decode import Record

MAGIC = b"dualtrack-log 1\n"
_HEAD = Struct(">HQ")
_RECORD = Struct(">Qq")
_TRAILER = Struct(">QQ")
_I32 = Struct(">i")
_U16 = Struct(">H")


class Unreadable(Exception):
    """The input is not what it should be; nothing can be said about its content."""


class Section:
    """One partition of a dump. After its records are read, `end` and `problem` are set."""

    def __init__(self, partition: int, start: int, source: str) -> None:
        self.partition = partition
        self.start = start
        self.source = source
        self.end: int | None = None
        self.problem: str | None = None

    def records(self) -> Iterator[Record]:
        """Records in the order of the dump."""
        raise NotImplementedError


class DumpSection(Section):
    """A section of a `.dtlog` file held in memory."""

    def __init__(self, data: bytes, pos: int, source: str) -> None:
        if data[pos:pos + len(MAGIC)] != MAGIC:
            raise Unreadable(f"{source}: byte {pos}: not a dtlog section")
        pos += len(MAGIC)
        if pos + _HEAD.size > len(data):
            raise Unreadable(f"{source}: byte {pos}: header cut off")
        partition, start = _HEAD.unpack_from(data, pos)
        super().__init__(partition, start, source)
        self._data = data
        self.next_pos = pos + _HEAD.size

    def records(self) -> Iterator[Record]:
        """Records up to the trailer; a section that breaks off sets `problem`."""
        data, pos, count = self._data, self.next_pos, 0
        try:
            while pos < len(data):
                tag = data[pos]
                if tag == 0x52:
                    record, pos = _parse(data, pos + 1)
                    count += 1
                    yield record
                    continue
                if tag != 0x45:
                    raise Unreadable(f"{self.source}: byte {pos}: neither record nor trailer")
                self.end, stated = _TRAILER.unpack_from(data, pos + 1)
                pos += 1 + _TRAILER.size
                if stated != count:
                    self.problem = f"trailer states {stated} records, {count} are there"
                break
            else:
                self.problem = f"no trailer after {count} records: the tail is cut off"
        except (StructError, IndexError):
            self.problem = f"record {count} is cut off"
            pos = len(data)
        self.next_pos = pos


def _parse(data: bytes, pos: int) -> tuple[Record, int]:
    offset, broker_ms = _RECORD.unpack_from(data, pos)
    key, pos = _nullable(data, pos + _RECORD.size)
    (count,) = _U16.unpack_from(data, pos)
    pos += 2
    headers = []
    for _ in range(count):
        end = pos + 2 + _U16.unpack_from(data, pos)[0]
        name = data[pos + 2:end]
        content, pos = _nullable(data, end)
        headers.append((name, content))
    value, pos = _nullable(data, pos)
    return Record(offset, broker_ms, key, headers, value), pos


def _nullable(data: bytes, pos: int) -> tuple[bytes | None, int]:
    (length,) = _I32.unpack_from(data, pos)
    pos += 4
    if length < 0:
        return None, pos
    end = pos + length
    if end > len(data):
        raise IndexError("cut off")
    return data[pos:end], end


def read_sections(data: bytes, source: str) -> Iterator[DumpSection]:
    """Sections of one file; each must be read to its end before the next is asked for."""
    pos = 0
    while pos < len(data):
        section = DumpSection(data, pos, source)
        yield section
        pos = section.next_pos


def write_section(out: BinaryIO, partition: int, records: Iterable[Record], start: int = 0,
                  end: int | None = None) -> None:
    """Writes one section; `end` is one above the last record unless stated."""
    out.write(MAGIC + _HEAD.pack(partition, start))
    count, after = 0, start
    for record in records:
        parts = [b"R", _RECORD.pack(record.offset, record.broker_ms), _sized(record.key), _U16.pack(len(record.headers))]
        for name, content in record.headers:
            parts += [_U16.pack(len(name)), name, _sized(content)]
        parts.append(_sized(record.value))
        out.write(b"".join(parts))
        count, after = count + 1, record.offset + 1
    out.write(b"E" + _TRAILER.pack(after if end is None else end, count))


def _sized(content: bytes | None) -> bytes:
    return _I32.pack(-1) if content is None else _I32.pack(len(content)) + content
