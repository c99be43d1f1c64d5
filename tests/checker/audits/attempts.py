"""Attempts and reports: invariants 6, 7, 8, 10 and 11, texts of failures, rejected reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ids import execution_id, uuid_text
from ..tables import LATE, LIVE

if TYPE_CHECKING:
    from ..audit import Audit
    from ..book import At, Book, Event

MAX_TEXT = 256


def assigned(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskAssigned."""
    number, body = book.assignments + 1, event["body"]
    if event["exec_epoch"] != number:
        audit.find(6, "exec_epoch", at, f"assignment number {number} has exec_epoch {event['exec_epoch']}")
    if body["execution_id"] != execution_id(event["task_id"], event["exec_epoch"]):
        audit.find(6, "execution_id", at, f"{uuid_text(body['execution_id'])} is not that of task and exec_epoch")
    if book.state in LIVE:
        audit.find(7, "two_attempts", at, f"assigned while an attempt is {book.state}")
    if at.broker_ms + audit.limits.broker_tolerance_ms < book.guard_ms:
        audit.hint(7, "inside_guard", at, f"handed out {book.guard_ms - at.broker_ms} ms before the former attempt's lease is over")


def live_report(audit: Audit, book: Book, at: At, event: Event) -> None:
    """Kinds that speak of the live attempt."""
    _attempt(audit, book, at, event)
    if book.state not in LIVE:
        audit.find(8, "not_live", at, f"{event['kind']} while the task is {book.state or 'unborn'}")


def started(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskStarted."""
    live_report(audit, book, at, event)
    if book.assigned and event["body"]["worker_id"] != book.assigned["worker_id"]:
        audit.hint(8, "other_worker", at, f"started by {event['body']['worker_id']}, assigned to {book.assigned['worker_id']}")


def step_completed(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskStepCompleted."""
    live_report(audit, book, at, event)
    epoch, step = event["exec_epoch"], event["body"]["done"]["step"]
    if book.seen("step", epoch, step):
        audit.find(11, "step_twice", at, f"step {step!r} is completed a second time in attempt {epoch}")


def released(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskReleased."""
    live_report(audit, book, at, event)
    if event["body"]["reason"] != "NOT_STARTED" or book.assigned is None:
        return
    if book.assigned["optimistic_start"]:
        audit.find(7, "released_by_silence", at, "an attempt with optimistic start is released for silence")
    if event["event_time"] - book.assigned_at + audit.limits.skew_ms < audit.limits.not_started_ms:
        audit.hint(13, "released_early", at, f"not started, after {event['event_time'] - book.assigned_at} ms")


def completed(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskCompleted, live or late."""
    _attempt(audit, book, at, event)
    late = book.state in LATE and book.failure is not None and book.failure[0] == "TaskLost"
    if book.state not in LIVE and not late:
        audit.find(8, "not_live", at, f"completed while the task is {book.state or 'unborn'}, neither live nor late")
    if book.results:
        audit.find(10, "two_results", at, f"result number {book.results + 1} of run {event['run_no']}")
    report(audit, book, at, event["body"]["execution_id"], "SUCCESS", event["body"]["result_data_hash"])


def failed(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskFailed."""
    live_report(audit, book, at, event)
    length = len(event["body"]["error_message"])
    if length > MAX_TEXT:
        audit.find(None, "error_message", at, f"error_message has {length} characters, the limit is {MAX_TEXT}")
    report(audit, book, at, event["body"]["execution_id"], "FAILED", None)


def analysed(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskFailureAnalysis."""
    _attempt(audit, book, at, event)
    length = len(event["body"]["summary"])
    if length > MAX_TEXT:
        audit.find(None, "summary", at, f"summary has {length} characters, the limit is {MAX_TEXT}")


def rejected_report(audit: Audit, book: Book, at: At, event: Event) -> None:
    """RejectedReport: once per execution_id, and only of what is neither live nor late."""
    body = event["body"]
    named = body["execution_id"]
    if book.seen("rejected report", named):
        audit.find(11, "rejected_report_twice", at, f"{uuid_text(named)} has a RejectedReport already")
    matches = named == book.execution_id and event["exec_epoch"] == book.assignments and event["run_no"] == book.run_no
    lost = book.failure is not None and book.failure[0] == "TaskLost"
    if matches and (book.state in LIVE or body["reported"] == "SUCCESS" and book.state in LATE and lost):
        audit.find(8, "good_report_rejected", at, f"the attempt is {'live' if book.state in LIVE else 'late'}, the report counts")
    if named == book.execution_id:
        book.guard_ms = 0
    report(audit, book, at, named, body["reported"], body["result_data_hash"])


def report(audit: Audit, book: Book, at: At, named: bytes, status: str, digest: bytes | None) -> None:
    """Two terminal reports of one execution that differ: a ResultConflict, for people to look at."""
    if book.reports is None:
        book.reports = {}
    before = book.reports.setdefault(named, (status, digest))
    if before != (status, digest):
        audit.hint(10, "result_conflict", at, f"execution {uuid_text(named)} reported {_shown(before)}, now {_shown((status, digest))}")


def _shown(outcome: tuple[str, bytes | None]) -> str:
    return outcome[0] if outcome[1] is None else f"{outcome[0]} {outcome[1].hex()[:12]}"


def _attempt(audit: Audit, book: Book, at: At, event: Event) -> None:
    named = event["body"]["execution_id"]
    if named != book.execution_id or event["exec_epoch"] != book.assignments:
        audit.find(8, "other_attempt", at, f"{event['kind']} names attempt {event['exec_epoch']} ({uuid_text(named)}), "
                   f"the task's is {book.assignments}")
