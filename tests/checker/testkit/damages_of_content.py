"""More damages: to replays, retries, skips, timers, tails, ids and annotations."""

from __future__ import annotations

import copy
from typing import Any

from .author import Author, Entry, digest, skip
from .damages import Tasks, damage, forge, places, raw

from checker import ids
from checker.decode import Record


@damage("verdict_differs")
def terminal_state_left_without_replay(a, t):
    offset = places(a, "TaskReplayRequested", t["replayed"])[0]
    a.entries[offset].event["kind"] = "TaskRetried"
    a.entries[offset].event["body"] = {"not_before": None}
    return a.records()


def _carried(a: Author, t: Tasks, **fields: Any) -> list[Record]:
    offset = places(a, "TaskReplayRequested", t["replayed"])[0]
    carried = copy.deepcopy(a.entries[offset].event["body"]["carried"])
    return forge(a, offset, carried={**carried, **fields})


@damage("carried_state")
def replay_carrying_another_state(a, t):
    return _carried(a, t, state="SUCCESS")


@damage("exec_epoch")
def replay_carrying_another_attempt(a, t):
    offset = places(a, "TaskReplayRequested", t["replayed"])[0]
    epoch = a.entries[offset].event["body"]["carried"]["exec_epoch"]
    for entry in a.entries[offset:]:
        if entry.event and entry.event["task_id"] == t["replayed"] and entry.event["kind"] != "TaskReplayRequested":
            entry.event["exec_epoch"] -= 1
    return _carried(a, t, exec_epoch=epoch - 1)


@damage("carried_created")
def replay_carrying_another_payload(a, t):
    offset = places(a, "TaskReplayRequested", t["replayed"])[0]
    return _carried(a, t, created={**a.entries[offset].event["body"]["carried"]["created"], "payload_hash": digest("evil")})


@damage("carried_steps")
def replay_without_its_steps(a, t):
    return _carried(a, t, steps=[])


@damage("carried_steps")
def replay_with_foreign_steps(a, t):
    steps = a.entries[places(a, "TaskReplayRequested", t["replayed"])[0]].event["body"]["carried"]["steps"]
    return _carried(a, t, steps=steps + [{**steps[0], "step": "ship"}])


@damage("state_hash")
def replay_with_more_retries(a, t):
    created = a.entries[places(a, "TaskReplayRequested", t["replayed"])[0]].event["body"]["carried"]["created"]
    return _carried(a, t, created={**created, "max_retries": 9})


@damage("event_sequence")
def replay_under_a_higher_version(a, t):
    offset = places(a, "TaskReplayRequested", t["replayed"])[0]
    carried = a.entries[offset].event["body"]["carried"]
    for entry in a.entries[offset:]:
        if entry.event and entry.event["task_id"] == t["replayed"]:
            entry.event["event_sequence"] += 1
    return _carried(a, t, event_sequence=carried["event_sequence"] + 1)


@damage("verdict_differs")
def retry_beyond_max(a, t):
    return forge(a, places(a, "TaskCreated", t["failing"])[0], max_retries=0)


@damage("counts")
def retry_counted_wrong(a, t):
    return forge(a, places(a, "TaskRetryApproved", t["lost"])[1], lost_count=1)


@damage("not_retryable")
def retry_of_a_non_retryable_failure(a, t):
    forge(a, places(a, "TaskFailureAnalysis")[0], category="NON_RETRYABLE")
    return forge(a, places(a, "TaskFailed", t["failing"])[0], category="NON_RETRYABLE")


@damage("not_retryable")
def retry_of_a_deadline(a, t):
    offset = places(a, "TaskFailedPermanently", t["dead"])[0]
    body = copy.deepcopy(a.entries[places(a, "TaskRetryApproved", t["replayed"])[0]].event["body"])
    return _swap_body(a, offset, "TaskRetryApproved", body)


def _swap_body(a: Author, offset: int, kind: str, body: dict[str, Any]) -> list[Record]:
    event = a.entries[offset].event
    event["kind"], event["body"] = kind, body
    event["event_id"] = ids.name_uuid(f"verdict|{event['task_id']}|{event['event_sequence']}|{kind}|e-1|0")
    return a.records()


@damage("backoff")
def backoff_beyond_the_cap(a, t):
    return forge(a, places(a, "TaskRetryApproved", t["failing"])[0], backoff_ms=86_400_000)


@damage("policy_version")
def verdict_without_policy(a, t):
    return forge(a, places(a, "TaskFailedPermanently", t["slow"])[0], policy_version=0)


@damage("skip_unproven")
def skip_without_evidence(a, t):
    forge(a, places(a, "TaskSkippedByPolicy", t["failing"])[0], skipped=skip("pick"))
    return forge(a, places(a, "TaskRetryApproved", t["failing"])[0], skip=[skip("pick")])


@damage("skip_unproven")
def skip_of_a_step_not_declared_idempotent(a, t):
    return forge(a, places(a, "TaskFailed", t["failing"])[0], is_idempotent=False)


@damage("plan_basis")
def plan_resting_on_the_future(a, t):
    return forge(a, places(a, "TaskReplayPlanned", t["failing"])[0], based_on=[40])


@damage("foreign_run")
def plan_citing_a_run_left_behind(a, t):
    offset = places(a, "TaskReplayPlanned", t["replayed"])[-1]
    return forge(a, offset, skip=[skip("pick", 4)], resume_index=1)


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
    overdue = a.entries.pop(places(a, "TaskOverdue")[0])
    a.entries.insert(places(a, "TaskRetryApproved", t["failing"])[0], overdue)
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


@damage("state_hash")
def broker_stamp_changed(a, t):
    return raw(a, 12, broker_ms=a.records()[12].broker_ms + 3_600_000)
