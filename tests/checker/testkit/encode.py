"""Encoder for tests, driven by the .avsc alone: events with all fields to values, and values to records."""

from __future__ import annotations

import json
from typing import Any

from . import REPO

from checker.crc32c import crc32c  # noqa: E402  (found by the package's import above)
from checker.decode import Record

SCHEMA = json.loads((REPO / "schemas" / "task-execution-event.avsc").read_text(encoding="utf-8"))


def varint(number: int) -> bytes:
    """Zig-zag varint."""
    number = (number << 1) ^ (number >> 63)
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _compile(spec: Any, named: dict[str, Any]):
    """Writer `(value, out)` of a schema."""
    if isinstance(spec, list):
        if spec[0] == "null":
            inner = _compile(spec[1], named)
            return lambda value, out: out.extend(b"\0") if value is None else (out.append(2), inner(value, out))
        branches = {branch["name"]: (index, _compile(branch, named)) for index, branch in enumerate(spec)}
        return lambda value, out: (out.extend(varint(branches[value[0]][0])), branches[value[0]][1](value[1], out))
    if isinstance(spec, dict) and spec["type"] in ("record", "enum", "fixed"):
        return named.setdefault(spec["name"], _compile_named(spec, named))
    if isinstance(spec, dict) and spec["type"] == "array":
        inner = _compile(spec["items"], named)
        return lambda value, out: _block([(lambda out, item=item: inner(item, out)) for item in value], out)
    if isinstance(spec, dict) and spec["type"] == "map":
        inner, text = _compile(spec["values"], named), _compile("string", named)
        return lambda value, out: _block(
            [(lambda out, key=key: (text(key, out), inner(value[key], out))) for key in sorted(value, key=str.encode)], out)
    if isinstance(spec, dict):
        return _compile(spec["type"], named)
    if spec in named:
        return named[spec]
    return {
        "long": lambda value, out: out.extend(varint(value)),
        "boolean": lambda value, out: out.append(bool(value)),
        "string": lambda value, out: out.extend(varint(len(value.encode())) + value.encode()),
        "bytes": lambda value, out: out.extend(varint(len(value)) + value),
    }[spec]


def _compile_named(spec: Any, named: dict[str, Any]):
    if spec["type"] == "fixed":
        return lambda value, out: out.extend(value)
    if spec["type"] == "enum":
        return lambda value, out: out.extend(varint(spec["symbols"].index(value)))
    fields = [(field["name"], _compile(field["type"], named)) for field in spec["fields"]]

    def write(value: dict[str, Any], out: bytearray) -> None:
        for name, inner in fields:
            inner(value[name], out)

    return write


def _block(writers: list[Any], out: bytearray) -> None:
    if writers:
        out.extend(varint(len(writers)))
        for write in writers:
            write(out)
    out.append(0)


_WRITE = _compile(SCHEMA, {})


def value_of(event: dict[str, Any]) -> bytes:
    """Framed value of an event whose `body` stands without the union."""
    out = bytearray(b"\0\0\0\0\1")
    _WRITE({**event, "body": (event["kind"], event["body"])}, out)
    return bytes(out)


def headers_of(event: dict[str, Any], value: bytes, traceparent: bytes | None = None) -> list[tuple[bytes, bytes | None]]:
    """The headers an honest writer sets."""
    headers: list[tuple[bytes, bytes | None]] = [
        (b"kind", event["kind"].encode()), (b"rule-version", b"%d" % event["rule_version"]),
        (b"crc32c", f"{crc32c(value):08x}".encode()),
    ]
    return headers + ([(b"traceparent", traceparent)] if traceparent else [])


def record_of(offset: int, broker_ms: int, key: bytes | None, event: dict[str, Any], traceparent: bytes | None = None) -> Record:
    """A whole record."""
    value = value_of(event)
    return Record(offset, broker_ms, key, headers_of(event, value, traceparent), value)
