"""Good logs: one that tells every kind once, and the verdicts an honest reader writes down with it."""

from __future__ import annotations

from typing import Any

from .author import Author, skip

from checker.container import Section
from checker.decode import Decoder, Record
from checker.partition import Options, Result, check_section
from checker.verdicts import Witness

DECODER = Decoder()


class Memory(Section):
    """Records in memory as a section."""

    def __init__(self, records: list[Record], partition: int = 7, start: int = 0) -> None:
        super().__init__(partition, start, "memory")
        self._records = records

    def records(self):
        """The records."""
        return iter(self._records)


def check(records: list[Record], witness: Witness | None = None, **options: Any) -> Result:
    """Checks records of partition 7."""
    return check_section(Memory(records), DECODER, witness, Options(**options))


def witness_lines(records: list[Record], every: int = 4) -> list[dict[str, Any]]:
    """What a reader writes at the time: a verdict per offset, a state hash every few and at the end."""
    lines: list[dict[str, Any]] = []

    class Scribe(Witness):
        """Writes down instead of comparing."""

        def compare(self, findings, record, event, verdict, state_hash):
            line = {"offset": record.offset, "verdict": verdict}
            if record.offset % every == every - 1 or record is records[-1]:
                line["state_hash"] = state_hash()
            lines.append(line)

    check_section(Memory(records), DECODER, Scribe(7))
    return lines


def witness_of(lines: list[dict[str, Any]]) -> Witness:
    """A verdict file in memory."""
    witness = Witness(7)
    for line in lines:
        witness.add(dict(line), "memory")
    return witness


def every_kind() -> tuple[Author, dict[str, int]]:
    """A log with every kind, zombies, a malformed record and a take-over; the tasks by name."""
    a, t = Author(), {}
    a.claim()
    t["plain"] = a.create()
    a.assign(t["plain"])
    a.start(t["plain"])
    a.step(t["plain"], "pick")
    a.step(t["plain"], "pack", 1)
    a.complete(t["plain"])
    _failing(a, t)
    _lost(a, t)
    _cancelled(a, t)
    a.control("QueuePaused", queue="ship", actor="ann", reason="stock")
    a.control("QueueResumed", queue="ship", actor="ann", reason="stock")
    a.control("WorkerReleased", worker_id="w1", actor="ann", reason="repaired")
    a.control("BacklogAlarm", overdue_per_minute=101, waiting_for="task-engine", open_tasks=3)
    a.junk(b"", [(b"kind", b"TaskCreated")])
    old = a.owner
    open_task = t["taken over"] = a.create()
    a.assign(open_task)
    a.start(open_task)
    a.claim("c-2", 120, 4)
    zombie = {"partition_epoch": 1, "owner_seq": 900, "owner": old}
    a.complete(open_task, counts=False, code=4, **zombie)
    a.complete(open_task)
    _replayed(a, t)
    _timed_out(a, t)
    a.control("OwnershipRenewed")
    a.seal()
    return a, t


def _failing(a: Author, t: dict[str, int]) -> None:
    """Fails twice, is resumed behind a step, its worker quarantined."""
    task = t["failing"] = a.create(not_before=a.now + 60_000)
    a.later(60_000)
    a.assign(task)
    a.release(task)
    a.assign(task)
    a.start(task)
    proof = a.step(task, "pick")
    failure = a.fail(task, analysis=True, failed_step="label", is_idempotent=True)
    a.overdue(task, "FAILED", "task-engine")
    a.quarantine(task)
    a.approve(task, skips=(skip("pick", proof), skip("label", failure, rule="on_skip")), backoff=2_000)
    a.plan(task, (skip("pick", proof), skip("label", failure, rule="on_skip")), (proof, failure))
    a.later(2_000)
    a.retry(task)
    a.assign(task, "w2")
    a.start(task, "w2")
    a.complete(task)


def _lost(a: Author, t: dict[str, int]) -> None:
    """Lost twice: one attempt comes back late; its second report with another hash is turned away."""
    task = t["lost"] = a.create()
    a.assign(task)
    a.start(task)
    a.lose(task, lease_left=30_000, step_in_progress="pick", idempotent=True)
    a.approve(task, lost=True)
    a.plan(task)
    a.retry(task)
    a.later(30_000)
    a.assign(task, "w2")
    a.lose(task)
    a.reject_report(task, a.tasks[task].execution, "FAILED", None)
    a.approve(task, lost=True)
    a.complete(task)


def _cancelled(a: Author, t: dict[str, int]) -> None:
    """Cancelled while it runs."""
    task = t["cancelled"] = a.create()
    a.assign(task)
    a.start(task)
    a.request_cancel(task)
    a.cancel(task)


def _replayed(a: Author, t: dict[str, int]) -> None:
    """Given up, reviewed, replayed from the failure, then from the start."""
    task = t["replayed"] = a.create(max_retries=1)
    a.assign(task)
    a.start(task)
    proof = a.step(task, "pick")
    a.fail(task)
    a.approve(task)
    a.plan(task, (skip("pick", proof),), (proof,))
    a.retry(task)
    a.assign(task)
    a.start(task)
    a.fail(task)
    a.give_up(task)
    a.review(task)
    a.replay(task)
    a.plan(task, (skip("pick", proof, a.tasks[task].version),), (proof,))
    a.retry(task)
    a.assign(task)
    a.start(task)
    again = a.step(task, "pack", 1)
    a.fail(task)
    a.approve(task)
    a.plan(task, (skip("pack", again),))
    a.retry(task)
    a.assign(task)
    a.complete(task, "one")
    a.replay(task, "START")
    a.plan(task)
    a.retry(task)
    a.assign(task)
    a.complete(task, "two")


def _timed_out(a: Author, t: dict[str, int]) -> None:
    """Each of the three limits."""
    task = t["unscheduled"] = a.create(schedule_to_start=60_000)
    a.later(60_000)
    a.time_out(task, "SCHEDULE_TO_START")
    a.give_up(task, "TIMEOUT_SCHEDULE_TO_START")
    task = t["slow"] = a.create()
    a.assign(task)
    a.start(task)
    a.later(3_600_000)
    a.time_out(task, "START_TO_CLOSE", live=True)
    a.give_up(task, "TIMEOUT_START_TO_CLOSE")
    task = t["dead"] = a.create(deadline=a.now + 60_000)
    a.later(60_000)
    a.time_out(task, "DEADLINE")
    a.give_up(task, "TIMEOUT_DEADLINE")
