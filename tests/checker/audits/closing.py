"""Closed tasks: a terminal state is left only by a replay that carries what the log says (invariants 9 and 15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..book import HISTORY_ENTRIES
from ..tables import TERMINAL

if TYPE_CHECKING:
    from ..audit import Audit
    from ..book import At, Book, Event


def reopened(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskReplayRequested and TaskReviewed."""
    kind, carried = event["kind"], event["body"]["carried"]
    if book.state not in TERMINAL:
        audit.find(9, "not_closed", at, f"{kind} of a task that is {book.state or 'not in the log'}")
        return
    expected = {
        "state": book.state, "run_no": book.run_no, "event_sequence": book.version, "exec_epoch": book.assignments,
        "execution_id": book.execution_id, "created_at": book.created_at, "created": book.created,
        "handler_version": book.assigned["handler_version"] if book.assigned else None,
        "worker_id": book.assigned["worker_id"] if book.assigned else "",
        "retry_count": book.retry_count, "lost_count": book.lost_count, "result_data_hash": book.result,
    }
    for name, value in expected.items():
        if carried[name] != value and not (name == "handler_version" and not carried[name] and not value):
            if name == "created":
                differing = sorted(key for key in value if carried[name].get(key) != value[key])
                audit.find(9, "carried_created", at, f"{kind} carries another TaskCreated: {', '.join(differing)}")
            else:
                audit.find(9, f"carried_{name}", at, f"{kind} carries {name} {_shown(carried[name])}, the log says {_shown(value)}")
    _steps(audit, book, at, carried["steps"])
    _history(audit, book, at, carried["history"])
    if kind == "TaskReviewed":
        # A review is the newest word on a closed task, and what a replay after it refers to.
        book.closed_at = at.offset
    elif event["body"]["closed_at_offset"] != book.closed_at:
        audit.find(9, "closed_at_offset", at, f"closed at {event['body']['closed_at_offset']}, the log says {book.closed_at}")


def _steps(audit: Audit, book: Book, at: At, carried: list[Event]) -> None:
    """All steps of the closed run; those it took over from the run before may be among them."""
    stated = {done["step"]: done for done in carried}
    if len(stated) != len(carried):
        audit.find(9, "carried_steps", at, "a step is carried twice")
    for step, done in book.steps.items():
        if stated.get(step) != done:
            audit.find(9, "carried_steps", at, f"step {step!r} of the closed run is missing or differs")
    for step, done in stated.items():
        if step not in book.steps and book.inherited.get(step) != done:
            audit.find(15, "carried_steps", at, f"step {step!r} is carried, but the closed run doesn't have it")


def _history(audit: Audit, book: Book, at: At, carried: bytes) -> None:
    """The history so far: at least up to the last accepted event, at most up to here."""
    own = bytes(book.history)
    if not own.startswith(carried) or len(carried) < book.history_due:
        full = " (first 512 entries)" if book.history_count >= HISTORY_ENTRIES else ""
        audit.hint(9, "carried_history", at, f"history of {len(carried)} bytes is not what the log says{full}")


def _shown(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
