//! Each fact that can keep a task where it is, from what the owner knows to the words.

use std::sync::Arc;

use coordinator::owner::{AttemptFacts, Blocked, TaskSeen, WaitFacts, WhyFacts};
use snapshot_store::SnapshotRow;
use snapshot_store::conformance::{closed_row, full_row, new_row};
use task_core::Row;
use task_events::{ExecEpoch, Offset, PartitionId, TaskId, TaskState};

use super::{duration, explain};

fn id(sequence: u16) -> TaskId {
    TaskId::from_parts(95_932_800_123, PartitionId(3), sequence).expect("parts in range")
}

fn facts(row: SnapshotRow) -> WhyFacts {
    let seen = TaskSeen { row, as_of: Offset(9) };
    WhyFacts { now: 1_000_000, wait: None, attempt: None, settling: false, seen }
}

fn waiting(wait: WaitFacts) -> WhyFacts {
    WhyFacts { wait: Some(wait), ..facts(new_row(id(1))) }
}

fn live(state: TaskState, attempt: AttemptFacts) -> WhyFacts {
    let mut row = full_row(id(1));
    (row.core.state, row.core.exec_epoch, row.core.cancel_requested) = (state, ExecEpoch(2), false);
    edit(&mut row, |row| row.worker_id = "w1".into());
    WhyFacts { attempt: Some(attempt), ..facts(row) }
}

fn open(state: TaskState, cancel_requested: bool) -> WhyFacts {
    let mut row = new_row(id(1));
    (row.core.state, row.core.cancel_requested) = (state, cancel_requested);
    facts(row)
}

fn edit(row: &mut SnapshotRow, change: impl FnOnce(&mut Row)) {
    change(Arc::make_mut(&mut row.row));
}

#[track_caller]
fn says(facts: &WhyFacts, fact: &str, waits_for: &str, until: Option<i64>, words: &[&str]) {
    let view = explain(facts);
    assert_eq!((view.fact.as_str(), view.waits_for.as_str(), view.until), (fact, waits_for, until), "{view:?}");
    for word in words {
        assert!(view.text.contains(word), "{word:?} is not in {:?}", view.text);
    }
}

#[test]
fn a_task_that_waits_names_what_it_waits_for_and_the_first_thing_first() {
    let polled = WaitFacts { polled_ms_ago: Some(300), before: Some(2), ..WaitFacts::default() };
    says(&waiting(polled.clone()), "no_slot", "worker", None, &["2 tasks are before it", "300 ms ago"]);
    let one = WaitFacts { before: Some(1), ..polled.clone() };
    says(&waiting(one), "no_slot", "worker", None, &["1 task is before it"]);
    let silent = WaitFacts { polled_ms_ago: Some(65_000), ..WaitFacts::default() };
    says(&waiting(silent), "no_worker", "worker", None, &["for 65.0 s", "no task is before it"]);
    let never = WaitFacts { owned_for_ms: 180_000, ..WaitFacts::default() };
    says(&waiting(never), "no_worker", "worker", None, &["for 3 min"]);
    says(&WhyFacts { settling: true, ..waiting(polled.clone()) }, "settling", "coordinator", None, &["on its way"]);

    let blocked = WaitFacts { blocked: Some(Blocked::RowsOwed), ..polled.clone() };
    says(&WhyFacts { settling: true, ..waiting(blocked) }, "store_behind", "coordinator", None, &["store is behind"]);
    let blocked = WaitFacts { blocked: Some(Blocked::LockServer), ..polled.clone() };
    says(&waiting(blocked.clone()), "lock_server_away", "coordinator", None, &["lock.on-unavailable"]);
    let key = WaitFacts { key_held_by: Some(id(7)), ..blocked };
    let held = waiting(key.clone());
    says(&held, "concurrency_key", "worker", None, &[&id(7).to_string()]);
    assert!(explain(&held).next.is_some_and(|next| next.contains(&id(7).to_string())), "where to look next");
    let delayed = WaitFacts { due_in_ms: 5_000, ..key };
    says(&waiting(delayed.clone()), "delayed", "coordinator", Some(1_005_000), &["for 5.0 s"]);
    let paused = WaitFacts { paused: true, ..delayed };
    says(&waiting(paused), "queue_paused", "people", None, &["is paused"]);
}

#[test]
fn a_task_that_is_not_due_says_why_not() {
    let wait = WaitFacts { due_in_ms: 90_000, ..WaitFacts::default() };
    let mut retried = waiting(wait.clone());
    (retried.seen.row.core.state, retried.seen.row.core.retry_count) = (TaskState::Retrying, 2);
    says(&retried, "retry_backs_off", "coordinator", Some(1_090_000), &["retry 2 of", "90.0 s"]);
    let mut given_back = waiting(wait.clone());
    edit(&mut given_back.seen.row, |row| (row.released_in_a_row, row.not_before) = (6, None));
    says(&given_back, "given_back", "coordinator", Some(1_090_000), &["6 workers in a row"]);
    let former = waiting(WaitFacts { may_still_run_ms: 90_000, ..wait });
    says(&former, "former_attempt", "worker", Some(1_090_000), &["may still run for 90.0 s"]);
}

#[test]
fn an_attempt_says_what_it_does_and_until_when() {
    let attempt = AttemptFacts { sign_ms_ago: 4_000, lease_ends_in_ms: 56_000, ..AttemptFacts::default() };
    let runs = live(TaskState::Executing, AttemptFacts { step: Some(("pay".into(), false)), ..attempt.clone() });
    let words = ["attempt 2 on worker \"w1\"", "in step \"pay\", which must not run twice", "4.0 s ago", "56.0 s"];
    says(&runs, "executing", "worker", Some(1_056_000), &words);
    let runs = live(TaskState::Executing, AttemptFacts { step: Some(("pay".into(), true)), ..attempt.clone() });
    assert!(!explain(&runs).text.contains("twice"));
    let handed = live(TaskState::Assigned, AttemptFacts { not_started_in_ms: Some(7_000), ..attempt.clone() });
    says(&handed, "not_started", "worker", Some(1_007_000), &["comes back in 7.0 s"]);
    let optimistic = live(TaskState::Assigned, attempt.clone());
    says(&optimistic, "not_started", "worker", Some(1_056_000), &["comes back in 56.0 s"]);
    let going = live(TaskState::Assigned, AttemptFacts { under_way: true, ..attempt.clone() });
    says(&going, "handing_out", "coordinator", None, &["lock"]);
    let mut told = live(TaskState::Executing, AttemptFacts { grace_ends_in_ms: Some(9_000), ..attempt });
    told.seen.row.core.cancel_requested = true;
    says(&told, "cancelling", "worker", Some(1_009_000), &["cancel requested", "grace ends in 9.0 s"]);
}

#[test]
fn a_pen_that_is_awaited_is_named() {
    for state in [TaskState::Failed, TaskState::Lost] {
        says(&open(state, false), "verdict_awaited", "task-engine", None, &[state.as_str(), "task-engine's verdict"]);
    }
    says(&open(TaskState::RetryApproved, false), "plan_awaited", "auto-replay", None, &["plan of auto-replay"]);
    says(&open(TaskState::ReplayPlanned, false), "retry_awaited", "coordinator", None, &["the owner writes"]);
    for state in [TaskState::Created, TaskState::Failed, TaskState::RetryApproved, TaskState::Retrying] {
        says(&open(state, true), "cancelling", "coordinator", None, &["no attempt runs"]);
    }
}

#[test]
fn a_closed_task_says_how_it_ended_and_what_can_be_done() {
    for (state, fact, waits_for) in [
        (TaskState::Success, "succeeded", "nobody"),
        (TaskState::FailedPermanently, "failed_permanently", "people"),
        (TaskState::Cancelled, "cancelled", "nobody"),
    ] {
        let closed = facts(closed_row(id(1), state, 5));
        says(&closed, fact, waits_for, None, &["in run"]);
        assert!(explain(&closed).next.is_some_and(|next| next.contains(&id(1).to_string())), "{fact}");
    }
}

#[test]
fn durations_are_for_people() {
    let told = [0, 999, 1_000, 119_999, 120_000, 7_199_999, 7_200_000, 86_400_000].map(duration);
    assert_eq!(told, ["0 ms", "999 ms", "1.0 s", "119.9 s", "2 min", "119 min", "2 h", "24 h"]);
}
