"""More damages: to timers, the ends of the log, ids, results and annotations."""

from __future__ import annotations

import copy
from typing import Any

from .author import Author, digest
from .damages import damage, forge, places, raw
from .ledger import Entry


@damage("early_assignment")
def early_assignment_by_event_time(a, t):
    offset = places(a, "TaskAssigned", t["failing"])[0]
    return forge(a, offset, event_time=a.entries[offset].event["event_time"] - 50_000)


@damage("early_assignment")
def early_assignment_by_broker_time(a, t):
    for entry in a.entries:
        if entry.event and entry.event["kind"] == "TaskCreated" and entry.event["task_id"] == t["failing"]:
            entry.event["body"]["not_before"] += 3_000
    return a.records()


@damage("early_timeout")
def early_deadline(a, t):
    offset = places(a, "TaskTimedOut", t["dead"])[0]
    return forge(a, offset, event_time=a.entries[offset].event["event_time"] - 30_000)


@damage("early_timeout")
def early_start_to_close(a, t):
    offset = places(a, "TaskTimedOut", t["slow"])[0]
    return forge(a, offset, event_time=a.entries[offset].event["event_time"] - 30_000)


@damage("early_timeout")
def early_schedule_to_start(a, t):
    offset = places(a, "TaskTimedOut", t["unscheduled"])[0]
    return forge(a, offset, event_time=a.entries[offset].event["event_time"] - 30_000)


@damage("timeout_without_limit")
def timeout_of_a_limit_the_task_has_not(a, t):
    return forge(a, places(a, "TaskTimedOut", t["unscheduled"])[0], timeout="DEADLINE")


@damage("record_missing")
def tail_truncated(a, t):
    return a.records()[:-3]


@damage("not_witnessed")
def tail_invented(a, t):
    event = copy.deepcopy(a.entries[-2].event)
    event["owner_seq"] += 1
    return a.records() + [Entry(event, b"#7", a.now).at(len(a.entries))]


@damage("offset_gap")
def head_truncated(a, t):
    return a.records()[2:]


@damage("verdict_differs")
def wrong_key(a, t):
    return raw(a, places(a, "TaskStepCompleted", t["plain"])[0], key=b"%d" % t["failing"])


@damage("verdict_differs")
def id_of_another_partition(a, t):
    offset = places(a, "TaskCreated", t["failing"])[0]
    other = t["failing"] & ~(0x3FF << 12) | 8 << 12
    return raw(a, offset, key=b"%d" % other, **_reencoded(a, offset, task_id=other))


def _reencoded(a: Author, offset: int, **fields: Any) -> dict[str, Any]:
    record = forge(a, offset, **fields)[offset]
    return {"value": record.value, "headers": record.headers}


@damage("verdict_differs")
def lower_id_birth(a, t):
    lower = t["plain"] - 1
    offset = places(a, "TaskCreated", t["failing"])[0]
    return raw(a, offset, key=b"%d" % lower, **_reencoded(a, offset, task_id=lower))


@damage("not_witnessed")
def two_results_in_one_run(a, t):
    offset = places(a, "TaskCompleted", t["plain"])[0]
    entry = copy.deepcopy(a.entries[offset])
    entry.event["owner_seq"] += 1
    entry.event["event_sequence"] += 1
    entry.event["body"]["result_data_hash"] = digest("other")
    a.entries.insert(offset + 1, entry)
    return a.records()


@damage("carried_result_data_hash")
def result_replaced(a, t):
    return forge(a, places(a, "TaskCompleted", t["replayed"])[0], result_data_hash=digest("evil"))


@damage("error_message")
def error_message_too_long(a, t):
    return forge(a, places(a, "TaskFailed", t["failing"])[0], error_message="é" * 257)


@damage("annotation_apart")
def annotation_apart_from_its_event(a, t):
    place = places(a, "TaskFailureAnalysis")[0] + 1
    assert a.entries[place].event["kind"] == "TaskFailed"
    entry = copy.deepcopy(a.entries[places(a, "TaskOverdue")[0]])
    entry.event["owner_seq"] = a.entries[place].event["owner_seq"]
    entry.event["partition_epoch"] = a.entries[place].event["partition_epoch"]
    for later in a.entries[place:]:
        if later.event and later.event["partition_epoch"] == entry.event["partition_epoch"] and later.event["owner_seq"] is not None:
            later.event["owner_seq"] += 1
    a.entries.insert(place, entry)
    return a.records()


@damage("overdue_twice")
def overdue_said_twice(a, t):
    offset = places(a, "TaskOverdue")[0]
    entry = copy.deepcopy(a.entries[offset])
    for later in a.entries[offset + 1:]:
        if later.event and later.event["partition_epoch"] == 1 and later.event["owner_seq"] is not None:
            later.event["owner_seq"] += 1
    entry.event["owner_seq"] += 1
    a.entries.insert(offset + 1, entry)
    return a.records()


@damage("event_id")
def event_id_forged(a, t):
    return forge(a, places(a, "TaskRetried", t["lost"])[0], event_id=bytes(15) + b"\1")


@damage("event_id")
def seal_over_another_range(a, t):
    offset = places(a, "LogSealed")[0]
    return forge(a, offset, note="dualtrack/7\n40\nAAAA\n\n- audit AAAA\n")


@damage("traceparent")
def traceparent_damaged(a, t):
    record = a.records()[13]
    return raw(a, 13, headers=[(name, b"00-0-0-0" if name == b"traceparent" else content) for name, content in record.headers])


@damage("traceparent")
def traceparent_of_another_trace(a, t):
    return forge(a, 13, trace_id="a" * 32)


@damage("state_hash")
def broker_stamp_changed(a, t):
    return raw(a, 12, broker_ms=a.records()[12].broker_ms + 3_600_000)
