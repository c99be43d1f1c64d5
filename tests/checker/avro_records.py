"""Readers of records as generated Python: straight-line code per record, the common short forms in place.

Only speed is bought here. Whatever is not the shortest spelling of a value is left to the careful reader of
avro.py, which is also what `deep` holds for each field's type.
"""

from __future__ import annotations

from typing import Any, Callable

Reader = Callable[[bytes, int], tuple[Any, int]]


class Source:
    """Lines of one generated function, and the names it uses."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = dict(names)
        self.lines: list[str] = []

    def add(self, depth: int, *lines: str) -> None:
        """Adds lines at an indentation."""
        self.lines += [" " * (4 * depth) + line for line in lines]

    def bind(self, value: Any) -> str:
        """Gives a value a name inside the function."""
        name = f"n{len(self.names)}"
        self.names[name] = value
        return name


def generate(fields: list[tuple[str, Any, Reader]], resolve: Callable[[Any], Any], names: dict[str, Any]) -> Reader:
    """Reader of a record. `fields` are (name, schema, deep reader), `resolve` turns the name of a type into its
    schema, `names` holds Fault and read_varint."""
    source = Source(names)
    for index, (_, spec, deep) in enumerate(fields):
        _field(source, 1, f"v{index}", resolve(spec), deep, resolve)
    result = ", ".join(f"{name!r}: v{index}" for index, (name, _, _) in enumerate(fields))
    head = "def read(buf, pos):\n    size = len(buf)\n"
    code = head + "".join(line + "\n" for line in source.lines) + f"    return {{{result}}}, pos\n"
    exec(compile(code, "<record reader>", "exec"), source.names)  # the code is made of the schema's field names only
    return source.names["read"]


def _field(source: Source, depth: int, target: str, spec: Any, deep: Reader, resolve: Callable[[Any], Any]) -> None:
    """Lines that read one value into `target`."""
    kind = spec if isinstance(spec, str) else "union" if isinstance(spec, list) else spec["type"]
    careful = f"{target}, pos = {source.bind(deep)}(buf, pos)"
    if isinstance(kind, (dict, list)):
        _field(source, depth, target, resolve(kind), deep, resolve)
    elif kind == "long":
        _long(source, depth, target, spec if isinstance(spec, dict) else {})
    elif kind == "string":
        source.add(depth, "b = buf[pos]", "if b & 0x81:", f"    {careful}", "else:", "    pos += 1", "    end = pos + (b >> 1)",
                   "    if end > size: raise Fault('length')", f"    {target} = buf[pos:end].decode()", "    pos = end")
    elif kind == "fixed":
        source.add(depth, f"end = pos + {spec['size']}", "if end > size: raise Fault('truncated')", f"{target} = buf[pos:end]", "pos = end")
    elif kind == "enum":
        symbols, limit = source.bind(spec["symbols"]), min(2 * len(spec["symbols"]), 0x80)
        source.add(depth, "b = buf[pos]", f"if b & 1 or b >= {limit}:", f"    {careful}", "else:",
                   f"    {target} = {symbols}[b >> 1]", "    pos += 1")
    elif kind == "union" and len(spec) == 2 and spec[0] == "null":
        source.add(depth, "b = buf[pos]", "if b == 0:", f"    {target} = None", "    pos += 1", "elif b == 2:", "    pos += 1")
        inner = resolve(spec[1])
        _field(source, depth + 1, target, inner, deep.inner, resolve)
        source.add(depth, "else:", f"    {careful}")
    else:
        source.add(depth, careful)


def _long(source: Source, depth: int, target: str, spec: dict[str, Any]) -> None:
    source.add(depth, f"{target} = buf[pos]", f"if {target} < 0x80:", f"    {target} = ({target} >> 1) ^ -({target} & 1)",
               "    pos += 1", "else:", f"    {target}, pos = read_varint(buf, pos)")
    if "minimum" in spec or "maximum" in spec:
        low, high = spec.get("minimum", -(1 << 63)), spec.get("maximum", (1 << 63) - 1)
        source.add(depth, f"if not {low} <= {target} <= {high}: raise Fault('range')")
