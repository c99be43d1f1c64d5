"""Identities (schemas/decoding.md §4) and record keys (§1)."""

from __future__ import annotations

import hashlib
from functools import lru_cache

NAMESPACE = bytes.fromhex("847e2ce69aae51fd9b308d6d73129225")
EPOCH_MS = 1_704_067_200_000
NO_ATTEMPT = bytes(16)
_I64_MAX = (1 << 63) - 1
_SHA1 = hashlib.sha1
_V5_SET = 0x5 << 76 | 0b10 << 62
_V5_KEEP = ~(0xF << 76 | 0b11 << 62) & (1 << 128) - 1


def partition_of(task_id: int) -> int:
    """Partition inside a TaskId."""
    return (task_id >> 12) & 0x3FF


@lru_cache(maxsize=4096)
def execution_id(task_id: int, exec_epoch: int) -> bytes:
    """UUIDv8 of the attempt `exec_epoch` of a task."""
    bits = (task_id >> 15) << 80
    bits |= 0x8 << 76
    bits |= ((task_id >> 3) & 0xFFF) << 64
    bits |= 0b10 << 62
    bits |= (task_id & 0b111) << 59
    bits |= exec_epoch << 27
    return bits.to_bytes(16, "big")


def name_uuid(name: str) -> bytes:
    """UUIDv5 of `name` in the namespace of the event track."""
    digest = int.from_bytes(_SHA1(NAMESPACE + name.encode("utf-8")).digest()[:16], "big")
    return (digest & _V5_KEEP | _V5_SET).to_bytes(16, "big")


def uuid_text(raw: bytes) -> str:
    """Lower-case UUID text with hyphens."""
    h = raw.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def canonical_decimal(text: bytes) -> int | None:
    """The number if `text` is canonical decimal, else None."""
    if not text or len(text) > 20 or not text.isdigit() or (text[0] == 0x30 and len(text) > 1):
        return None
    return int(text)


def read_key(key: bytes | None) -> tuple[str, int]:
    """('control', partition), ('task', id) or ('other', -1)."""
    if key is None:
        return "other", -1
    if key[:1] == b"#":
        number = canonical_decimal(key[1:])
        return ("control", number) if number is not None and number <= 65_535 else ("other", -1)
    number = canonical_decimal(key)
    return ("task", number) if number is not None and 1 <= number <= _I64_MAX else ("other", -1)
