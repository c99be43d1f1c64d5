"""CRC-32C (Castagnoli, reflected 82F63B78) in pure Python, two bytes per table look-up."""

from __future__ import annotations

import sys

POLYNOMIAL = 0x82F63B78


def _byte_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ POLYNOMIAL if crc & 1 else crc >> 1
        table.append(crc)
    return table


def _pair_table(table: list[int]) -> list[int]:
    """Effect of two input bytes at once: the low byte is consumed first."""
    pairs = []
    for pair in range(65536):
        crc = table[pair & 0xFF] ^ (pair >> 8)
        pairs.append(table[crc & 0xFF] ^ (crc >> 8))
    return pairs


_BYTES = _byte_table()
_PAIRS = _pair_table(_BYTES)
_LITTLE = sys.byteorder == "little"


def crc32c(data: bytes) -> int:
    """CRC-32C of `data` as an unsigned 32-bit number."""
    crc = 0xFFFFFFFF
    even = len(data) & ~1
    if _LITTLE and even:
        pairs = _PAIRS
        for word in memoryview(data)[:even].cast("H"):
            crc = pairs[(crc ^ word) & 0xFFFF] ^ (crc >> 16)
    else:
        even = 0
    for byte in data[even:]:
        crc = _BYTES[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF
