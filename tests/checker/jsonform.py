"""The JSON form of an event for people (schemas/decoding.md §5)."""

from __future__ import annotations

from typing import Any

from .ids import uuid_text

_AS_TEXT = {"task_id", "incarnation", "owner_seq"}


def to_json(schema: Any, event: dict[str, Any]) -> dict[str, Any]:
    """`event` as decoded, in the form that is shown; `schema` is the parsed .avsc."""
    named: dict[str, Any] = {}
    _collect(schema, named)
    shown = {}
    for field in schema["fields"]:
        name = field["name"]
        spec = named[event["kind"]] if name == "body" else field["type"]
        shown[name] = _value(spec, event[name], name, named)
    return shown


def _collect(schema: Any, named: dict[str, Any]) -> None:
    """Named types of the schema by name."""
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, named)
    elif isinstance(schema, dict):
        if "name" in schema and schema["type"] in ("record", "enum", "fixed"):
            named[schema["name"]] = schema
        for field in schema.get("fields", ()):
            _collect(field["type"], named)
        for inner in ("items", "values", "type"):
            if isinstance(schema.get(inner), (dict, list)):
                _collect(schema[inner], named)


def _value(spec: Any, value: Any, field: str, named: dict[str, Any]) -> Any:
    if value is None:
        return None
    if isinstance(spec, list):
        spec = next(branch for branch in spec if branch != "null")
    if isinstance(spec, str) and spec in named:
        spec = named[spec]
    kind = spec if isinstance(spec, str) else spec["type"]
    if isinstance(kind, (dict, list)):
        return _value(kind, value, field, named)
    if kind == "record":
        return {f["name"]: _value(f["type"], value[f["name"]], f["name"], named) for f in spec["fields"]}
    if kind == "array":
        return [_value(spec["items"], item, field, named) for item in value]
    if kind == "map":
        return {key: _value(spec["values"], item, field, named) for key, item in value.items()}
    if kind == "fixed":
        return uuid_text(value) if spec["name"] == "Uuid" else value.hex()
    if kind == "bytes":
        return value.hex()
    if kind == "long" and field in _AS_TEXT:
        return str(value)
    return value
