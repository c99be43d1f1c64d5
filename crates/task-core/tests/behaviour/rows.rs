//! What stands beside the judged state.

use task_core::decide::{View, due_timeout};
use task_events::{ErrorCategory, Kind, RecordKey, TaskState, TimeoutKind};

use crate::kit::{play, task};
use crate::notation::right;

#[test]
fn every_record_with_the_tasks_key_is_in_its_history() {
    let w = play("claim | submit t1 | submit t2 key=t1 => rejected(wrong_key) | assign t1 p=9.9 => rejected(stale_epoch)
                  overdue t1 | reject t1 | assign t2 => rejected(unknown_task) | assign t1 => malformed | renew key=t1 => rejected(wrong_key) | cancel t1");
    let (key, stale) = (Some("wrong_key"), Some("stale_epoch"));
    assert_eq!(w.history(1), [(1, None), (2, key), (3, stale), (4, None), (5, None), (8, key), (9, None)]);
    let row = w.row(1);
    assert_eq!((row.applied_offset.0, row.row_clock_us), (9, 9_000_000));
}

#[test]
fn a_rejected_record_moves_the_rows_time_but_not_its_offset() {
    let w = play("claim | submit t1 | assign t1 s=9 => rejected(stale_sequence)");
    let row = w.row(1);
    assert_eq!((row.applied_offset.0, row.changed_broker_ms, row.row_clock_us), (1, 1_000, 2_000_000));
}

#[test]
fn a_history_holds_512_entries_and_counts_the_rest() {
    let w = play(&format!("claim | submit t1 {}", "| plan t1 => rejected(not_allowed)".repeat(511)));
    assert_eq!((w.row(1).history.len(), w.row(1).history_overflow), (512, 0));
    let w = w.then("assign t1 | plan t1 => rejected(not_allowed) | complete t1");
    let row = w.row(1);
    assert_eq!((row.history.len(), row.history_overflow, row.applied_offset.0), (512, 3, 515));
    let row = w.then("replay t1").row(1);
    assert_eq!((row.history.len(), row.history_overflow), (512, 1));
}

#[test]
fn steps_are_known_by_name() {
    let steps = |w: &crate::kit::World| {
        w.row(1).steps.iter().map(|s| (s.done.step.to_string(), s.done.index, s.evidence.0)).collect::<Vec<_>>()
    };
    let w = play("claim | submit t1 | assign t1 | start t1 | step t1 b#1 | step t1 a#0 | step t1 b#1");
    assert_eq!(steps(&w), [("a".into(), 0, 5), ("b".into(), 1, 4)], "the first report is the evidence");
    let w = w.then(
        "fail t1 done=a#0,b#1,c#2 | approve t1 | plan t1 | retry t1 | assign t1 | start t1 | step t1 x#1 | step t1 b#2",
    );
    let now = [("a".into(), 0, 5), ("x".into(), 1, 13), ("b".into(), 2, 14), ("c".into(), 2, 7)];
    assert_eq!(steps(&w), now, "another handler version moved b, and x pushes nobody out");
}

#[test]
fn failures_and_what_success_leaves_of_them() {
    let w = play("claim | submit t1 | assign t1 w1 | start t1 | fail t1 OOPS cat=RESOURCE in=pay idem=false at=900");
    let row = w.row(1);
    assert_eq!((row.error_code.as_deref(), row.category), (Some("OOPS"), Some(ErrorCategory::Resource)));
    assert_eq!(
        (row.failed_step.as_deref(), row.failed_step_idempotent, row.end_time),
        (Some("pay"), Some(false), Some(900))
    );
    let w = w.then("approve t1 | plan t1 | retry t1 | assign t1");
    assert_eq!((w.row(1).start_time, w.row(1).error_code.as_deref()), (None, Some("OOPS")));
    let row = w.then("complete t1 at=990").row(1);
    assert_eq!((row.error_code, row.category, row.failed_step, row.end_time), (None, None, None, Some(990)));
    let row = play("claim | submit t1 | assign t1 | lose t1 in=pay").row(1);
    assert_eq!((row.error_code.as_deref(), row.failed_step.as_deref()), (Some("WORKER_LOST"), Some("pay")));
    let row = play("claim | submit t1 | assign t1 | start t1 | timeout t1 START_TO_CLOSE").row(1);
    assert_eq!((row.error_code.as_deref(), row.failed_step), (Some("TIMEOUT_START_TO_CLOSE"), None));
}

#[test]
fn what_is_left_of_a_lease_stays_until_the_worker_stopped_or_the_next_attempt_began() {
    let lost = play("claim | submit t1 | assign t1 | lose t1 ll=70");
    assert_eq!(lost.row(1).lease_left_ms, 70);
    let waiting = lost.then("approve t1 | plan t1 | retry t1 | timeout t1 ll=0");
    assert_eq!(waiting.row(1).lease_left_ms, 70, "a timeout without an attempt says nothing of the one before");
    assert_eq!(
        waiting.then("giveup t1 | replay t1 | plan t1 | retry t1").row(1).lease_left_ms,
        70,
        "carried into a replay"
    );
    for (then, left) in
        [("release t1 ll=30", 30), ("timeout t1 ll=40", 40), ("lose t1 ll=50", 50), ("complete t1", 0), ("fail t1", 0)]
    {
        let w = play(&format!("claim | submit t1 | assign t1 | {then}"));
        assert_eq!(w.row(1).lease_left_ms, left, "{then}");
    }
    assert_eq!(play("claim | submit t1 | assign t1 | lose t1 ll=70 | complete t1 e=1").row(1).lease_left_ms, 0);
    assert_eq!(play("claim | submit t1 | assign t1 | cancel t1 | cancelled t1 ll=9").row(1).lease_left_ms, 9);
    assert_eq!(play("claim | submit t1 | assign t1 | release t1 ll=30 | assign t1").row(1).lease_left_ms, 0);
}

#[test]
fn releases_in_a_row_and_the_workers_to_avoid() {
    let w = play(
        "claim | submit t1 | assign t1 w1 | release t1 DECLINED | assign t1 w2 | release t1 DRAIN | assign t1 w1 | release t1 NOT_STARTED",
    );
    let row = w.row(1);
    assert_eq!((row.released_in_a_row, row.avoid_workers.len()), (3, 1), "who drains is gone anyway");
    let w = w.then("timeout t1 | approve t1 avoid=w3 | plan t1 | retry t1 | assign t1 w2 | release t1");
    assert_eq!((w.row(1).released_in_a_row, w.row(1).avoid_workers.as_slice()), (1, &["w3".into()][..]));
    for end in ["start t1", "fail t1", "lose t1"] {
        assert_eq!(
            play(&format!("claim | submit t1 | assign t1 | release t1 | assign t1 | {end}")).row(1).released_in_a_row,
            0
        );
    }
}

#[test]
fn not_before_is_the_latest_that_was_said_in_this_run() {
    let w = play("claim | submit t1 nb=500 | assign t1 | release t1");
    assert_eq!(w.row(1).not_before, Some(500), "a release keeps it");
    let w = w.then("timeout t1 | approve t1 nb=900 | plan t1");
    assert_eq!(w.row(1).not_before, Some(900));
    let w = w.then("retry t1");
    assert_eq!(w.row(1).not_before, Some(900), "even if the owner forgot to repeat it");
    assert_eq!(w.then("timeout t1 | giveup t1 | replay t1").row(1).not_before, None, "people want it now");
}

#[test]
fn overdue_is_noted_per_state_and_run() {
    let w = play("claim | submit t1 | overdue t1 | assign t1 | fail t1 | overdue t1");
    let noted = |w: &crate::kit::World, s| w.row(1).is_overdue_noted(s);
    assert!(noted(&w, TaskState::Created) && noted(&w, TaskState::Failed) && !noted(&w, TaskState::Assigned));
    let w = w.then("giveup t1 | replay t1");
    assert!(!noted(&w, TaskState::Failed), "another run");
}

#[test]
fn the_row_of_a_review_is_that_of_the_closed_task_with_one_entry_more() {
    let w = play("claim | submit t1 | assign t1 w1 | fail t1 OOPS | giveup t1 OOPS");
    let before = w.closed[&task(1)].clone();
    let w = w.then("review t1");
    let after = &w.closed[&task(1)];
    assert_eq!((after.core.state, after.row.error_code.as_deref()), (TaskState::FailedPermanently, Some("OOPS")));
    assert_eq!((after.row.history.len(), after.row.applied_offset.0), (before.row.history.len() + 1, 5));
    assert!(after.row.row_clock_us > before.row.row_clock_us);
    assert_eq!((&after.row.worker_id, after.row.end_time), (&before.row.worker_id, before.row.end_time));
}

// `assign t1` by an owner whose wall clock is right, then `start t1` by its successor, whose clock
// is a second behind: the attempt ran out of its time before that much had passed since it was
// assigned.
#[test]
fn the_time_of_an_attempt_counts_from_the_brokers_stamp_of_its_start() {
    let mut w = play("claim | submit t1 | assign t1");
    let mut start = right(&w, Kind::TaskStarted, task(1));
    start.event_time -= 1_000;
    let key = RecordKey::Task(task(1)).to_bytes();
    w.append_as(&start, key, 50_000, false);
    let row = w.row(1);
    let limit = row.created.timeouts.start_to_close_ms as i64;
    let core = w.state.tasks.get(task(1)).unwrap().core;
    let due = due_timeout(View { core: &core, row: &row });
    assert_eq!(due, Some((50_000 + limit, TimeoutKind::StartToClose)));
}
