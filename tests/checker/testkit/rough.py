"""Damages that fit any log, for logs that others wrote: each takes records and a random source."""

from __future__ import annotations

from random import Random
from typing import Callable

from checker.decode import Record

Rough = Callable[[list[Record], Random], list[Record]]


def _place(records: list[Record], random: Random) -> int:
    return random.randrange(1, len(records) - 1)


def flip(records: list[Record], random: Random) -> list[Record]:
    """One bit of one value."""
    at = random.choice([i for i, record in enumerate(records) if record.value])
    value = bytearray(records[at].value or b"")
    value[random.randrange(len(value))] ^= 1 << random.randrange(8)
    return records[:at] + [records[at]._replace(value=bytes(value))] + records[at + 1:]


def gap(records: list[Record], random: Random) -> list[Record]:
    """One record gone, its offset left open."""
    at = _place(records, random)
    return records[:at] + records[at + 1:]


def renumbered(records: list[Record], random: Random) -> list[Record]:
    """One record gone, the offsets closed up."""
    return _numbered(gap(records, random))


def repeated(records: list[Record], random: Random) -> list[Record]:
    """One record twice, the offsets moved on."""
    at = _place(records, random)
    return _numbered(records[:at] + [records[at]] + records[at:])


def swapped(records: list[Record], random: Random) -> list[Record]:
    """Two neighbours that both counted change places."""
    at = random.choice([i for i in range(len(records) - 1) if records[i].value and records[i].key == records[i + 1].key])
    return _numbered(records[:at] + [records[at + 1], records[at]] + records[at + 2:])


def cut(records: list[Record], _random: Random) -> list[Record]:
    """The tail gone."""
    return records[:-1]


def rekeyed(records: list[Record], random: Random) -> list[Record]:
    """A record under another key."""
    at = random.choice([i for i, record in enumerate(records) if record.value and (record.key or b"#")[:1] != b"#"])
    return records[:at] + [records[at]._replace(key=(records[at].key or b"") + b"1")] + records[at + 1:]


ROUGH: tuple[Rough, ...] = (flip, gap, renumbered, repeated, swapped, cut, rekeyed)


def _numbered(records: list[Record]) -> list[Record]:
    return [record._replace(offset=offset) for offset, record in enumerate(records)]
