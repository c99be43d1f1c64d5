//! The sentences of docs/acceptance.md up to the ones about a task's state, in their order.

use task_core::{Change, ControlChange, Reason, Verdict};
use task_events::{RuleVersion, SUPPORTED_RULES, TaskState};

use crate::kit::{play, task};

#[test]
pub fn the_row_clock_rises_at_every_offset_whatever_the_verdict() {
    let w = play("claim at=5 | renew at=3");
    assert_eq!(w.state.row_clock_us, 5_001);
    let w = w.then("renew at=7 => malformed | renew p=9.9 at=7 => rejected(stale_epoch)");
    assert_eq!((w.state.row_clock_us, w.state.counters.quarantined), (7_001, 1));
    let w = w.then("renew at=9223372036854775807 | renew at=-9223372036854775808");
    assert_eq!(w.state.row_clock_us, i64::MAX);
}

#[test]
pub fn a_malformed_record_changes_nothing_else() {
    let w = play("claim | submit t1");
    let before = (w.core(1), w.state.owner_seq);
    let w = w.then("assign t1 => malformed");
    assert_eq!((w.core(1), w.state.owner_seq), before);
    w.then("assign t1 => ASSIGNED");
}

#[test]
pub fn the_key_is_that_of_the_subject() {
    play("claim key=#8 => rejected(wrong_partition) | claim key=- => rejected(wrong_key) | claim task=1 => rejected(wrong_key)
          claim
          submit t1 key=# => rejected(wrong_key) | submit t1 key=- => rejected(wrong_key) | submit t1 key=t2 => rejected(wrong_key)
          submit t1 task=- => rejected(wrong_key) | overdue t1 task=- => rejected(wrong_key) | reject t1 task=- => rejected(wrong_key)
          submit t1 task=- key=# => rejected(wrong_key)
          renew key=t1 => rejected(wrong_key) | renew key=#07 => rejected(wrong_key) | renew key=7 => rejected(wrong_key)
          renew key=#8 => rejected(wrong_partition) | renew task=1 => rejected(wrong_key)
          seal key=#8 => rejected(wrong_partition) | seal key=- => rejected(wrong_key) | seal task=1 => rejected(wrong_key)
          submit t1");
}

#[test]
pub fn a_task_lives_in_the_partition_of_its_id() {
    play(
        "claim | submit tX => rejected(wrong_partition) | reject tX => rejected(wrong_partition)
          submit tX key=t1 => rejected(wrong_key) | approve tX => rejected(wrong_partition)",
    );
}

#[test]
pub fn a_claim_is_the_next_epoch_and_starts_owner_seq_anew() {
    let w = play("claim p=2.0 => rejected(claim_conflict) | claim p=0.0 => rejected(claim_conflict)
                  claim p=-.0 => rejected(claim_conflict) | claim | renew p=1.5 | claim p=1.0 => rejected(claim_conflict)
                  claim p=3.0 => rejected(claim_conflict) | claim p=2.77 by=other");
    assert_eq!((w.state.epoch.0, w.state.owner_seq.0), (2, 0));
    assert_eq!(w.state.owner.as_ref().unwrap().instance, "other");
    w.then("renew p=2.1 | renew p=1.9 => rejected(stale_epoch)");
}

#[test]
pub fn before_the_first_claim_nobody_is_owner() {
    play(
        "submit t1 p=0.1 => rejected(stale_epoch) | renew p=0.1 => rejected(stale_epoch)
          renew p=-.1 => rejected(stale_epoch) | seal | claim | submit t1",
    );
}

#[test]
pub fn the_fence_hears_the_owner_alone_and_in_his_order() {
    play("claim | renew p=1.5 | renew p=1.5 => rejected(stale_owner_seq) | renew p=1.4 => rejected(stale_owner_seq)
          renew p=1.- => rejected(stale_owner_seq) | renew p=1.0 => rejected(stale_owner_seq)
          renew p=0.9 => rejected(stale_epoch) | renew p=2.9 => rejected(stale_epoch) | renew p=-.9 => rejected(stale_epoch)");
}

#[test]
pub fn owner_seq_is_raised_by_accepted_records_only() {
    let w = play(
        "claim | submit t1 p=1.9 s=2 => rejected(stale_sequence) | rules p=1.9 to=1 => rejected(rules_not_forward)
                  reject t1 p=1.9 s=1 => rejected(stale_sequence) | assign t1 p=1.9 => rejected(unknown_task)
                  submit t1 p=1.3 | assign t1 p=1.4",
    );
    assert_eq!(w.state.owner_seq.0, 4);
    let w = w.then("overdue t1 p=1.6 | reject t1 p=1.7 | renew p=1.8 | lose t1 p=1.9");
    assert_eq!(w.state.owner_seq.0, 9);
}

#[test]
pub fn engine_replayer_and_audit_are_not_fenced() {
    let w = play(
        "claim | submit t1 | assign t1 | fail t1 | claim
                  skip t1 p=1.1 | quarantine t1 | approve t1 p=7.7 | plan t1 p=0.0 | seal p=9.9",
    );
    assert_eq!(w.state.owner_seq.0, 0, "their numbers, if they have any, mean nothing");
}

#[test]
pub fn key_comes_before_fence_and_fence_before_the_rest() {
    play(
        "claim | submit t1 | claim | assign t1 p=1.9 s=9 key=- => rejected(wrong_key)
          assign t1 p=1.9 s=9 => rejected(stale_epoch) | assign t1 p=2.0 s=9 => rejected(stale_owner_seq)
          submit t1 p=1.9 => rejected(stale_epoch) | rules p=1.9 to=1 => rejected(stale_epoch)",
    );
}

#[test]
pub fn a_seal_has_no_effect() {
    let w = play("seal | claim | submit t1");
    let hash = w.state.tasks.hash_sum();
    let w = w.then("seal");
    assert_eq!((w.state.tasks.hash_sum(), w.verdicts.last()), (hash, Some(&Verdict::Accepted(Change::Sealed))));
}

#[test]
pub fn control_records_need_the_fence_and_no_task() {
    let w = play("claim | free | backlog | renew | pause | resume");
    assert_eq!((w.state.counters.control, w.state.counters.applied), (6, 0));
    play(
        "claim | free p=2.1 => rejected(stale_epoch) | backlog p=1.0 => rejected(stale_owner_seq) | pause p=0.1 => rejected(stale_epoch)",
    );
}

#[test]
pub fn queues_are_paused_and_resumed() {
    let w = play("claim | pause a | pause b | pause a");
    let paused = w.state.paused_queues.clone();
    assert_eq!(paused.iter().map(|q| q.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let w = w.then("resume c | resume a | pause c p=9.9 => rejected(stale_epoch)");
    assert_eq!(w.state.paused_queues.len(), 1);
    assert!(w.then("resume b").state.paused_queues.is_empty());
}

#[test]
pub fn rules_go_forward_and_unknown_ones_stop_the_reader() {
    let w = play(
        "claim | rules to=0 => rejected(rules_not_forward) | rules to=1 => rejected(rules_not_forward)
                  rules to=3 p=0.5 => rejected(stale_epoch) | rules to=2",
    );
    let known = RuleVersion(2) <= SUPPORTED_RULES;
    let activated = ControlChange::RulesActivated { version: RuleVersion(2), known };
    assert_eq!(w.verdicts.last(), Some(&Verdict::Accepted(Change::Control(activated))));
    assert_eq!(w.state.active_rules, RuleVersion(2));
    let w = w.then("rules to=2 => rejected(rules_not_forward)");
    if cfg!(feature = "rules-next") {
        // Rules 2: none is left out any more.
        let w = w.then("rules to=4 => rejected(rules_not_forward) | rules to=4294967295 => rejected(rules_not_forward) | rules to=3");
        assert_eq!(w.state.active_rules, RuleVersion(3));
    } else {
        w.then("rules to=4294967295");
    }
}

#[test]
pub fn a_rejected_report_has_no_number_and_no_effect() {
    let w =
        play("claim | reject t1 | reject t1 s=1 => rejected(stale_sequence) | submit t1 | assign t1 | reject t1 e=9");
    let core = w.core(1);
    assert_eq!((core.state, core.version.0), (TaskState::Assigned, 2));
    w.then("complete t1 => SUCCESS | reject t1 e=1");
}

#[test]
pub fn a_task_is_born_once_and_ids_rise() {
    let w = play("claim | submit t2 max=4 | submit t1 => rejected(id_order) | submit t2 => rejected(id_order)
                  submit t3 s=2 => rejected(stale_sequence) | submit t3 s=0 => rejected(stale_sequence)
                  submit t3 r=2 => rejected(wrong_run) | submit t3 r=0 => rejected(wrong_run) | submit t3 r=2 s=2 => rejected(stale_sequence)
                  cancel t2 | cancelled t2 => CANCELLED | submit t2 => rejected(id_order)");
    assert_eq!((w.state.highest, w.state.tasks.len()), (task(2), 0));
    let w = w.then("submit t3 max=7 => CREATED");
    let core = w.core(3);
    let numbers =
        (core.version.0, core.run_no.0, core.exec_epoch.0, core.retry_count, core.lost_count, core.max_retries);
    assert_eq!(numbers, (1, 1, 0, 0, 0, 7));
    assert!(!core.cancel_requested && !core.closed_by_lost && !core.assigned_from_retrying);
}

#[test]
pub fn every_reason_is_reached_by_these_histories_or_by_those_of_the_other_files() {
    // Each reason stands in some history of this directory: a new one needs a history.
    let all = [
        include_str!("acceptance.rs"),
        include_str!("attempts.rs"),
        include_str!("boundaries.rs"),
        include_str!("cancels.rs"),
        include_str!("replays.rs"),
        include_str!("retries.rs"),
    ]
    .concat();
    for reason in Reason::ALL {
        assert!(all.contains(&format!("rejected({reason})")), "no history for {reason}");
    }
}
