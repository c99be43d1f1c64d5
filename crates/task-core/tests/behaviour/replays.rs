//! Closed tasks: forgotten, reviewed, opened again by what the record carries.

use task_core::{Change, Verdict};
use task_events::TaskState;

use crate::kit::{play, task};

const DONE: &str = "claim | submit t1 max=1 | assign t1 w1 | complete t1 => SUCCESS";

#[test]
pub fn a_closed_task_is_forgotten_at_once() {
    let w = play(&format!(
        "{DONE} | start t1 => rejected(unknown_task) | cancel t1 => rejected(unknown_task)
                           overdue t1 => rejected(unknown_task) | approve t1 => rejected(unknown_task) | reject t1"
    ));
    assert!(w.state.tasks.is_empty());
    assert_eq!(w.state.tasks.hash_sum(), 0);
}

#[test]
pub fn a_replay_opens_the_next_run_with_counters_anew() {
    let w = play("claim | submit t1 max=1 | assign t1 | lose t1 | approve t1 | plan t1 | retry t1 | assign t1 | fail t1 | approve t1 | plan t1
                  retry t1 | assign t1 | fail t1 | giveup t1 | replay t1 => RETRY_APPROVED");
    let core = w.core(1);
    assert_eq!((core.run_no.0, core.retry_count, core.lost_count, core.max_retries), (2, 0, 0, 1));
    assert_eq!((core.version.0, core.exec_epoch.0), (15, 3), "sequence and fencing token go on");
    w.then("complete t1 e=3 => rejected(not_allowed) | complete t1 r=1 => rejected(wrong_run) | plan t1 | retry t1 | assign t1 e=4
            complete t1 e=3 => rejected(wrong_attempt) | complete t1 e=4 => SUCCESS");
}

#[test]
pub fn a_replay_needs_a_closed_task_of_this_partition() {
    play("claim | replay t1 c=SUCCESS/1/3/1/1 => rejected(unknown_task) | review t1 c=SUCCESS/1/3/1/1 => rejected(unknown_task)
          submit t2 | replay t2 => rejected(task_open) | review t2 => rejected(task_open) | assign t2 | replay t2 => rejected(task_open)");
}

#[test]
pub fn a_replay_continues_what_it_carries() {
    play(&format!("{DONE} | replay t1 s=3 => rejected(carried_state) | replay t1 s=5 => rejected(carried_state)
                   replay t1 r=1 => rejected(carried_state) | replay t1 r=3 => rejected(carried_state)
                   review t1 r=2 => rejected(carried_state) | review t1 s=9 => rejected(carried_state)
                   replay t1 c=FAILED/1/3/1/1 => rejected(carried_state) | replay t1 c=SUCCESS/2/3/1/1 => rejected(carried_state)
                   replay t1 c=SUCCESS/1/4/1/1 => rejected(carried_state) | replay t1 c=SUCCESS/1/4294967295/1/1 => rejected(carried_state)
                   replay t1 c=SUCCESS/4294967295/3/1/1 r=0 => rejected(carried_state) | replay t1 s=4 r=2 => RETRY_APPROVED"));
}

#[test]
pub fn the_fold_believes_what_is_carried_as_far_as_it_continues() {
    // It has forgotten the task; that the carried state is the last one is the owner's duty.
    let w = play(&format!("{DONE} | replay t1 c=CANCELLED/7/40/9/9 s=41 r=8 => RETRY_APPROVED"));
    assert_eq!((w.core(1).version.0, w.core(1).run_no.0, w.core(1).exec_epoch.0), (41, 8, 9));
    w.then("plan t1 | retry t1 | assign t1 e=10 | complete t1 => SUCCESS");
}

#[test]
pub fn a_review_opens_nothing_and_takes_the_next_number() {
    let w = play(&format!("{DONE} | review t1 s=4 | review t1 s=4 => rejected(carried_state) | review t1 s=5"));
    let Some(Verdict::Accepted(Change::Reviewed(closed))) = w.verdicts.last() else {
        panic!("{:?}", w.verdicts.last())
    };
    assert_eq!((closed.core.state, closed.core.version.0, closed.core.run_no.0), (TaskState::Success, 5, 1));
    assert!(w.state.tasks.is_empty());
    w.then(
        "replay t1 s=4 => rejected(carried_state) | replay t1 s=6 => RETRY_APPROVED | review t1 => rejected(task_open)",
    );
}

#[test]
pub fn two_replays_of_one_closed_task_open_one_run() {
    play(&format!(
        "{DONE} | replay t1 c=SUCCESS/1/3/1/1 s=4 r=2 | replay t1 c=SUCCESS/1/3/1/1 s=4 r=2 => rejected(task_open)
                   plan t1 | retry t1 | assign t1 e=2 | complete t1 => SUCCESS"
    ));
}

#[test]
pub fn the_row_of_a_replay_says_what_was_carried() {
    let w = play(
        "claim | submit t1 nb=77 | assign t1 w9 at=500 | start t1 | step t1 a#0 | step t1 b#1 | fail t1 OOPS in=c at=600 | giveup t1 OOPS",
    );
    let closed = w.closed[&task(1)].clone();
    let w = w.then("replay t1 from=FAILURE");
    let row = w.row(1);
    assert_eq!(
        (&row.worker_id, row.assigned_at, row.end_time),
        (&closed.row.worker_id, closed.row.assigned_at, closed.row.end_time)
    );
    assert_eq!((row.error_code.as_deref(), row.failed_step.as_deref()), (Some("OOPS"), Some("c")));
    assert_eq!((row.not_before, row.plan.clone(), row.result_data_hash), (None, None, None));
    assert_eq!(
        row.steps.iter().map(|s| (s.done.step.as_str(), s.evidence.0)).collect::<Vec<_>>(),
        [("a", 8), ("b", 8)]
    );
    assert_eq!(row.history.len(), closed.row.history.len() + 1, "the history goes on");
}

#[test]
pub fn a_replay_from_a_step_or_from_the_start_keeps_what_lies_before() {
    let done =
        "claim | submit t1 | assign t1 | start t1 | step t1 a#0 | step t1 b#1 | step t1 c#2 | fail t1 in=d | giveup t1";
    for (from, steps, resume) in [
        ("FAILURE", &["a", "b", "c"][..], Some("d")),
        ("START", &[], None),
        ("STEP:b", &["a"], Some("b")),
        ("STEP:a", &[], Some("a")),
        ("STEP:d", &["a", "b", "c"], Some("d")),
    ] {
        let row = play(&format!("{done} | replay t1 from={from}")).row(1);
        assert_eq!(row.steps.iter().map(|s| s.done.step.as_str()).collect::<Vec<_>>(), steps, "{from}");
        assert_eq!(row.failed_step.as_deref(), resume, "{from}");
    }
}

#[test]
pub fn a_carried_history_is_cut_where_it_cannot_be_of_this_log() {
    // Offsets 1, 2, then one above the record that carries it.
    let w = play(&format!("{DONE} | replay t1 hist=010001000f00"));
    assert_eq!(w.history(1), [(1, None), (2, None), (4, None)]);
    let w = w.then("plan t1 s=9 => rejected(stale_sequence) | plan t1");
    assert_eq!(w.history(1)[3..], [(5, Some("stale_sequence")), (6, None)]);
}
