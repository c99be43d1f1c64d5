//! One live attempt, and reports that must match it.

use task_core::Reason;
use task_events::{ExecEpoch, TaskState};

use crate::kit::play;

#[test]
pub fn a_zombie_writes_behind_the_claim_of_its_successor() {
    let w = play(
        "claim | submit t1 | assign t1 w1 | claim p=2.0
                  start t1 p=1.3 => rejected(stale_epoch) | complete t1 p=1.4 => rejected(stale_epoch)
                  submit t2 p=1.5 => rejected(stale_epoch) | claim p=2.0 => rejected(claim_conflict)
                  start t1 p=2.1 => EXECUTING | complete t1 => SUCCESS",
    );
    assert_eq!(w.state.counters.rejected[Reason::StaleEpoch as usize], 3);
}

#[test]
pub fn one_record_appended_twice_counts_once() {
    play(
        "claim | submit t1 p=1.1 | submit t1 p=1.1 => rejected(stale_owner_seq) | assign t1 p=1.2
          assign t1 s=2 e=1 p=1.2 => rejected(stale_owner_seq) | assign t1 s=2 e=1 p=1.3 => rejected(stale_sequence)
          complete t1 p=1.4 | complete t1 s=3 e=1 p=1.5 => rejected(unknown_task)",
    );
}

#[test]
pub fn a_verdict_written_by_two_instances_counts_once() {
    play(
        "claim | submit t1 | assign t1 | fail t1 | approve t1 s=4 | approve t1 s=4 by=other => rejected(stale_sequence)
          giveup t1 s=4 by=third => rejected(stale_sequence) | plan t1 s=5 | plan t1 s=5 => rejected(stale_sequence)",
    );
}

#[test]
pub fn every_report_names_epoch_and_id_of_the_attempt() {
    for verb in ["start", "release", "complete", "fail", "lose", "analyse"] {
        play(&format!(
            "claim | submit t1 | {verb} t1 e=1 => rejected(wrong_attempt) | assign t1 | {verb} t1 e=0 => rejected(wrong_attempt)
             {verb} t1 e=2 => rejected(wrong_attempt) | {verb} t1 e=2 x=1 => rejected(wrong_attempt)
             {verb} t1 e=1 x=2 => rejected(wrong_attempt) | {verb} t1 e=1 x=0 => rejected(wrong_attempt) | {verb} t1 e=1 x=1"
        ));
    }
    play("claim | submit t1 | assign t1 | start t1 | step t1 e=2 => rejected(wrong_attempt) | step t1 e=1 x=2 => rejected(wrong_attempt)
          timeout t1 x=- => rejected(wrong_attempt) | timeout t1 x=2 => rejected(wrong_attempt) | timeout t1 e=2 => rejected(wrong_attempt)
          timeout t1 => FAILED");
}

#[test]
pub fn never_assigned_means_there_is_no_attempt_zero() {
    play("claim | submit t1 | complete t1 e=0 x=0 => rejected(wrong_attempt) | start t1 e=0 x=0 => rejected(wrong_attempt)
          analyse t1 e=0 x=0 => rejected(wrong_attempt) | lose t1 e=0 x=0 => rejected(wrong_attempt)");
}

#[test]
pub fn the_kth_assignment_has_epoch_k() {
    let w = play("claim | submit t1 | assign t1 e=0 => rejected(wrong_attempt) | assign t1 e=2 => rejected(wrong_attempt)
                  assign t1 e=1 | release t1 => CREATED | assign t1 e=1 => rejected(wrong_attempt) | assign t1 e=2 | release t1
                  assign t1 e=3 | assign t1 e=4 => rejected(not_allowed)");
    assert_eq!(w.core(1).exec_epoch, ExecEpoch(3));
}

#[test]
pub fn the_run_matches() {
    play(
        "claim | submit t1 | assign t1 r=2 => rejected(wrong_run) | assign t1 r=0 => rejected(wrong_run) | assign t1
          complete t1 r=2 e=9 => rejected(wrong_run) | overdue t1 r=2 => rejected(wrong_run) | complete t1",
    );
}

#[test]
pub fn the_sequence_continues_the_version() {
    play(
        "claim | submit t1 | assign t1 s=1 => rejected(stale_sequence) | assign t1 s=3 => rejected(stale_sequence)
          assign t1 s=0 => rejected(stale_sequence) | assign t1 s=4294967295 => rejected(stale_sequence)
          overdue t1 s=2 => rejected(stale_sequence) | overdue t1 s=1 | analyse t1 s=1 e=1 => rejected(stale_sequence)",
    );
}

#[test]
pub fn reasons_come_in_their_order() {
    play(
        "claim | assign t1 s=9 r=9 e=9 => rejected(unknown_task) | submit t1
          complete t1 s=9 r=9 e=9 => rejected(stale_sequence) | complete t1 r=9 e=9 => rejected(wrong_run)
          complete t1 e=9 => rejected(wrong_attempt) | cancel t1 | assign t1 e=9 => rejected(wrong_attempt)
          retry t1 => rejected(not_allowed) | assign t1 => rejected(cancel_requested)",
    );
}

#[test]
pub fn late_completion_of_a_lost_attempt_counts_until_the_next_assignment() {
    for after in ["", "| approve t1", "| approve t1 | plan t1", "| approve t1 | plan t1 | retry t1"] {
        let lost = format!("claim | submit t1 | assign t1 | start t1 | lose t1 => LOST {after}");
        play(&format!("{lost} | complete t1 e=1 => SUCCESS | complete t1 e=1 => rejected(unknown_task)"));
        play(&format!(
            "{lost} | fail t1 e=1 => rejected(not_allowed) | step t1 e=1 => rejected(not_allowed)
                       start t1 e=1 => rejected(not_allowed) | analyse t1 e=1 => rejected(not_allowed)"
        ));
    }
    play("claim | submit t1 | assign t1 | lose t1 | approve t1 | plan t1 | retry t1 | assign t1 e=2
          complete t1 e=1 => rejected(wrong_attempt) | release t1 e=2 => RETRYING | complete t1 e=1 => rejected(wrong_attempt)
          complete t1 e=2 => rejected(not_allowed)");
}

#[test]
pub fn a_failed_attempt_has_no_late_completion() {
    play(
        "claim | submit t1 | assign t1 | fail t1 | complete t1 => rejected(not_allowed) | approve t1
          complete t1 => rejected(not_allowed) | plan t1 | retry t1 | complete t1 => rejected(not_allowed)",
    );
    play(
        "claim | submit t1 | assign t1 | lose t1 | approve t1 | plan t1 | retry t1 | timeout t1 => FAILED
          complete t1 e=1 => rejected(not_allowed)",
    );
}

#[test]
pub fn released_goes_back_to_where_it_was_assigned_from() {
    let w = play(
        "claim | submit t1 | assign t1 | release t1 => CREATED | assign t1 | fail t1 | approve t1 | plan t1 | retry t1
                  assign t1 | release t1 => RETRYING | assign t1 | start t1 | release t1 => rejected(not_allowed)",
    );
    let core = w.core(1);
    assert!(core.assigned_from_retrying && core.retry_count == 1 && core.state == TaskState::Executing);
}

#[test]
pub fn completion_and_failure_do_not_need_a_start() {
    play("claim | submit t1 | assign t1 | step t1 => rejected(not_allowed) | complete t1 => SUCCESS");
    play("claim | submit t1 | assign t1 | analyse t1 | fail t1 => FAILED");
    play(
        "claim | submit t1 | assign t1 | start t1 | start t1 => rejected(not_allowed) | step t1 a#0 | step t1 a#0 | lose t1 => LOST",
    );
}

#[test]
pub fn timeouts_end_a_wait_or_an_attempt() {
    play("claim | submit t1 | timeout t1 SCHEDULE_TO_START => FAILED | timeout t1 => rejected(not_allowed)");
    play(
        "claim | submit t1 | timeout t1 e=9 => FAILED | approve t1 | timeout t1 => rejected(not_allowed) | plan t1
          timeout t1 => rejected(not_allowed) | retry t1 | timeout t1 DEADLINE => FAILED",
    );
    play(
        "claim | submit t1 | assign t1 | timeout t1 START_TO_CLOSE e=1 => FAILED | complete t1 => rejected(not_allowed)",
    );
}

#[test]
pub fn annotations_change_nothing() {
    let w = play("claim | submit t1 | assign t1 | analyse t1 | analyse t1 | fail t1");
    let core = w.core(1);
    let w = w.then("skip t1 | quarantine t1 | overdue t1 | analyse t1 => rejected(not_allowed)");
    assert_eq!(w.core(1), core);
    w.then("approve t1 | skip t1 => rejected(not_allowed) | quarantine t1 => rejected(not_allowed) | overdue t1 | overdue t1");
}
