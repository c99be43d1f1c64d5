"""Retry law (invariant 12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tables import MAX_LOST

if TYPE_CHECKING:
    from ..audit import Audit
    from ..book import At, Book, Event


def approved(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskRetryApproved."""
    body = event["body"]
    after_loss = book.state == "LOST"
    retries, losses = book.retry_count + (not after_loss), book.lost_count + after_loss
    if (body["retry_count"], body["lost_count"]) != (retries, losses):
        audit.find(12, "counts", at, f"states retry_count {body['retry_count']} and lost_count {body['lost_count']}, "
                   f"counted are {retries} and {losses}")
    if retries > book.max_retries or losses > MAX_LOST:
        audit.find(12, "too_many", at, f"retry {retries} of {book.max_retries}, loss {losses} of {MAX_LOST}")
    if body["backoff_ms"] > audit.limits.backoff_cap_ms:
        audit.find(12, "backoff", at, f"backoff of {body['backoff_ms']} ms, the cap is {audit.limits.backoff_cap_ms}")
    elif body["backoff_ms"] and (body["not_before"] or 0) + audit.limits.skew_ms < event["event_time"] + body["backoff_ms"]:
        audit.hint(12, "backoff_unused", at, f"backoff of {body['backoff_ms']} ms, but not_before is {body['not_before']}")
    policy(audit, book, at, event)
    _retryable(audit, book, at)


def policy(audit: Audit, _book: Book, at: At, event: Event) -> None:
    """Both verdicts of the engine name their policy."""
    if not event["body"]["policy_version"]:
        audit.find(12, "policy_version", at, "no policy_version recorded")


def _cut_off(book: Book, step: str | None, idempotent: bool | None) -> bool:
    """Whether it is unknown if a step that must not run twice did its work.

    One whose output is kept did it and isn't run again; what lies beyond a gap in the indices is.
    """
    if step is None or idempotent is not False:
        return False
    following = 0
    for done in sorted({**book.inherited, **book.steps}.values(), key=lambda done: done["index"]):
        if done["index"] > following:
            break
        following = max(following, done["index"] + 1)
        if done["step"] == step:
            return False
    return True


def _retryable(audit: Audit, book: Book, at: At) -> None:
    """The failure that is retried must be one that may be."""
    if book.failure is None:
        return
    kind, body = book.failure
    if kind == "TaskFailed" and (body["category"] == "NON_RETRYABLE" or body["error_code"] == "TIMEOUT_DEADLINE"):
        audit.find(12, "not_retryable", at, f"retry of {body['error_code']} ({body['category']})")
    elif kind == "TaskFailed" and body["category"] == "TIMEOUT" and _cut_off(book, body["failed_step"], body["is_idempotent"]):
        audit.find(12, "not_retryable", at, f"retry after a timeout in step {body['failed_step']!r}, declared non-idempotent")
    elif kind == "TaskTimedOut" and body["timeout"] == "DEADLINE":
        audit.find(12, "not_retryable", at, "retry of TIMEOUT_DEADLINE")
    elif kind == "TaskTimedOut" and _cut_off(book, body["step_in_progress"], body["step_is_idempotent"]):
        audit.find(12, "not_retryable", at, f"retry after a timeout in step {body['step_in_progress']!r}, declared non-idempotent")
    elif kind == "TaskLost" and _cut_off(book, body["step_in_progress"], body["step_is_idempotent"]):
        audit.find(12, "not_retryable", at, f"retry after a loss in step {body['step_in_progress']!r}, declared non-idempotent")
