"""Audit of one partition: books of all tasks, and the checks each accepted record has to pass."""

from __future__ import annotations

from typing import Callable

from .audits import attempts, closing, envelope, notes, retries, skips, timers
from .book import At, Book, Event, Limits, Past, producer_of
from .decode import Record
from .findings import Findings
from .fold import Fold
from .ids import partition_of, read_key
from .tables import ANNOTATIONS, CONTROL, REPORT, SEAL, TERMINAL, pen_of

# What ends a run of releases: the task got further, or begins anew.
RELEASES_END = frozenset({"TaskStarted", "TaskFailed", "TaskLost", "TaskTimedOut", "TaskReplayRequested"})

Check = Callable[["Audit", Book, At, Event], None]

CHECKS: dict[str, tuple[Check, ...]] = {
    "TaskAssigned": (attempts.assigned, timers.assigned),
    "TaskStarted": (attempts.started,),
    "TaskStepCompleted": (attempts.step_completed,),
    "TaskReleased": (attempts.released,),
    "TaskCompleted": (attempts.completed,),
    "TaskFailed": (attempts.failed, notes.explained),
    "TaskLost": (attempts.live_report, timers.lost),
    "TaskTimedOut": (timers.timed_out,),
    "TaskRetryApproved": (retries.approved, skips.approved, notes.explained),
    "TaskFailedPermanently": (retries.policy,),
    "TaskReplayPlanned": (skips.planned,),
    "TaskReplayRequested": (closing.reopened,),
    "TaskReviewed": (closing.reopened,),
    "RejectedReport": (attempts.rejected_report,),
    "TaskOverdue": (timers.overdue,),
    "TaskFailureAnalysis": (attempts.analysed, notes.annotated),
    "TaskSkippedByPolicy": (skips.annotated, notes.annotated),
    "WorkerQuarantined": (notes.annotated,),
}


class Audit:
    """Remembers every task for good and checks each accepted record against that memory."""

    def __init__(self, fold: Fold, findings: Findings, limits: Limits) -> None:
        self.partition = fold.partition
        self.limits = limits
        self.books: dict[int, Book] = {}
        self.claim: tuple[str, int, int] | None = None
        self.claims = 0
        self.born = 0
        self.preceding: int | None = None
        self._last: dict[tuple[str, int], int] = {}
        self._fold = fold
        self.findings = findings

    @property
    def active_rules(self) -> int:
        """Rules active after the record at hand."""
        return self._fold.active_rules

    def cancel_requested(self, task_id: int) -> bool:
        """Whether a cancellation is pending."""
        task = self._fold.open.get(task_id)
        return task is not None and task.cancel_requested

    def find(self, invariant: int | None, code: str, at: At, message: str) -> None:
        """Adds a finding at a record."""
        self.findings.add(invariant, code, at.offset, message)

    def hint(self, invariant: int | None, code: str, at: At, message: str) -> None:
        """Adds a hint at a record."""
        self.findings.add(invariant, code, at.offset, message, hint=True)

    def record(self, record: Record, event: Event, reason: str | None) -> None:
        """Takes in one judged record, after the fold did."""
        at = At(record.offset, record.broker_ms)
        producer = producer_of(event)
        self.preceding = self._last.get(producer)
        self._last[producer] = record.offset
        number, book = event["task_id"], None
        if reason == "wrong_key":
            sort, number = read_key(record.key)
            number = number if sort == "task" else None
        if number is not None:
            book = self.books.get(number)
            if book is None:
                book = self.books[number] = Book()
        if reason is None:
            envelope.check(self, at, event, record.headers)
            kind = event["kind"]
            if kind in CONTROL or kind == SEAL:
                self._control(at, event)
            else:
                assert book is not None
                self._accepted(book, at, event, kind)
        else:
            self._refused(book, at, event, reason, record.key)
        if book is not None:
            book.record_history(record.offset, reason)
            if reason is None:
                book.history_due = len(book.history)
                book.refused = ("", 0)

    def _refused(self, book: Book | None, at: At, event: Event, reason: str, key: bytes | None) -> None:
        """A rejected record changes nothing; some are worth a look."""
        if reason in ("wrong_key", "wrong_partition"):
            self.hint(1, reason, at, f"{event['kind']} with key {key!r}: no honest writer does that")
            return
        if book is None:
            return
        if event["kind"] == "TaskCompleted":
            body = event["body"]
            attempts.report(self, book, at, body["execution_id"], "SUCCESS", body["result_data_hash"])
        before, times = book.refused
        book.refused = (reason, times + 1 if reason == before else 1)
        if book.refused[1] == 3:
            self.hint(None, "rejected_in_a_row", at, f"task {event['task_id']}: third {reason} in a row")

    def _control(self, at: At, event: Event) -> None:
        if event["kind"] == "OwnershipClaimed":
            self.claims += 1
            if event["partition_epoch"] != self.claims:
                self.find(4, "epoch", at, f"claim number {self.claims} has epoch {event['partition_epoch']}")
            producer = event["producer"]
            self.claim = (producer["instance"], producer["incarnation"], event["body"]["claim_attempt"])

    def _accepted(self, book: Book, at: At, event: Event, kind: str) -> None:
        task_id = event["task_id"]
        if partition_of(task_id) != self.partition:
            self.find(1, "partition", at, f"task {task_id} belongs to partition {partition_of(task_id)}")
        if kind == "TaskCreated":
            if book.state or task_id <= self.born:
                self.find(2, "birth", at, f"task {task_id} is born again or below {self.born}")
            self.born = max(self.born, task_id)
        for check in CHECKS.get(kind, ()):
            check(self, book, at, event)
        if kind in ANNOTATIONS or kind == REPORT:
            return
        if event["event_sequence"] != book.version + 1:
            self.find(3, "event_sequence", at, f"event number {book.version + 1} has event_sequence {event['event_sequence']}")
        run = book.run_no + (kind in ("TaskCreated", "TaskReplayRequested"))
        if event["run_no"] != run:
            self.find(15, "run_no", at, f"{kind} names run {event['run_no']}, the task is in run {run}")
        if book.state in TERMINAL and kind not in ("TaskReplayRequested", "TaskReviewed"):
            self.find(9, "after_close", at, f"{kind} after {book.state}")
        _take_in(book, at, event, kind)
        task = self._fold.open.get(task_id)
        if task is not None:
            book.state = task.state

    def pending(self, last_broker_ms: int) -> None:
        """At the end of a complete log: every open task has somebody's pen pending (invariant 20)."""
        for task_id, task in self._fold.open.items():
            book = self.books[task_id]
            pen = pen_of(task.state, task.cancel_requested)
            future = task.state in ("CREATED", "RETRYING") and (book.not_before or 0) > last_broker_ms
            self.findings.add(20, "pen_pending", book.events[-1].offset, f"task {task_id} is {task.state}, "
                               f"it is {pen}'s turn", hint=future)


_CLOSES = {"TaskCompleted": "SUCCESS", "TaskFailedPermanently": "FAILED_PERMANENTLY", "TaskCancelled": "CANCELLED"}


def _take_in(book: Book, at: At, event: Event, kind: str) -> None:
    """Updates the book by an accepted task event."""
    body = event["body"]
    book.events.append(Past(kind, at.offset, event["run_no"], skips.steps_proven(kind, body)))
    book.notes.clear()
    if kind in RELEASES_END:
        book.releases = 0
    if kind == "TaskCreated":
        book.created, book.created_at, book.run_no = body, event["event_time"], 1
        book.max_retries, book.not_before, book.waiting_since = body["max_retries"], body["not_before"], event["event_time"]
    elif kind == "TaskAssigned":
        book.assignments += 1
        book.execution_id, book.assigned, book.assigned_at = body["execution_id"], body, event["event_time"]
        book.failure = None
    elif kind == "TaskStepCompleted":
        book.steps[body["done"]["step"]] = body["done"]
    elif kind == "TaskReleased":
        book.releases += 1
    elif kind == "TaskCompleted":
        book.results += 1
        book.result = body["result_data_hash"]
    elif kind == "TaskRetryApproved":
        if book.state == "LOST":
            book.lost_count += 1
        else:
            book.retry_count += 1
        book.not_before = body["not_before"]
    elif kind == "TaskRetried":
        book.waiting_since = event["event_time"]
        book.not_before = max(book.not_before or 0, body["not_before"] or 0) or None
    elif kind == "TaskReplayRequested":
        _begin_run(book, at, body)
    if kind in ("TaskFailed", "TaskTimedOut", "TaskLost"):
        book.failure = (kind, body)
    if "lease_left_ms" in body:
        book.guard_ms = at.broker_ms + body["lease_left_ms"]
    elif kind == "TaskCompleted" or kind == "TaskFailed":
        book.guard_ms = 0
    for done in body.get("steps_done", ()):
        book.steps[done["step"]] = done
    if kind in _CLOSES:
        book.state, book.closed_at = _CLOSES[kind], at.offset


def _begin_run(book: Book, at: At, body: Event) -> None:
    """A replay: counters anew, steps of the former run only if it isn't from the start."""
    book.run_no += 1
    book.retry_count = book.lost_count = book.results = 0
    book.max_retries = body["carried"]["created"]["max_retries"]
    book.inherited = {} if body["from"] == "START" else {**book.inherited, **book.steps}
    if body["from"] == "START":
        book.run_starts = book.run_no
    book.steps = {}
    book.failure = book.result = None
    book.not_before = None
    book.guard_ms = at.broker_ms + body["carried"]["lease_left_ms"]
