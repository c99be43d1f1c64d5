"""The fold of one partition: which record counts (docs/acceptance.md, rule version 1).

It knows open tasks only, as every reader of the product does. What else must hold is the audit's business.
"""

from __future__ import annotations

from .decode import Event
from .ids import NO_ATTEMPT, partition_of, read_key
from .statehash import StateHash
from .tables import (
    ANNOTATIONS, BARRED_BY_CANCEL, CONTROL, KNOWN_RULES, LATE, LIVE, MATRIX, MAX_LOST, NOT_OWNER, OF_ATTEMPT, REPORT,
    SEAL, TERMINAL,
)


class Task:
    """Core state of an open task."""

    __slots__ = (
        "state", "cancel_requested", "closed_by_lost", "assigned_from_retrying", "version", "run_no", "exec_epoch",
        "execution_id", "retry_count", "lost_count", "max_retries",
    )

    def __init__(self, state: str, version: int, run_no: int, max_retries: int) -> None:
        self.state = state
        self.cancel_requested = False
        self.closed_by_lost = False
        self.assigned_from_retrying = False
        self.version = version
        self.run_no = run_no
        self.exec_epoch = 0
        self.execution_id = NO_ATTEMPT
        self.retry_count = 0
        self.lost_count = 0
        self.max_retries = max_retries


class Fold:
    """State of a partition. `judge` returns the reason of a rejection, or None for an accepted record."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.epoch = 0
        self.owner_seq = 0
        self.highest = 0
        self.row_clock = 0
        self.active_rules = 1
        self.paused: set[str] = set()
        self.open: dict[int, Task] = {}
        self.stopped = False
        self._hash = StateHash()
        self._control_key = b"#%d" % partition

    def tick(self, broker_ms: int) -> None:
        """Steps the row clock; to be called once per offset, malformed records included."""
        clock, stamp = self.row_clock + 1, broker_ms * 1000
        self.row_clock = stamp if stamp > clock else clock

    def state_hash(self) -> str:
        """Hash of the state after the records judged so far, 32 hexadecimal digits."""
        return self._hash.digest(self)

    def judge(self, key: bytes | None, event: Event) -> str | None:
        """Judges one decoded record and applies it if it counts."""
        kind = event["kind"]
        reason = self._key_reason(kind, key, event["task_id"])
        if reason:
            return reason
        if kind == "OwnershipClaimed":
            if event["partition_epoch"] != self.epoch + 1:
                return "claim_conflict"
            self.epoch += 1
            self.owner_seq = 0
            return None
        owner_seq = 0
        if kind not in NOT_OWNER:
            if self.epoch == 0 or event["partition_epoch"] != self.epoch:
                return "stale_epoch"
            owner_seq = event["owner_seq"] or 0
            if owner_seq <= self.owner_seq:
                return "stale_owner_seq"
        reason = self._apply(kind, event)
        if reason is None and owner_seq:
            self.owner_seq = owner_seq
        return reason

    def _key_reason(self, kind: str, key: bytes | None, task_id: int | None) -> str | None:
        if kind in CONTROL or kind == SEAL:
            if task_id is not None:
                return "wrong_key"
            if key == self._control_key:
                return None
            return "wrong_partition" if read_key(key)[0] == "control" else "wrong_key"
        if task_id is None or key != b"%d" % task_id:
            return "wrong_key"
        return None if partition_of(task_id) == self.partition else "wrong_partition"

    def _apply(self, kind: str, event: Event) -> str | None:
        """Checks 4 to 8."""
        if kind in CONTROL:
            return self._control(kind, event["body"])
        if kind == SEAL:
            return None
        if kind == REPORT:
            return None if event["event_sequence"] == 0 else "stale_sequence"
        if kind == "TaskCreated":
            return self._create(event)
        if kind == "TaskReplayRequested" or kind == "TaskReviewed":
            return self._reopen(kind, event)
        task = self.open.get(event["task_id"])
        if task is None:
            return "unknown_task"
        reason = _reason_against(task, kind, event)
        if reason is None and kind not in ANNOTATIONS:
            self._change(task, kind, event)
        return reason

    def _control(self, kind: str, body: Event) -> str | None:
        if kind == "RulesActivated":
            if body["activated"] <= self.active_rules:
                return "rules_not_forward"
            self.active_rules = body["activated"]
            self.stopped = self.active_rules > KNOWN_RULES
        elif kind == "QueuePaused":
            self.paused.add(body["queue"])
        elif kind == "QueueResumed":
            self.paused.discard(body["queue"])
        return None

    def _create(self, event: Event) -> str | None:
        task_id = event["task_id"]
        if task_id <= self.highest:
            return "id_order"
        if event["event_sequence"] != 1:
            return "stale_sequence"
        if event["run_no"] != 1:
            return "wrong_run"
        self.highest = task_id
        self.open[task_id] = Task("CREATED", 1, 1, event["body"]["max_retries"])
        self._hash.touch(task_id)
        return None

    def _reopen(self, kind: str, event: Event) -> str | None:
        task_id, carried = event["task_id"], event["body"]["carried"]
        if task_id > self.highest:
            return "unknown_task"
        if task_id in self.open:
            return "task_open"
        replay = kind == "TaskReplayRequested"
        if (carried["state"] not in TERMINAL or event["event_sequence"] != carried["event_sequence"] + 1
                or event["run_no"] != carried["run_no"] + replay):
            return "carried_state"
        if replay:
            task = Task("RETRY_APPROVED", event["event_sequence"], event["run_no"], carried["created"]["max_retries"])
            task.exec_epoch = carried["exec_epoch"]
            task.execution_id = carried["execution_id"]
            self.open[task_id] = task
            self._hash.touch(task_id)
        return None

    def _change(self, task: Task, kind: str, event: Event) -> None:
        """Effect of an accepted task event on an open task."""
        task.version += 1
        self._hash.touch(event["task_id"])
        if kind == "TaskAssigned":
            task.assigned_from_retrying = task.state == "RETRYING"
            task.state = "ASSIGNED"
            task.exec_epoch += 1
            task.execution_id = event["body"]["execution_id"]
            task.closed_by_lost = False
        elif kind == "TaskStarted":
            task.state = "EXECUTING"
        elif kind == "TaskReleased":
            task.state = "RETRYING" if task.assigned_from_retrying else "CREATED"
        elif kind == "TaskFailed" or kind == "TaskTimedOut":
            task.state = "FAILED"
            task.closed_by_lost = False
        elif kind == "TaskLost":
            task.state = "LOST"
            task.closed_by_lost = True
        elif kind == "TaskRetryApproved":
            if task.state == "LOST":
                task.lost_count += 1
            else:
                task.retry_count += 1
            task.state = "RETRY_APPROVED"
        elif kind == "TaskReplayPlanned":
            task.state = "REPLAY_PLANNED"
        elif kind == "TaskRetried":
            task.state = "RETRYING"
        elif kind == "TaskCancelRequested":
            task.cancel_requested = True
        elif kind in ("TaskCompleted", "TaskFailedPermanently", "TaskCancelled"):
            del self.open[event["task_id"]]


def _reason_against(task: Task, kind: str, event: Event) -> str | None:
    """Checks 8.2 to 8.7 for an open task."""
    if event["event_sequence"] != task.version + (kind != "TaskOverdue"):
        return "stale_sequence"
    if event["run_no"] != task.run_no:
        return "wrong_run"
    state, epoch = task.state, event["exec_epoch"]
    if kind == "TaskAssigned":
        if epoch != task.exec_epoch + 1:
            return "wrong_attempt"
    elif kind in OF_ATTEMPT or kind == "TaskTimedOut" and state in LIVE:
        named = event["body"]["execution_id"] or NO_ATTEMPT
        if epoch == 0 or epoch != task.exec_epoch or named != task.execution_id:
            return "wrong_attempt"
    if state not in MATRIX[kind] or kind == "TaskCompleted" and state in LATE and not task.closed_by_lost:
        return "not_allowed"
    if task.cancel_requested:
        if kind in BARRED_BY_CANCEL:
            return "cancel_requested"
    elif kind == "TaskCancelled":
        return "cancel_requested"
    if kind == "TaskRetryApproved":
        if task.lost_count >= MAX_LOST if state == "LOST" else task.retry_count >= task.max_retries:
            return "retries_exhausted"
    return None
