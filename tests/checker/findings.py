"""Findings: what broke, where and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One broken duty. `invariant` is its number in section 5 of the design, None for duties without a number.

    A *hint* is worth a look but can be the right outcome of an honest history; it doesn't change the exit code.
    """

    partition: int
    offset: int | None
    invariant: int | None
    code: str
    message: str
    hint: bool = False

    def as_json(self) -> dict[str, Any]:
        """Fields for the JSON report."""
        return asdict(self)

    def as_text(self) -> str:
        """One line for people."""
        name = "hint" if self.hint else "finding"
        law = f" invariant {self.invariant}" if self.invariant else ""
        where = "-" if self.offset is None else self.offset
        return f"{name}: partition {self.partition} offset {where}:{law} {self.code}: {self.message}"


class Findings:
    """Findings of one partition; of each code the first `keep` are kept, all are counted."""

    def __init__(self, partition: int, keep: int = 100) -> None:
        self.partition = partition
        self.kept: list[Finding] = []
        self.counts: Counter[str] = Counter()
        self.hard = 0
        self._keep = keep

    def add(self, invariant: int | None, code: str, offset: int | None, message: str, hint: bool = False) -> None:
        """Adds a finding, or a hint."""
        self.counts[code] += 1
        self.hard += not hint
        if self.counts[code] <= self._keep:
            self.kept.append(Finding(self.partition, offset, invariant, code, message, hint))
