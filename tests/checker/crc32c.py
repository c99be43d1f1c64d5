"""CRC-32C (Castagnoli, reflected 82F63B78) in pure Python: four bytes by two look-ups.

The tables are arrays, not lists: half a megabyte instead of five stays in the processor's cache.
"""

from __future__ import annotations

import sys
from array import array

POLYNOMIAL = 0x82F63B78


def _byte_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ POLYNOMIAL if crc & 1 else crc >> 1
        table.append(crc)
    return table


_BYTES = _byte_table()


def _advance(crc: int) -> int:
    """The effect of two bytes of zeros."""
    for _ in range(2):
        crc = _BYTES[crc & 0xFF] ^ (crc >> 8)
    return crc


# effect of the last two bytes of a group of four, and of the first two, which two others follow
_LAST = array("I", (_advance(pair) for pair in range(65536)))
_FIRST = array("I", (_advance(crc) for crc in _LAST))
_FITS = sys.byteorder == "little" and _LAST.itemsize == 4


def crc32c(data: bytes) -> int:
    """CRC-32C of `data` as an unsigned 32-bit number."""
    crc, whole = 0xFFFFFFFF, len(data) & ~3
    if _FITS and whole:
        first, last = _FIRST, _LAST
        for word in memoryview(data)[:whole].cast("I"):
            word ^= crc
            crc = first[word & 0xFFFF] ^ last[word >> 16]
    else:
        whole = 0
    for byte in data[whole:]:
        crc = _BYTES[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF
