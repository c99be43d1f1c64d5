"""Writes logs as the services would: every method appends the records of one decision, with right numbers and ids.

The author keeps its own idea of each task; it never asks the checker. What it writes is honest unless a test says
otherwise through keyword arguments (`exec_epoch=2`, `run_no=9` …), which forge a field *before* the event_id is formed.
"""

from __future__ import annotations

import hashlib
from typing import Any

from .ledger import Known, Ledger

from checker import ids


def digest(text: str) -> bytes:
    """Some SHA-256."""
    return hashlib.sha256(text.encode()).digest()


def step(name: str, index: int = 0, idempotent: bool = True, output: str = "") -> dict[str, Any]:
    """A StepDone."""
    return {"step": name, "index": index, "output_hash": digest(output or name), "is_idempotent": idempotent}


def skip(name: str, *evidence: int, rule: str = "completed") -> dict[str, Any]:
    """A SkippedStep."""
    return {"step": name, "rule": rule, "evidence": list(evidence)}


class Author(Ledger):
    """All decisions of all services in one partition."""

    # -- ownership and control

    def claim(self, instance: str = "c-1", incarnation: int = 99, attempt: int = 1) -> None:
        """A new ownership."""
        self.epoch += 1
        self.owner, self._owner_seq = (instance, incarnation, attempt), -1
        self.append(self.event("OwnershipClaimed", {"url": f"http://{instance}", "claim_attempt": attempt}))

    def control(self, kind: str, **body: Any) -> None:
        """Any other control kind."""
        self.append(self.event(kind, body))

    def seal(self) -> None:
        """LogSealed over all records so far."""
        note = f"dualtrack/7\n{len(self.entries)}\nAAAA\n\n- audit AAAA\n"
        self.append(self.event("LogSealed", {"note": note}, service="AUDIT_REPORT"))

    # -- tasks

    def create(self, max_retries: int = 3, deadline: int | None = None, not_before: int | None = None,
               schedule_to_start: int | None = None, **over: Any) -> int:
        """A new task; returns its id."""
        self._sequence += 1
        task_id = (self.now - ids.EPOCH_MS) << 22 | self.partition << 12 | self._sequence
        body = {
            "task_type": "ship", "queue": "ship", "creator": "shop", "priority": 4, "deadline": deadline, "not_before": not_before,
            "payload_hash": digest(str(task_id)), "hash_form": "PLAIN_SHA256", "payload_ref": None, "business_key": "order-1",
            "labels": {"a": "1", "b": "2"}, "concurrency_key": None,
            "timeouts": {"start_to_close_ms": 3_600_000, "schedule_to_start_ms": schedule_to_start},
            "max_retries": max_retries, "trace_given": False, "key_hash": None, "request_hash": None,
        }
        event = self.event("TaskCreated", body, **{"task_id": task_id, "event_sequence": 1, "run_no": 1, **over})
        self.tasks[task_id] = Known(body, self.now)
        self.append(event)
        return task_id

    def act(self, task_id: int, kind: str, body: dict[str, Any], counts: bool = True, **over: Any) -> dict[str, Any]:
        """Any event of a task; with `counts` the author takes it for accepted."""
        task = self.tasks[task_id]
        event = self.event(kind, body, task_id=task_id, **over)
        self.append(event, verdict=0 if counts else over.get("code", 0))
        if counts:
            task.version += 1
        return event

    def assign(self, task_id: int, worker: str = "w1", **over: Any) -> None:
        """Hands the task out."""
        task = self.tasks[task_id]
        over.setdefault("exec_epoch", task.epoch + 1)
        execution = over.pop("execution_id", ids.execution_id(task_id, over["exec_epoch"]))
        body = {
            "worker_id": worker, "incarnation": 1, "execution_id": execution, "assignment_time": self.now,
            "timeout_config": {"start_to_close_ms": 3_600_000, "heartbeat_ms": 5_000, "lease_ms": 15_000},
            "lease_max_ms": 60_000, "optimistic_start": over.pop("optimistic", False), "handler_version": "v1",
        }
        self.act(task_id, "TaskAssigned", body, **over)
        task.epoch, task.execution, task.worker = over["exec_epoch"], execution, worker

    def start(self, task_id: int, worker: str = "w1", **over: Any) -> None:
        """STARTING."""
        body = {"execution_id": self.tasks[task_id].execution, "worker_id": worker, "start_time": self.now, "memory_usage_percent": 10}
        self.act(task_id, "TaskStarted", body, **over)

    def step(self, task_id: int, name: str, index: int = 0, **over: Any) -> int:
        """A step; returns its event_sequence."""
        done = step(name, index, over.pop("idempotent", True))
        self.act(task_id, "TaskStepCompleted", {"execution_id": self.tasks[task_id].execution, "done": done}, **over)
        self.tasks[task_id].steps[name] = done
        return self.tasks[task_id].version

    def release(self, task_id: int, reason: str = "DRAIN", **over: Any) -> None:
        """An attempt comes back."""
        body = {"execution_id": self.tasks[task_id].execution, "reason": reason, "lease_left_ms": 0}
        self.act(task_id, "TaskReleased", body, **over)

    def complete(self, task_id: int, result: str = "ok", **over: Any) -> None:
        """SUCCESS."""
        task = self.tasks[task_id]
        body = {"execution_id": over.pop("execution_id", task.execution), "result_data_hash": digest(result),
                "execution_time_ms": 5, "steps_done": list(task.steps.values()), "memory_usage_percent": 10}
        self.act(task_id, "TaskCompleted", body, **over)
        if over.get("counts", True):
            task.closed, task.result = ("SUCCESS", len(self.entries) - 1), digest(result)

    def fail(self, task_id: int, code: str = "E_NET", category: str = "TRANSIENT", analysis: bool = False, **over: Any) -> int:
        """FAILED, with its analysis if wanted; returns its event_sequence."""
        task = self.tasks[task_id]
        if analysis:
            body = {"execution_id": task.execution, "category": category, "summary": "no route"}
            self.append(self.event("TaskFailureAnalysis", body, task_id=task_id))
        body = {
            "execution_id": task.execution, "error_code": code, "error_message": over.pop("message", "no route to host"),
            "category": category, "failed_step": over.pop("failed_step", None), "is_idempotent": over.pop("is_idempotent", None),
            "execution_time_ms": 5, "steps_done": list(task.steps.values()), "memory_usage_percent": 10,
        }
        self.act(task_id, "TaskFailed", body, **over)
        return task.version

    def lose(self, task_id: int, lease_left: int = 0, step_in_progress: str | None = None, idempotent: bool | None = None,
             **over: Any) -> None:
        """No sign of life for 20 s."""
        self.later(20_000)
        body = {"execution_id": self.tasks[task_id].execution, "last_sign_of_life": self.now - 20_000,
                "step_in_progress": step_in_progress, "step_is_idempotent": idempotent, "probes": [], "lease_left_ms": lease_left}
        self.act(task_id, "TaskLost", body, **over)

    def time_out(self, task_id: int, which: str, live: bool = False, step_in_progress: str | None = None, idempotent: bool | None = None,
                 **over: Any) -> None:
        """A limit of the task ran out."""
        body = {"timeout": which, "execution_id": self.tasks[task_id].execution if live else None,
                "step_in_progress": step_in_progress, "step_is_idempotent": idempotent, "lease_left_ms": 0}
        self.act(task_id, "TaskTimedOut", body, **over)

    # -- verdicts and plans

    def approve(self, task_id: int, lost: bool = False, skips: tuple = (), backoff: int = 0, policy: int = 1,
                notes: bool = True, **over: Any) -> None:
        """The engine lets it run again; each skip is announced by a TaskSkippedByPolicy."""
        task = self.tasks[task_id]
        for number, skipped in enumerate(skips if notes else ()):
            self.append(self.event("TaskSkippedByPolicy", {"skipped": skipped}, task_id=task_id, service="TASK_ENGINE", tries=number))
        task.losses, task.retries = task.losses + lost, task.retries + (not lost)
        counts = {"retry_count": over.pop("retry_count", task.retries), "lost_count": over.pop("lost_count", task.losses)}
        body = {
            "not_before": over.pop("not_before", self.now + backoff if backoff else None), "backoff_ms": backoff, **counts,
            "skip": list(skips), "prefer_workers": [], "avoid_workers": ["w1"], "policy_version": policy,
        }
        self.act(task_id, "TaskRetryApproved", body, service=over.pop("service", "TASK_ENGINE"), **over)

    def quarantine(self, task_id: int, worker: str = "w1") -> None:
        """The engine's annotation about a worker."""
        body = {"worker_id": worker, "reason": "memory", "until": self.now + 600_000}
        self.append(self.event("WorkerQuarantined", body, task_id=task_id, service="TASK_ENGINE"))

    def give_up(self, task_id: int, code: str = "E_NET", policy: int = 1, **over: Any) -> None:
        """FAILED_PERMANENTLY."""
        body = {"error_code": code, "reason": "no", "review": True, "policy_version": policy}
        self.act(task_id, "TaskFailedPermanently", body, service="TASK_ENGINE", **over)
        self.tasks[task_id].closed = ("FAILED_PERMANENTLY", len(self.entries) - 1)

    def plan(self, task_id: int, skips: tuple = (), based_on: tuple = (), **over: Any) -> None:
        """What remains to be done."""
        body = {"resume_from_step": None, "resume_index": len(skips), "skip": list(skips), "based_on": list(based_on),
                "witness": "SNAPSHOT_AND_LOG"}
        self.act(task_id, "TaskReplayPlanned", body, service="AUTO_REPLAY", **over)

    def retry(self, task_id: int, not_before: int | None = None, **over: Any) -> None:
        """RETRYING."""
        self.act(task_id, "TaskRetried", {"not_before": not_before}, **over)

    # -- people

    def request_cancel(self, task_id: int, **over: Any) -> None:
        """Somebody wants it cancelled."""
        self.act(task_id, "TaskCancelRequested", {"actor": "ann", "reason": "mistake"}, **over)

    def cancel(self, task_id: int, stopped: bool = True, **over: Any) -> None:
        """CANCELLED."""
        self.act(task_id, "TaskCancelled", {"worker_stopped": stopped, "lease_left_ms": 0}, **over)
        self.tasks[task_id].closed = ("CANCELLED", len(self.entries) - 1)

    def carried(self, task_id: int, **over: Any) -> dict[str, Any]:
        """The closed task as the owner would read it."""
        task, history, last = self.tasks[task_id], bytearray(), 0
        for offset, code in task.history[:512]:
            delta, last = offset - last, offset
            while delta > 0x7F:
                history.append(delta & 0x7F | 0x80)
                delta >>= 7
            history += bytes((delta, code))
        return {
            "state": task.closed[0] if task.closed else "SUCCESS", "run_no": task.run, "event_sequence": task.version,
            "exec_epoch": task.epoch, "execution_id": task.execution, "created": task.created, "created_at": task.created_at,
            "steps": list(task.steps.values()), "handler_version": "v1" if task.epoch else None, "lease_left_ms": 0,
            "history": bytes(history), "worker_id": task.worker, "assigned_at": None, "start_time": None, "end_time": None,
            "memory_usage_percent": 10, "retry_count": task.retries, "lost_count": task.losses, "result_data_hash": task.result,
            "error_code": None, "error_message": None, "category": None, "failed_step": None, **over,
        }

    def replay(self, task_id: int, start: str = "FAILURE", carry: dict[str, Any] | None = None, **over: Any) -> None:
        """A closed task is opened again."""
        task = self.tasks[task_id]
        body = {"carried": self.carried(task_id, **(carry or {})), "from": start, "from_step": None, "actor": "ann", "reason": "try",
                "closed_at_offset": over.pop("closed_at", task.closed[1] if task.closed else 0)}
        over.setdefault("run_no", task.run + 1)
        self.act(task_id, "TaskReplayRequested", body, **over)
        task.run, task.retries, task.losses, task.steps, task.closed, task.result = over["run_no"], 0, 0, {}, None, None

    def review(self, task_id: int, carry: dict[str, Any] | None = None, **over: Any) -> None:
        """People decide about a closed task."""
        body = {"carried": self.carried(task_id, **(carry or {})), "outcome": "ACCEPTED", "actor": "ann", "note": "fine"}
        self.act(task_id, "TaskReviewed", body, **over)
        task = self.tasks[task_id]
        if task.closed:
            task.closed = (task.closed[0], len(self.entries) - 1)

    def reject_report(self, task_id: int, execution: bytes, reported: str = "SUCCESS", result: str | None = "ok", **over: Any) -> None:
        """A report that doesn't count."""
        body = {"execution_id": execution, "reported": reported, "worker_id": "w1",
                "result_data_hash": digest(result) if result else None, "error_code": None, "reason": "fenced"}
        self.append(self.event("RejectedReport", body, **{"task_id": task_id, "event_sequence": 0, **over}))

    def overdue(self, task_id: int, state: str, waiting_for: str, waited: int = 30_000, **over: Any) -> None:
        """A task waits too long."""
        body = {"state": state, "waiting_for": waiting_for, "since": self.now - waited}
        over.setdefault("event_sequence", self.tasks[task_id].version)
        self.append(self.event("TaskOverdue", body, task_id=task_id, **over))
