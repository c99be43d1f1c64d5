"""One partition from its first record to its last: decode, fold, audit, compare, count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable

from .audit import Audit
from .book import Limits
from .container import Section
from .decode import Decoder, Event, Record
from .findings import Findings
from .fold import Fold
from .ids import read_key
from .tables import ANNOTATIONS, CONTROL, REPORT, SEAL
from .verdicts import Witness

Teller = Callable[[Record, "Event | None", str, str, str], None]


@dataclass
class Result:
    """What came out of one partition."""

    partition: int
    source: str
    start: int
    end: int = 0
    records: int = 0
    applied: int = 0
    control: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)
    open_by_state: Counter[str] = field(default_factory=Counter)
    closed_by_state: Counter[str] = field(default_factory=Counter)
    state_hash: str = ""
    stopped_at: int | None = None
    findings: Findings | None = None

    @property
    def accepted(self) -> int:
        """Accepted task events, annotations, rejected reports and control records."""
        return self.applied + self.control

    def as_json(self) -> dict[str, Any]:
        """Fields for the JSON report."""
        assert self.findings is not None
        return {
            "partition": self.partition, "source": self.source, "start_offset": self.start, "end_offset": self.end,
            "records": self.records, "accepted": self.accepted, "applied": self.applied, "control": self.control,
            "rejected": dict(sorted(self.rejected.items())), "quarantined": dict(sorted(self.quarantined.items())),
            "open": dict(sorted(self.open_by_state.items())), "closed": dict(sorted(self.closed_by_state.items())),
            "state_hash": self.state_hash, "stopped_at": self.stopped_at,
            "finding_counts": dict(sorted(self.findings.counts.items())),
            "findings": [finding.as_json() for finding in self.findings.kept],
        }


@dataclass(frozen=True)
class Options:
    """How to check."""

    limits: Limits = Limits()
    complete: bool = False


def check_section(section: Section, decoder: Decoder, witness: Witness | None = None, options: Options = Options(),
                  tell: Teller | None = None) -> Result:
    """Checks one partition. `tell` is called with each record, its event, verdict and the state before and after."""
    result = Result(section.partition, section.source, section.start)
    findings = result.findings = Findings(section.partition)
    fold = Fold(section.partition)
    audit = Audit(fold, findings, options.limits)
    if section.start != 0:
        findings.add(19, "no_beginning", section.start, f"the log begins at offset {section.start}, a fold begins at 0")
    last_ms = _run(section.records(), result, fold, audit, decoder, witness, tell)
    stopped = result.stopped_at is not None
    if section.problem is not None:
        findings.add(19, "cut_off", result.end, section.problem)
    if section.end is not None and section.end != result.end and not stopped:
        findings.add(19, "end_differs", result.end, f"the last record ends at {result.end}, the dump says {section.end}")
    total = result.accepted + sum(result.rejected.values()) + sum(result.quarantined.values())
    if total != result.end - result.start:
        findings.add(19, "sum", None, f"{total} records are accounted for, offsets span {result.end - result.start}")
    if witness is not None:
        witness.finish(findings, result.start, result.end, stopped)
    if options.complete and not stopped:
        audit.pending(last_ms)
    result.state_hash = fold.state_hash()
    for task in fold.open.values():
        result.open_by_state[task.state] += 1
    for task_id, book in audit.books.items():
        if book.events and task_id not in fold.open:
            result.closed_by_state[book.state] += 1
    return result


def _run(records: Iterable[Record], result: Result, fold: Fold, audit: Audit, decoder: Decoder, witness: Witness | None,
         tell: Teller | None) -> int:
    """The loop over the records; returns the broker's stamp of the last one."""
    findings, expected, last_ms = audit.findings, result.start, 0
    for record in records:
        offset, last_ms = record.offset, record.broker_ms
        if offset != expected:
            findings.add(19, "offset_gap", offset, f"offset {offset} where {expected} should be")
        expected = offset + 1
        result.records += 1
        event = decoder.decode(record.headers, record.value)
        fold.tick(record.broker_ms)
        before = after = ""
        if isinstance(event, str):
            result.quarantined[event] += 1
            verdict, event = f"quarantined:{event}", None
            sort, number = read_key(record.key)
            findings.add(None, "quarantined", offset, f"{verdict}, key {sort} {number}", hint=True)
        else:
            kind, task_id = event["kind"], event["task_id"]
            if tell is not None:
                before = audit.books[task_id].state if task_id in audit.books else ""
            reason = fold.judge(record.key, event)
            audit.record(record, event, reason)
            if reason is not None:
                result.rejected[reason] += 1
                verdict = f"rejected:{reason}"
            else:
                verdict = "accepted"
                if kind in CONTROL or kind == SEAL:
                    result.control += 1
                else:
                    result.applied += 1
            if tell is not None and reason is None and kind not in ANNOTATIONS and kind != REPORT and task_id is not None:
                after = audit.books[task_id].state
        if witness is not None:
            witness.compare(findings, record, event, verdict, fold.state_hash)
        if tell is not None:
            tell(record, event, verdict, before, after)
        if fold.stopped:
            result.stopped_at = offset
            findings.add(None, "unknown_rules", offset, f"rules {fold.active_rules} are active from here on; this checker knows 1")
            break
    result.end = expected
    return last_ms
