"""Timers (invariant 13): at most once and never early, as far as the log shows it.

Owners run their timers on a monotonic clock; the log shows the wall clock of the writer (event_time) and the
broker's. So each comparison leaves the skew the texts allow; a smaller tolerance is an option.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tables import LIVE, WAITING, pen_of

if TYPE_CHECKING:
    from ..audit import Audit
    from ..book import At, Book, Event


def assigned(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskAssigned not before not_before, by either clock."""
    due = book.not_before
    if due is None:
        return
    if event["event_time"] + audit.limits.skew_ms < due:
        audit.find(13, "early_assignment", at, f"assigned {due - event['event_time']} ms before not_before by event_time")
    elif at.broker_ms + audit.limits.broker_tolerance_ms < due:
        audit.find(13, "early_assignment", at, f"assigned {due - at.broker_ms} ms before not_before by the broker's clock")


def timed_out(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskTimedOut: the limit exists, fits the state, is due, and comes once."""
    which = event["body"]["timeout"]
    if which == "DEADLINE":
        due, states = book.created.get("deadline"), WAITING | LIVE
    elif which == "START_TO_CLOSE":
        limit = book.assigned["timeout_config"]["start_to_close_ms"] if book.assigned else None
        due, states = None if limit is None else book.assigned_at + limit, LIVE
    else:
        limit = book.created["timeouts"]["schedule_to_start_ms"] if book.created else None
        due, states = None if limit is None else book.waiting_since + limit, WAITING
    if book.state not in states:
        audit.find(13, "timeout_in_state", at, f"{which} while the task is {book.state}")
    if due is None:
        audit.find(13, "timeout_without_limit", at, f"{which}, but the task has no such limit")
    elif event["event_time"] + audit.limits.skew_ms < due:
        audit.find(13, "early_timeout", at, f"{which} {due - event['event_time']} ms before it is due")
    if which == "DEADLINE" and book.seen("deadline", event["run_no"]):
        audit.find(13, "timeout_twice", at, f"{which} a second time in run {event['run_no']}")


def lost(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskLost: silence as long as the lease. The lease may have changed since, so this is a hint."""
    silence = event["event_time"] - event["body"]["last_sign_of_life"]
    lease = book.assigned["timeout_config"]["lease_ms"] if book.assigned else 0
    if silence + audit.limits.skew_ms < lease:
        audit.hint(13, "early_loss", at, f"lost after {silence} ms of silence, the lease at hand-out was {lease} ms")


def overdue(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskOverdue: once per state and run, of the state the task is in, after the time to wait."""
    body = event["body"]
    if body["state"] != book.state:
        audit.find(13, "overdue_state", at, f"says {body['state']}, the task is {book.state}")
    if book.seen("overdue", event["run_no"], body["state"]):
        audit.find(13, "overdue_twice", at, f"{body['state']} is overdue a second time in run {event['run_no']}")
    waited = event["event_time"] - body["since"]
    if waited + audit.limits.skew_ms < audit.limits.overdue_ms and book.releases < 5:
        audit.find(13, "early_overdue", at, f"overdue after {waited} ms, the limit is {audit.limits.overdue_ms}")
    pen = pen_of(book.state, book.state != "" and audit.cancel_requested(event["task_id"]))
    if body["waiting_for"] not in ({pen, "worker"} if pen == "coordinator" else {pen}):
        audit.hint(13, "overdue_pen", at, f"waits for {body['waiting_for']}, the pen is {pen}'s")
