"""XXH3-128 against the vectors published with the reference implementation (seed 0)."""

import unittest

import testkit  # noqa: F401  (makes the package importable)
from checker.xxh3 import xxh3_128, xxh3_128_pure

# length: (low, high) over the reference's generated buffer; all length classes of the algorithm
PUBLISHED = {
    0: (0x6001C324468D497F, 0x99AA06D3014798D8),
    1: (0xC44BDFF4074EECDB, 0xA6CD5E9392000F6A),
    6: (0x3E7039BDDA43CFC6, 0x082AFE0B8162D12A),
    12: (0x061A192713F69AD9, 0x6E3EFD8FC7802B18),
    24: (0x1E7044D28B1B901D, 0x0CE966E4678D3761),
    48: (0xF942219AED80F67B, 0xA002AC4E5478227E),
    81: (0x5E8BAFB9F95FB803, 0x4952F58181AB0042),
    222: (0xF1AEBD597CEC6B3A, 0x337E09641B948717),
    403: (0xCDEB804D65C6DEA4, 0x1B6DE21E332DD73D),
    512: (0x617E49599013CB6B, 0x18D2D110DCC9BCA1),
    2048: (0xDD59E2C3A5F038E0, 0xF736557FD47073A5),
    2240: (0x6E73A90539CF2948, 0xCCB134FBFA7CE49D),
    2367: (0xCB37AEB9E5D361ED, 0xE89C0F6FF369B427),
}


def reference_buffer(length: int) -> bytes:
    """The pseudo-random bytes the published vectors are about."""
    state, out = 2654435761, bytearray()
    for _ in range(length):
        out.append(state >> 56)
        state = state * 11400714785074694797 & (1 << 64) - 1
    return bytes(out)


class Xxh3(unittest.TestCase):
    def test_published_vectors(self):
        buffer = reference_buffer(max(PUBLISHED))
        for length, (low, high) in PUBLISHED.items():
            self.assertEqual(xxh3_128_pure(buffer[:length]), high << 64 | low, length)
            self.assertEqual(xxh3_128(buffer[:length]), high << 64 | low, length)


if __name__ == "__main__":
    unittest.main()
