"""Kinds, writers, matrix and reasons, as docs/acceptance.md and section 5 of the design state them."""

from __future__ import annotations

CONTROL = frozenset({
    "WorkerReleased", "QueuePaused", "QueueResumed", "BacklogAlarm", "OwnershipClaimed", "OwnershipRenewed", "RulesActivated",
})
SEAL = "LogSealed"
REPORT = "RejectedReport"
ANNOTATIONS = frozenset({"TaskOverdue", "TaskFailureAnalysis", "TaskSkippedByPolicy", "WorkerQuarantined"})
EXPLAINS = {
    "TaskFailureAnalysis": "TaskFailed", "TaskSkippedByPolicy": "TaskRetryApproved", "WorkerQuarantined": "TaskRetryApproved",
}

_FOREIGN_TO_OWNER = {
    "TaskRetryApproved": "TASK_ENGINE", "TaskFailedPermanently": "TASK_ENGINE", "TaskSkippedByPolicy": "TASK_ENGINE",
    "WorkerQuarantined": "TASK_ENGINE", "TaskReplayPlanned": "AUTO_REPLAY", "LogSealed": "AUDIT_REPORT",
}
NOT_OWNER = frozenset(_FOREIGN_TO_OWNER)


def writer_of(kind: str) -> str:
    """The service that may write `kind`."""
    return _FOREIGN_TO_OWNER.get(kind, "COORDINATOR")


STATES = (
    "CREATED", "ASSIGNED", "EXECUTING", "SUCCESS", "FAILED", "LOST", "RETRY_APPROVED", "REPLAY_PLANNED", "RETRYING",
    "FAILED_PERMANENTLY", "CANCELLED",
)
TERMINAL = frozenset({"SUCCESS", "FAILED_PERMANENTLY", "CANCELLED"})
OPEN = frozenset(STATES) - TERMINAL
LIVE = frozenset({"ASSIGNED", "EXECUTING"})
WAITING = frozenset({"CREATED", "RETRYING"})
LATE = frozenset({"LOST", "RETRY_APPROVED", "REPLAY_PLANNED", "RETRYING"})
JUDGED = frozenset({"FAILED", "LOST"})

# kind -> states it is accepted in; late cells of TaskCompleted are in LATE
MATRIX: dict[str, frozenset[str]] = {
    "TaskAssigned": WAITING,
    "TaskStarted": frozenset({"ASSIGNED"}),
    "TaskStepCompleted": frozenset({"EXECUTING"}),
    "TaskReleased": frozenset({"ASSIGNED"}),
    "TaskCompleted": LIVE | LATE,
    "TaskFailed": LIVE,
    "TaskLost": LIVE,
    "TaskTimedOut": WAITING | LIVE,
    "TaskRetryApproved": JUDGED,
    "TaskFailedPermanently": JUDGED,
    "TaskReplayPlanned": frozenset({"RETRY_APPROVED"}),
    "TaskRetried": frozenset({"REPLAY_PLANNED"}),
    "TaskCancelRequested": OPEN,
    "TaskCancelled": OPEN,
    "TaskOverdue": OPEN,
    "TaskFailureAnalysis": LIVE,
    "TaskSkippedByPolicy": JUDGED,
    "WorkerQuarantined": JUDGED,
}

# kinds of the attempt check; TaskTimedOut joins them while an attempt is live
OF_ATTEMPT = frozenset({
    "TaskStarted", "TaskStepCompleted", "TaskReleased", "TaskCompleted", "TaskFailed", "TaskLost", "TaskFailureAnalysis",
})
BARRED_BY_CANCEL = frozenset({
    "TaskAssigned", "TaskRetryApproved", "TaskFailedPermanently", "TaskSkippedByPolicy", "WorkerQuarantined",
    "TaskReplayPlanned", "TaskRetried", "TaskCancelRequested",
})
MAX_LOST = 5

# in the order of the history codes: 1 + index
REASONS = (
    "wrong_key", "wrong_partition", "claim_conflict", "stale_epoch", "stale_owner_seq", "rules_not_forward", "id_order",
    "unknown_task", "task_open", "carried_state", "stale_sequence", "wrong_run", "wrong_attempt", "not_allowed",
    "cancel_requested", "retries_exhausted",
)
HISTORY_CODE = {None: 0} | {reason: 1 + index for index, reason in enumerate(REASONS)}
KNOWN_RULES = 1


def pen_of(state: str, cancel_requested: bool) -> str:
    """Service whose turn it is."""
    if cancel_requested or state in WAITING or state in LIVE or state == "REPLAY_PLANNED":
        return "coordinator"
    return "auto-replay" if state == "RETRY_APPROVED" else "task-engine"
