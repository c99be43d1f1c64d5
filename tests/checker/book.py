"""What the checker remembers of a task for good, closed or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from .ids import NO_ATTEMPT
from .tables import HISTORY_CODE

Event = dict[str, Any]
HISTORY_ENTRIES = 512


@dataclass(frozen=True)
class Limits:
    """Bounds the texts leave to configuration, ms; each is an option of the command line."""

    skew_ms: int = 5_000
    broker_tolerance_ms: int = 1_000
    backoff_cap_ms: int = 3_600_000
    overdue_ms: int = 30_000
    not_started_ms: int = 10_000


class At(NamedTuple):
    """Place of an accepted record."""

    offset: int
    broker_ms: int


class Past(NamedTuple):
    """An accepted task event; `proves` are the steps it can be cited for."""

    kind: str
    offset: int
    run_no: int
    proves: tuple[str, ...]


def producer_of(event: Event) -> tuple[str, int]:
    """The process that wrote it."""
    return event["producer"]["instance"], event["producer"]["incarnation"]


class Note(NamedTuple):
    """An accepted annotation that waits for the event it explains; `preceding`: its writer's record before it."""

    kind: str
    offset: int
    producer: tuple[str, int]
    body: Event
    preceding: int | None


class Book:
    """All that the log has said about one task so far. `state` is '' before its birth."""

    __slots__ = (
        "state", "events", "run_no", "created", "created_at", "assignments", "execution_id", "assigned", "assigned_at",
        "retry_count", "lost_count", "max_retries", "failure", "waiting_since", "not_before", "guard_ms", "closed_at",
        "steps", "inherited", "result", "results", "reports", "releases", "marks", "notes", "run_starts", "refused", "history", "history_last",
        "history_count", "history_due",
    )

    def __init__(self) -> None:
        self.state = ""
        self.events: list[Past] = []
        self.run_no = 0
        self.created: Event = {}
        self.created_at = 0
        self.assignments = 0
        self.execution_id = NO_ATTEMPT
        self.assigned: Event | None = None
        self.assigned_at = 0
        self.retry_count = 0
        self.lost_count = 0
        self.max_retries = 0
        self.failure: tuple[str, Event] | None = None
        self.waiting_since = 0
        self.not_before: int | None = None
        self.guard_ms = 0
        self.closed_at = -1
        self.steps: dict[str, Event] = {}
        self.inherited: dict[str, Event] = {}
        self.results = 0
        self.result: bytes | None = None
        self.reports: dict[bytes, tuple[str, bytes | None]] | None = None
        self.releases = 0
        self.marks: set[tuple[str, Any, Any]] | None = None
        self.notes: list[Note] = []
        self.run_starts = 0
        self.refused: tuple[str, int] = ("", 0)
        self.history = bytearray()
        self.history_last = 0
        self.history_count = 0
        self.history_due = 0

    @property
    def version(self) -> int:
        """Highest accepted event_sequence."""
        return len(self.events)

    def seen(self, sort: str, one: Any, two: Any = None) -> bool:
        """Whether this was noted before; notes it. For duties of the form *once per …*."""
        if self.marks is None:
            self.marks = set()
        mark = (sort, one, two)
        if mark in self.marks:
            return True
        self.marks.add(mark)
        return False

    def record_history(self, offset: int, reason: str | None) -> None:
        """Takes down a record with the task's key (state.md, *History*)."""
        if self.history_count >= HISTORY_ENTRIES:
            return
        self.history_count += 1
        delta = offset - self.history_last
        self.history_last = offset
        while delta > 0x7F:
            self.history.append(delta & 0x7F | 0x80)
            delta >>= 7
        self.history.append(delta)
        self.history.append(HISTORY_CODE[reason])
