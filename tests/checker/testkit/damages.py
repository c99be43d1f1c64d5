"""Ways to damage a log, each as an auditor might meet it: a function from a good author to damaged records.

Every damage gets its own copy of the log of `tales.every_kind`. Where a field is forged, the checksum is made good
again (whoever forges a field knows how to compute a CRC); `flip` is the one that doesn't.
"""

from __future__ import annotations

import copy
from typing import Any, Callable

from .author import Author
from .ledger import Entry

from checker import ids
from checker.decode import Record

Tasks = dict[str, int]
Damage = Callable[[Author, Tasks], list[Record]]
DAMAGES: dict[str, tuple[str, Damage]] = {}


def damage(code: str) -> Callable[[Damage], Damage]:
    """Registers a damage under its name, with a code among its findings."""

    def register(function: Damage) -> Damage:
        DAMAGES[function.__name__] = (code, function)
        return function

    return register


def places(a: Author, kind: str, task_id: int | None = None) -> list[int]:
    """Offsets of the records of a kind."""
    return [offset for offset, entry in enumerate(a.entries)
            if entry.event and entry.event["kind"] == kind and task_id in (None, entry.event["task_id"])]


def forge(a: Author, offset: int, **fields: Any) -> list[Record]:
    """Overwrites fields of the envelope (or of the body, if it has them) and repairs the checksum."""
    entry = a.entries[offset] = copy.deepcopy(a.entries[offset])
    for name, value in fields.items():
        target = entry.event["body"] if name in entry.event["body"] else entry.event
        assert name in target, name
        target[name] = value
    return a.records()


def raw(a: Author, offset: int, **parts: Any) -> list[Record]:
    """Overwrites raw parts of a record."""
    records = a.records()
    records[offset] = records[offset]._replace(**parts)
    return records


@damage("verdict_differs")
def bit_flip_in_value(a, t):
    record = a.records()[12]
    value = bytearray(record.value)
    value[40] ^= 4
    return raw(a, 12, value=bytes(value))


@damage("verdict_differs")
def bit_flip_in_crc_header(a, t):
    record = a.records()[12]
    headers = [(name, bytes([content[0] ^ 1]) + content[1:] if name == b"crc32c" else content) for name, content in record.headers]
    return raw(a, 12, headers=headers)


@damage("verdict_differs")
def header_removed(a, t):
    return raw(a, 12, headers=[pair for pair in a.records()[12].headers if pair[0] != b"kind"])


@damage("verdict_differs")
def value_removed(a, t):
    return raw(a, 12, value=None)


@damage("offset_gap")
def record_deleted(a, t):
    records = a.records()
    del records[20]
    return records


@damage("verdict_differs")
def record_deleted_and_renumbered(a, t):
    del a.entries[20]
    return a.records()


@damage("record_missing")
def harmless_record_deleted_and_renumbered(a, t):
    del a.entries[places(a, "TaskOverdue")[0]]
    return a.records()


@damage("verdict_differs")
def two_records_swapped(a, t):
    offset = places(a, "TaskStarted", t["plain"])[0]
    a.entries[offset], a.entries[offset + 1] = a.entries[offset + 1], a.entries[offset]
    return a.records()


@damage("not_witnessed")
def record_duplicated(a, t):
    offset = places(a, "TaskStepCompleted", t["plain"])[0]
    a.entries.insert(offset + 1, a.entries[offset])
    return a.records()


@damage("step_twice")
def record_duplicated_with_forged_numbers(a, t):
    offset = places(a, "TaskStepCompleted", t["plain"])[1]
    a.entries.insert(offset + 1, copy.deepcopy(a.entries[offset]))
    event = a.entries[offset + 1].event
    event["owner_seq"] += 1
    event["event_sequence"] += 1
    for entry in a.entries[offset + 2:]:
        if entry.event and entry.event["partition_epoch"] == 1 and entry.event["owner_seq"] is not None:
            entry.event["owner_seq"] += 1
        if entry.event and entry.event["task_id"] == t["plain"]:
            entry.event["event_sequence"] += 1
    return a.records()


@damage("verdict_differs")
def partition_epoch_forged(a, t):
    return forge(a, 12, partition_epoch=2)


@damage("former_owner")
def zombie_made_current(a, t):
    offset = next(o for o in places(a, "TaskCompleted", t["taken over"]) if a.entries[o].event["partition_epoch"] == 1)
    return forge(a, offset, partition_epoch=2, owner_seq=1)


@damage("former_owner")
def claim_forged(a, t):
    event = copy.deepcopy(a.entries[places(a, "OwnershipClaimed")[1]].event)
    event["producer"]["instance"] = "evil"
    event["partition_epoch"] = 2
    a.entries.insert(30, Entry(event, b"#7", a.entries[30].broker_ms))
    return a.records()


@damage("verdict_differs")
def claim_with_skipped_epoch(a, t):
    return forge(a, places(a, "OwnershipClaimed")[1], partition_epoch=3)


@damage("verdict_differs")
def claim_deleted_and_renumbered(a, t):
    del a.entries[places(a, "OwnershipClaimed")[1]]
    return a.records()


@damage("verdict_differs")
def double_assignment(a, t):
    offset = places(a, "TaskStarted", t["lost"])[0]
    a.entries[offset] = copy.deepcopy(a.entries[offset - 1])
    event = a.entries[offset].event
    event["owner_seq"] += 1
    event["event_sequence"] += 1
    event["exec_epoch"] += 1
    event["body"]["execution_id"] = ids.execution_id(t["lost"], 2)
    return a.records()


@damage("verdict_differs")
def event_sequence_gap(a, t):
    for offset, entry in enumerate(a.entries[places(a, "TaskStepCompleted", t["plain"])[0]:]):
        if entry.event and entry.event["task_id"] == t["plain"]:
            entry.event["event_sequence"] += 1
    return a.records()


@damage("event_id")
def step_deleted_and_all_that_follows_forged(a, t):
    offset = places(a, "TaskStepCompleted", t["plain"])[0]
    del a.entries[offset]
    for entry in a.entries[offset:]:
        if entry.event and entry.event["task_id"] == t["plain"]:
            entry.event["event_sequence"] -= 1
        if entry.event and entry.event["partition_epoch"] == 1 and entry.event["owner_seq"] is not None:
            entry.event["owner_seq"] -= 1
    return a.records()


@damage("foreign_writer")
def foreign_writer(a, t):
    event = a.entries[places(a, "TaskRetryApproved")[0]].event
    return forge(a, places(a, "TaskRetryApproved")[0], producer={**event["producer"], "service": "AUTO_REPLAY"})


@damage("foreign_writer")
def owner_kind_by_engine(a, t):
    offset = places(a, "TaskCompleted", t["plain"])[0]
    return forge(a, offset, producer={"service": "TASK_ENGINE", "instance": "e-1", "incarnation": 500})


@damage("former_owner")
def former_owner_with_current_epoch(a, t):
    offset = places(a, "TaskAssigned", t["replayed"])[0]
    return forge(a, offset, producer={"service": "COORDINATOR", "instance": "c-1", "incarnation": 99})


@damage("execution_id")
def assignment_under_another_execution_id(a, t):
    other = ids.execution_id(t["plain"], 99)
    records = forge(a, places(a, "TaskAssigned", t["plain"])[0], execution_id=other)
    for kind in ("TaskStarted", "TaskStepCompleted", "TaskCompleted"):
        for offset in places(a, kind, t["plain"]):
            records = forge(a, offset, execution_id=other)
    return records


@damage("verdict_differs")
def report_of_another_attempt(a, t):
    return forge(a, places(a, "TaskCompleted", t["failing"])[0], exec_epoch=1)
