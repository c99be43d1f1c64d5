"""XXH3-128 with seed 0, for all lengths.

Pure Python, written from the published description of the algorithm. The package `xxhash` is used instead
when it is installed and gives the same digests for the self-test; it is never needed.
"""

from __future__ import annotations

from struct import unpack_from

_M32 = 0xFFFFFFFF
_M64 = 0xFFFFFFFFFFFFFFFF
_M128 = (1 << 128) - 1

_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MX1, _MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
# every 64-bit little-endian word of the secret by byte position: positions are not always aligned
_S = [unpack_from("<Q", _SECRET, at)[0] for at in range(len(_SECRET) - 7)]


def _avalanche(x: int) -> int:
    x ^= x >> 37
    x = (x * _MX1) & _M64
    return x ^ (x >> 32)


def _avalanche64(x: int) -> int:
    x ^= x >> 33
    x = (x * _P64_2) & _M64
    x ^= x >> 29
    x = (x * _P64_3) & _M64
    return x ^ (x >> 32)


def _swap32(x: int) -> int:
    return int.from_bytes(x.to_bytes(4, "little"), "big")


def _swap64(x: int) -> int:
    return int.from_bytes(x.to_bytes(8, "little"), "big")


def _small(data: bytes) -> tuple[int, int]:
    """0 to 16 bytes, (low, high)."""
    length = len(data)
    if length == 0:
        return _avalanche64(_S[64] ^ _S[72]), _avalanche64(_S[80] ^ _S[88])
    if length <= 3:
        combined = data[-1] | length << 8 | data[0] << 16 | data[length >> 1] << 24
        words = unpack_from("<4I", _SECRET, 0)
        swapped = _swap32(combined)
        rotated = (swapped << 13 | swapped >> 19) & _M32
        return _avalanche64(words[0] ^ words[1] ^ combined), _avalanche64(words[2] ^ words[3] ^ rotated)
    if length <= 8:
        first, last = unpack_from("<I", data, 0)[0], unpack_from("<I", data, length - 4)[0]
        value = _S[16] ^ _S[24] ^ (first | last << 32)
        product = value * (_P64_1 + (length << 2))
        low, high = product & _M64, product >> 64
        high = (high + (low << 1)) & _M64
        low ^= high >> 3
        low ^= low >> 35
        low = (low * _MX2) & _M64
        return low ^ (low >> 28), _avalanche(high)
    first, last = unpack_from("<Q", data, 0)[0], unpack_from("<Q", data, length - 8)[0]
    one = _S[32] ^ _S[40] ^ first ^ last
    two = _S[48] ^ _S[56] ^ last
    product = one * _P64_1
    low = ((product & _M64) + ((length - 1) << 54)) & _M64
    high = ((product >> 64) + (two >> 32 << 32) + (two & _M32) * _P32_2) & _M64
    low ^= _swap64(high)
    product = low * _P64_2
    return _avalanche(product & _M64), _avalanche(((product >> 64) + high * _P64_2) & _M64)


def _mix(a: int, b: int, at: int) -> int:
    product = (a ^ _S[at]) * (b ^ _S[at + 8])
    return (product & _M64) ^ (product >> 64)


def _medium(data: bytes) -> tuple[int, int]:
    """17 to 240 bytes, (low, high)."""
    length = len(data)
    acc0, acc1 = length * _P64_1 & _M64, 0
    pairs: list[tuple[int, int, int]] = []
    if length <= 128:
        for i in range((length - 1) >> 5, -1, -1):
            pairs.append((i * 16, length - i * 16 - 16, i * 32))
    else:
        pairs = [(i * 32, i * 32 + 16, i * 32 if i < 4 else (i - 4) * 32 + 3) for i in range(length >> 5)]
        pairs.append((length - 16, length - 32, 103))
    for index, (one, two, secret) in enumerate(pairs):
        a, b = unpack_from("<2Q", data, one)
        c, d = unpack_from("<2Q", data, two)
        acc0 = ((acc0 + _mix(a, b, secret)) & _M64) ^ ((c + d) & _M64)
        acc1 = ((acc1 + _mix(c, d, secret + 16)) & _M64) ^ ((a + b) & _M64)
        if length > 128 and index == 3:
            acc0, acc1 = _avalanche(acc0), _avalanche(acc1)
    low = (acc0 + acc1) & _M64
    high = (acc0 * _P64_1 + acc1 * _P64_4 + length * _P64_2) & _M64
    return _avalanche(low), -_avalanche(high) & _M64


def _accumulate(acc: list[int], data: bytes, at: int, secret: int) -> None:
    stripe = unpack_from("<8Q", data, at)
    for i in range(8):
        value = stripe[i] ^ _S[secret + i * 8]
        acc[i ^ 1] = (acc[i ^ 1] + stripe[i]) & _M64
        acc[i] = (acc[i] + (value & _M32) * (value >> 32)) & _M64


def _merge(acc: list[int], start: int, secret: int) -> int:
    result = start
    for i in range(0, 8, 2):
        result += _mix(acc[i], acc[i + 1], secret + i * 8)
    return _avalanche(result & _M64)


def _large(data: bytes) -> tuple[int, int]:
    """More than 240 bytes, (low, high)."""
    length, secret_length = len(data), len(_SECRET)
    stripes = (secret_length - 64) // 8
    block = 64 * stripes
    acc = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    start = 0
    while length - start > block:
        for n in range(stripes):
            _accumulate(acc, data, start + n * 64, n * 8)
        for i in range(8):
            value = acc[i] ^ (acc[i] >> 47) ^ _S[secret_length - 64 + i * 8]
            acc[i] = value * _P32_1 & _M64
        start += block
    for n in range((length - start - 1) // 64):
        _accumulate(acc, data, start + n * 64, n * 8)
    _accumulate(acc, data, length - 64, secret_length - 71)
    low = _merge(acc, length * _P64_1 & _M64, 11)
    return low, _merge(acc, ~(length * _P64_2) & _M64, secret_length - 75)


def xxh3_128_pure(data: bytes) -> int:
    """XXH3-128 of `data` as one unsigned 128-bit number (high half first)."""
    length = len(data)
    low, high = _small(data) if length <= 16 else _medium(data) if length <= 240 else _large(data)
    return high << 64 | low


def _pick():
    """The package's function if it is there and agrees with the pure one, else the pure one."""
    try:
        from xxhash import xxh3_128_intdigest
    except ImportError:
        return xxh3_128_pure
    samples = (bytes(range(51)), b"\x01" * 200, b"x" * 1000, b"")
    return xxh3_128_intdigest if all(xxh3_128_intdigest(s) == xxh3_128_pure(s) for s in samples) else xxh3_128_pure


xxh3_128 = _pick()
