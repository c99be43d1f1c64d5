"""Reads the directory of an embedded event log: `log.meta` and `segments/N.seg` (index files are derived, not read).

The log may be in use; what its writer appends meanwhile is not seen. Nothing is locked, repaired or written.
"""

from __future__ import annotations

import mmap
from array import array
from pathlib import Path
from typing import Iterator

from .container import Section, Unreadable
from .decode import Record
from .embedded_frames import MARK, Segment, parse_body, parse_entry, parse_meta, parse_segment


class EmbeddedSection(Section):
    """One partition of a directory: places of its entries in the segments."""

    def __init__(self, partition: int, start: int, source: str) -> None:
        super().__init__(partition, start, source)
        self.places: list[tuple[bytes, Segment, array[int]]] = []

    def records(self) -> Iterator[Record]:
        """Records in the order of the log; stops at a body that doesn't fit."""
        for data, segment, places in self.places:
            for pos in places:
                entry = parse_entry(data, pos, segment)
                record = parse_body(data, pos, entry) if entry is not None else None
                if record is None:
                    self.problem = f"segment {segment.number} byte {pos}: the record doesn't match its checksum"
                    return
                yield record


def read_directory(directory: Path) -> list[EmbeddedSection]:
    """All partitions that hold anything. Damage of the chain is a problem of each partition it can concern."""
    meta_file = directory / "log.meta"
    try:
        meta = parse_meta(meta_file.read_text(encoding="utf-8"), str(meta_file))
        files = {int(file.stem): file for file in (directory / "segments").glob("*.seg")}
    except (OSError, ValueError) as error:
        raise Unreadable(f"{directory}: {error}") from error
    numbers = sorted(number for number in files if number >= meta.first_segment)
    sections: list[EmbeddedSection] = []
    expected: list[int] = []
    previous_length, problem = 0, None
    for index, number in enumerate(numbers):
        newest = index == len(numbers) - 1
        data = _map(files[number])
        segment = parse_segment(data, meta.partitions)
        if isinstance(segment, str):
            problem = None if newest and "cut off" in segment else f"segment {number}: {segment}"
            break
        if not sections:
            sections = [EmbeddedSection(p, base, str(directory)) for p, base in enumerate(segment.bases)]
            expected = list(segment.bases)
            previous_length = segment.previous_length
        problem = _misfit(segment, number, meta.first_segment + index, meta.log_id, previous_length, expected)
        if problem is None:
            end = _scan(data, segment, sections, expected)
            previous_length = end
            if end != len(data):
                problem = None if newest and _torn(data, end, segment) else f"segment {number} byte {end}: no whole entry"
        if problem is not None:
            break
    for section in sections:
        section.problem = problem
    if not sections and problem is not None:
        raise Unreadable(f"{directory}: {problem}")
    return [section for section in sections if section.places or section.start or section.problem]


def _map(file: Path) -> bytes:
    try:
        with file.open("rb") as handle:
            size = handle.seek(0, 2)
            return mmap.mmap(handle.fileno(), size, access=mmap.ACCESS_READ) if size else b""
    except OSError as error:
        raise Unreadable(f"{file}: {error}") from error


def _misfit(segment: Segment, number: int, wanted: int, log_id: bytes, previous_length: int, expected: list[int]) -> str | None:
    """Why a segment doesn't continue the chain."""
    if number != wanted or segment.number != number:
        return f"segment {wanted} is missing"
    if segment.log_id != log_id:
        return f"segment {number} belongs to another log"
    if segment.previous_length != previous_length:
        return f"segment {number}: the one before it has {previous_length} bytes, not {segment.previous_length}"
    if list(segment.bases) != expected:
        return f"segment {number}: its first offsets don't continue the one before it"
    return None


def _scan(data: bytes, segment: Segment, sections: list[EmbeddedSection], expected: list[int]) -> int:
    """Notes the places of all records; returns the first byte behind the last whole entry."""
    places = [array("Q") for _ in sections]
    pos = segment.length
    while pos < len(data):
        entry = parse_entry(data, pos, segment)
        if entry is None or entry.partition >= len(sections):
            break
        if entry.kind != MARK:
            places[entry.partition].append(pos)
            expected[entry.partition] = entry.offset + 1
        pos += entry.length
    for section, own in zip(sections, places):
        if own:
            section.places.append((data, segment, own))
    return pos


def _torn(data: bytes, end: int, segment: Segment) -> bool:
    """Whether the bytes from `end` on are a batch that a crash cut off: no mark comes after them."""
    pos = data.find(b"\xd7\xe1", end)
    while pos >= 0:
        entry = parse_entry(data, pos, segment)
        if entry is not None and entry.kind == MARK:
            return False
        pos = data.find(b"\xd7\xe1", pos + 1)
    return True
