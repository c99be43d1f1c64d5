"""Skipped steps and plans: each cites its evidence (invariant 14), none from a run that was left behind (15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..audit import Audit
    from ..book import At, Book, Event


def approved(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskRetryApproved."""
    for skip in event["body"]["skip"]:
        check_skip(audit, book, at, skip)


def annotated(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskSkippedByPolicy."""
    check_skip(audit, book, at, event["body"]["skipped"])


def planned(audit: Audit, book: Book, at: At, event: Event) -> None:
    """TaskReplayPlanned."""
    body = event["body"]
    for skip in body["skip"]:
        check_skip(audit, book, at, skip)
    for sequence in body["based_on"]:
        if not 1 <= sequence <= book.version:
            audit.find(14, "plan_basis", at, f"the plan rests on event {sequence}, the task has {book.version}")
    if body["resume_index"] != len(body["skip"]):
        audit.hint(14, "resume_index", at, f"resume_index {body['resume_index']}, but {len(body['skip'])} steps are skipped")


def check_skip(audit: Audit, book: Book, at: At, skip: dict[str, Any]) -> None:
    """One skipped step: its rule is named and an accepted event that this run may use proves it."""
    step = skip["step"]
    if not skip["rule"]:
        audit.find(14, "skip_rule", at, f"step {step!r} is skipped without a rule")
    proven = False
    for sequence in skip["evidence"]:
        if not 1 <= sequence <= book.version:
            audit.find(14, "skip_evidence", at, f"step {step!r} cites event {sequence}, the task has {book.version}")
            continue
        past = book.events[sequence - 1]
        if step in past.proves:
            if past.run_no < book.run_starts:
                audit.find(15, "foreign_run", at, f"step {step!r} cites event {sequence} of run {past.run_no}, "
                           f"but run {book.run_starts} began anew")
            proven = True
    if not proven:
        audit.find(14, "skip_unproven", at, f"step {step!r} is skipped, events {skip['evidence']} don't prove it")


def steps_proven(kind: str, body: Event) -> tuple[str, ...]:
    """Steps an accepted event can be cited for: completed ones, and a failed one declared idempotent."""
    if kind == "TaskStepCompleted":
        return (body["done"]["step"],)
    if kind == "TaskCompleted" or kind == "TaskFailed":
        names = [done["step"] for done in body["steps_done"]]
        if kind == "TaskFailed" and body["failed_step"] is not None and body["is_idempotent"]:
            names.append(body["failed_step"])
        return tuple(names)
    if kind == "TaskReplayRequested" and body["from"] != "START":
        return tuple(done["step"] for done in body["carried"]["steps"])
    return ()
