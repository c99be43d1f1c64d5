"""Strict Avro: compiles a schema into functions that read one datum (schemas/decoding.md §3).

A reader takes `(buf, pos)` and returns `(value, pos)`; the first rule that is broken raises `Fault`.
`buf` ends where the datum must end. Reading past the end raises IndexError, which `read_datum` calls `truncated`;
so no reader here may index anything but `buf` without having compared the index before. Broken UTF-8 raises
UnicodeDecodeError, which it calls `utf8`.

Values: record -> dict, enum -> symbol, fixed and bytes -> bytes, array -> list, map -> dict,
union of null and one type -> None or the value, any other union -> (name of the branch, value).
"""

from __future__ import annotations

from typing import Any, Callable

from .avro_records import generate

Reader = Callable[[bytes, int], tuple[Any, int]]
_I64_MIN, _I64_MAX = -(1 << 63), (1 << 63) - 1


class Fault(Exception):
    """The datum is not strict; `args[0]` is the fault's name in decoding.md."""


def read_varint(buf: bytes, pos: int) -> tuple[int, int]:
    """A zig-zag varint in its only allowed spelling."""
    byte = buf[pos]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    number, shift, start = byte & 0x7F, 7, pos
    while True:
        pos += 1
        byte = buf[pos]
        if pos - start == 9 and byte > 1 or byte == 0:
            raise Fault("varint")
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), pos + 1
        shift += 7


def _long(spec: dict[str, Any]) -> Reader:
    low, high = spec.get("minimum", _I64_MIN), spec.get("maximum", _I64_MAX)
    if low == _I64_MIN and high == _I64_MAX:
        return read_varint

    def read(buf: bytes, pos: int) -> tuple[int, int]:
        byte = buf[pos]
        if byte < 0x80:
            number = (byte >> 1) ^ -(byte & 1)
            pos += 1
        else:
            number, pos = read_varint(buf, pos)
        if low <= number <= high:
            return number, pos
        raise Fault("range")

    return read


def _boolean(buf: bytes, pos: int) -> tuple[bool, int]:
    byte = buf[pos]
    if byte > 1:
        raise Fault("boolean")
    return byte == 1, pos + 1


def _bytes(buf: bytes, pos: int) -> tuple[bytes, int]:
    length, pos = read_varint(buf, pos)
    end = pos + length
    if length < 0 or end > len(buf):
        raise Fault("length")
    return buf[pos:end], end


def _string(buf: bytes, pos: int) -> tuple[str, int]:
    length, pos = read_varint(buf, pos)
    end = pos + length
    if length < 0 or end > len(buf):
        raise Fault("length")
    return buf[pos:end].decode("utf-8"), end


def _null(_buf: bytes, pos: int) -> tuple[None, int]:
    return None, pos


def _fixed(size: int) -> Reader:
    def read(buf: bytes, pos: int) -> tuple[bytes, int]:
        end = pos + size
        if end > len(buf):
            raise Fault("truncated")
        return buf[pos:end], end

    return read


def _enum(symbols: list[str]) -> Reader:
    count = len(symbols)

    def read(buf: bytes, pos: int) -> tuple[str, int]:
        index, pos = read_varint(buf, pos)
        if 0 <= index < count:
            return symbols[index], pos
        raise Fault("index")

    return read


def _optional(inner: Reader) -> Reader:
    """Union of null and one type, in this order."""

    def read(buf: bytes, pos: int) -> tuple[Any, int]:
        byte = buf[pos]
        if byte == 0:
            return None, pos + 1
        if byte == 2:
            return inner(buf, pos + 1)
        read_varint(buf, pos)
        raise Fault("index")

    read.inner = inner  # type: ignore[attr-defined]  (for generated records, which read the branch themselves)
    return read


def _union(branches: list[tuple[str, Reader]]) -> Reader:
    count = len(branches)

    def read(buf: bytes, pos: int) -> tuple[tuple[str, Any], int]:
        index, pos = read_varint(buf, pos)
        if not 0 <= index < count:
            raise Fault("index")
        name, inner = branches[index]
        value, pos = inner(buf, pos)
        return (name, value), pos

    return read


def _count(buf: bytes, pos: int) -> tuple[int, int]:
    """Number of items of the only block, compared with the bytes that are left."""
    count, pos = read_varint(buf, pos)
    if count < 0:
        raise Fault("block")
    if count > len(buf) - pos:
        raise Fault("length")
    return count, pos


def _end_of_blocks(buf: bytes, pos: int) -> int:
    count, pos = read_varint(buf, pos)
    if count != 0:
        raise Fault("block")
    return pos


def _array(inner: Reader) -> Reader:
    def read(buf: bytes, pos: int) -> tuple[list[Any], int]:
        if buf[pos] == 0:
            return [], pos + 1
        count, pos = _count(buf, pos)
        items = []
        for _ in range(count):
            item, pos = inner(buf, pos)
            items.append(item)
        return items, _end_of_blocks(buf, pos)

    return read


def _map(inner: Reader) -> Reader:
    def read(buf: bytes, pos: int) -> tuple[dict[str, Any], int]:
        if buf[pos] == 0:
            return {}, pos + 1
        count, pos = _count(buf, pos)
        items: dict[str, Any] = {}
        before: bytes | None = None
        for _ in range(count):
            key, pos = _string(buf, pos)
            raw = key.encode("utf-8")
            if before is not None and raw <= before:
                raise Fault("map_order")
            before = raw
            items[key], pos = inner(buf, pos)
        return items, _end_of_blocks(buf, pos)

    return read


_PRIMITIVES: dict[str, Reader] = {
    "null": _null, "boolean": _boolean, "bytes": _bytes, "string": _string, "long": read_varint,
}


class Compiler:
    """Compiles types; knows the named ones it has met. Names are looked up without their namespace."""

    def __init__(self) -> None:
        self._readers: dict[str, Reader] = dict(_PRIMITIVES)
        self._schemas: dict[str, Any] = {}

    def reader(self, schema: Any) -> Reader:
        """Reader of `schema` (parsed JSON of an .avsc)."""
        if isinstance(schema, str):
            return self._readers[schema]
        if isinstance(schema, list):
            if len(schema) == 2 and schema[0] == "null":
                return _optional(self.reader(schema[1]))
            names = [branch if isinstance(branch, str) else branch["name"] for branch in schema]
            return _union([(name, self.reader(branch)) for name, branch in zip(names, schema)])
        kind = schema["type"]
        if kind == "array":
            return _array(self.reader(schema["items"]))
        if kind == "map":
            return _map(self.reader(schema["values"]))
        if kind == "long":
            return _long(schema)
        if kind not in ("record", "enum", "fixed"):
            return self.reader(kind)
        reader = (_enum(schema["symbols"]) if kind == "enum" else _fixed(schema["size"]) if kind == "fixed"
                  else self._record(schema))
        self._readers[schema["name"]], self._schemas[schema["name"]] = reader, schema
        return reader

    def _record(self, schema: Any) -> Reader:
        fields = [(field["name"], field["type"], self.reader(field["type"])) for field in schema["fields"]]
        names = {"Fault": Fault, "read_varint": read_varint}
        return generate(fields, lambda spec: self._schemas.get(spec, spec) if isinstance(spec, str) else spec, names)


def read_datum(reader: Reader, buf: bytes, pos: int) -> Any:
    """The one datum from `pos` to the end of `buf`, or Fault."""
    try:
        value, pos = reader(buf, pos)
    except IndexError:
        raise Fault("truncated") from None
    except UnicodeDecodeError:
        raise Fault("utf8") from None
    if pos != len(buf):
        raise Fault("trailing")
    return value
