"""What an author of logs writes on: records in the making, and what it knows of its tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .encode import record_of

from checker import ids
from checker.decode import Record

NOW = 1_800_000_000_000
TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@dataclass
class Entry:
    """One record before it has an offset; `raw` replaces the encoded one."""

    event: dict[str, Any] | None
    key: bytes | None
    broker_ms: int
    raw: Record | None = None

    def at(self, offset: int) -> Record:
        """The record at an offset."""
        if self.raw is not None:
            return self.raw._replace(offset=offset, broker_ms=self.broker_ms)
        return record_of(offset, self.broker_ms, self.key, self.event, TRACE if offset % 2 else None)


@dataclass
class Known:
    """The author's idea of a task."""

    created: dict[str, Any]
    created_at: int
    version: int = 1
    run: int = 1
    epoch: int = 0
    execution: bytes = ids.NO_ATTEMPT
    retries: int = 0
    losses: int = 0
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    history: list[tuple[int, int]] = field(default_factory=list)
    closed: tuple[str, int] | None = None
    worker: str = ""
    result: bytes | None = None


class Ledger:
    """A partition's log in the making: envelopes with right numbers and ids, appended in order."""

    def __init__(self, partition: int = 7) -> None:
        self.partition = partition
        self.now = NOW
        self.entries: list[Entry] = []
        self.tasks: dict[int, Known] = {}
        self.epoch = 0
        self.owner = ("c-1", 99, 0)
        self._owner_seq = 0
        self._sequence = 0
        self._tries = 0

    # -- raw material

    def later(self, ms: int) -> None:
        """Lets time pass."""
        self.now += ms

    def records(self) -> list[Record]:
        """The log, offsets from 0."""
        return [entry.at(offset) for offset, entry in enumerate(self.entries)]

    def append(self, event: dict[str, Any], key: bytes | None = None, verdict: int = 0) -> None:
        """Appends an event; `verdict` is the history code its record will get."""
        task_id = event["task_id"]
        if key is None:
            key = b"#%d" % self.partition if task_id is None else b"%d" % task_id
        if task_id in self.tasks and key == b"%d" % task_id:
            self.tasks[task_id].history.append((len(self.entries), verdict))
        self.entries.append(Entry(event, key, self.now))
        self.now += 1

    def junk(self, value: bytes | None, headers: list[tuple[bytes, bytes | None]], key: bytes | None = b"#7") -> None:
        """Appends a malformed record."""
        self.entries.append(Entry(None, key, self.now, Record(0, 0, key, headers, value)))
        self.now += 1

    def event(self, kind: str, body: dict[str, Any], **over: Any) -> dict[str, Any]:
        """An envelope with the next numbers; `over` forges fields."""
        task = self.tasks.get(over.get("task_id", -1))
        service = over.pop("service", "COORDINATOR")
        instance, incarnation, claim_attempt = over.pop("owner", self.owner)
        names = {"TASK_ENGINE": ("e-1", 500), "AUTO_REPLAY": ("r-1", 600), "AUDIT_REPORT": ("a-1", 700)}
        instance, incarnation = names.get(service, (instance, incarnation))
        event = {
            "event_id": bytes(16), "kind": kind, "event_sequence": task.version + 1 if task else 0, "task_id": None,
            "run_no": task.run if task else 0, "exec_epoch": task.epoch if task else 0, "partition_epoch": None,
            "owner_seq": None, "event_time": self.now, "trace_id": "", "causation_id": None,
            "producer": {"service": service, "instance": instance, "incarnation": incarnation}, "rule_version": 1,
            "body": body,
        }
        tries = over.pop("tries", 0)
        if service == "COORDINATOR":
            self._owner_seq += 1
            event["partition_epoch"], event["owner_seq"] = self.epoch, self._owner_seq
        event.update(over)
        if event["event_id"] == bytes(16):
            event["event_id"] = self._event_id(event, claim_attempt, tries)
        return event

    def _event_id(self, event: dict[str, Any], claim_attempt: int, tries: int) -> bytes:
        producer = event["producer"]
        if producer["service"] == "COORDINATOR":
            return ids.name_uuid(f"owner|{self.partition}|{event['partition_epoch']}|{event['owner_seq']}"
                                 f"|{producer['instance']}|{producer['incarnation']}|{claim_attempt}")
        if event["kind"] == "LogSealed":
            return ids.name_uuid(f"seal|{self.partition}|{event['body']['note'].split(chr(10))[1]}|{producer['instance']}")
        return ids.name_uuid(f"verdict|{event['task_id']}|{event['event_sequence']}|{event['kind']}|{producer['instance']}|{tries}")
