"""More damages: to replays, retries, skips and plans."""

from __future__ import annotations

import copy
from typing import Any

from .author import Author, digest, skip
from .damages import Tasks, damage, forge, places

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
