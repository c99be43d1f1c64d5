"""Verdicts as a history that people read: `offset 7: complete t1 e=1 => rejected(stale_epoch)`."""

from __future__ import annotations

from typing import Any, Callable

from .decode import Event, Record
from .ids import NO_ATTEMPT, uuid_text

_WORDS = {
    "TaskCreated": "submit", "TaskAssigned": "assign", "TaskStarted": "start", "TaskStepCompleted": "step",
    "TaskReleased": "release", "TaskCompleted": "complete", "TaskFailed": "fail", "TaskLost": "lose",
    "TaskTimedOut": "timeout", "TaskRetryApproved": "approve", "TaskFailedPermanently": "give-up",
    "TaskReplayPlanned": "plan", "TaskRetried": "retry", "TaskCancelRequested": "request-cancel",
    "TaskCancelled": "cancel", "TaskReplayRequested": "replay", "TaskReviewed": "review",
    "RejectedReport": "reject-report", "TaskOverdue": "overdue", "TaskFailureAnalysis": "analyse",
    "TaskSkippedByPolicy": "skip", "WorkerQuarantined": "quarantine", "WorkerReleased": "release-worker",
    "QueuePaused": "pause", "QueueResumed": "resume", "BacklogAlarm": "backlog", "OwnershipClaimed": "claim",
    "OwnershipRenewed": "renew", "RulesActivated": "rules", "LogSealed": "seal",
}
_DETAILS: dict[str, Callable[[Event, Event], str]] = {
    "TaskCreated": lambda e, b: f"max={b['max_retries']} id={e['task_id']}",
    "TaskAssigned": lambda e, b: b["worker_id"],
    "TaskStepCompleted": lambda e, b: b["done"]["step"],
    "TaskReleased": lambda e, b: b["reason"],
    "TaskFailed": lambda e, b: b["error_code"],
    "TaskTimedOut": lambda e, b: b["timeout"],
    "TaskRetryApproved": lambda e, b: f"r={b['retry_count']} l={b['lost_count']}",
    "TaskFailedPermanently": lambda e, b: b["error_code"],
    "TaskReplayPlanned": lambda e, b: f"from={b['resume_from_step'] or '-'}",
    "TaskReplayRequested": lambda e, b: f"from={b['from']} run={e['run_no']}",
    "TaskReviewed": lambda e, b: b["outcome"],
    "RejectedReport": lambda e, b: b["reported"],
    "TaskOverdue": lambda e, b: b["state"],
    "TaskSkippedByPolicy": lambda e, b: b["skipped"]["step"],
    "WorkerQuarantined": lambda e, b: b["worker_id"],
    "WorkerReleased": lambda e, b: b["worker_id"],
    "QueuePaused": lambda e, b: b["queue"],
    "QueueResumed": lambda e, b: b["queue"],
    "OwnershipClaimed": lambda e, b: f"{e['producer']['instance']} epoch={e['partition_epoch']}",
    "RulesActivated": lambda e, b: str(b["activated"]),
}


class Story:
    """Prints one line per record. Tasks are t1, t2 … in the order in which they are first named."""

    def __init__(self, write: Callable[[str], Any]) -> None:
        self._write = write
        self._names: dict[int, str] = {}

    def tell(self, record: Record, event: Event | None, verdict: str, before: str, after: str) -> None:
        """One record with its verdict."""
        self._write(f"offset {record.offset}: {self.act(event)} => {outcome(verdict, before, after)}\n")

    def act(self, event: Event | None) -> str:
        """What the record wants."""
        if event is None:
            return "?"
        words = [_WORDS[event["kind"]]]
        task_id = event["task_id"]
        if task_id is not None:
            words.append(self._names.setdefault(task_id, f"t{len(self._names) + 1}"))
        detail = _DETAILS.get(event["kind"])
        if detail is not None:
            words.append(detail(event, event["body"]))
        if event["exec_epoch"]:
            words.append(f"e={event['exec_epoch']}")
        if event["kind"] == "RejectedReport" and event["body"]["execution_id"] != NO_ATTEMPT:
            words.append(uuid_text(event["body"]["execution_id"]))
        return " ".join(words)


def outcome(verdict: str, before: str, after: str) -> str:
    """State after an accepted event that changed it, `ok`, or the reason in brackets."""
    if verdict == "accepted":
        return after if after and after != before else "ok"
    word, reason = verdict.split(":", 1)
    return f"{word}({reason})"
