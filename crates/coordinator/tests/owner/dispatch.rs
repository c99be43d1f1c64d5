//! Dispatch as far as it is here: priorities, pauses, avoided workers, the lock server, back-off.

use coordinator::owner::{LockUnavailablePolicy, OwnerConfig};

use task_core::decide::Draft;
use task_core::{PartitionState, Rules};
use task_events::{Body, EventSequence, StepDone, TaskStepCompleted};

use crate::kit::{P, World, sha};

#[test]
pub fn priority_then_id_and_only_what_a_worker_serves() {
    let mut w = World::new();
    w.play("submit t1 | submit t2 prio=9 | submit t3 prio=0 | submit t4 | submit t5 queue=other");
    w.play("poll w1 slots=3 => t2 e=1, t1 e=1, t4 e=1 | poll w2 queue=other => t5 e=1 | poll w3 => t3 e=1");
}

#[test]
pub fn creators_take_turns_and_deadlines_go_first() {
    let mut w = World::new();
    w.play("submit a1 creator=a | submit a2 creator=a | submit a3 creator=a deadline=600s | submit b1 creator=b");
    w.play("poll w1 slots=2 => a3 e=1, b1 e=1 | poll w2 slots=2 => a1 e=1, a2 e=1");
}

#[test]
pub fn a_low_priority_rises_by_waiting_also_when_the_owner_changes() {
    let mut w = World::new();
    w.play("submit low prio=2 | wait 65s | submit high prio=4");
    w.play("poll w1 => high e=1 | start high e=1 | complete high e=1 | submit fresh prio=4 | wait 60s | submit last prio=4 | crash | submit again prio=4");
    w.play("poll w2 slots=2 => fresh e=1, low e=1");
}

#[test]
pub fn one_that_does_not_wait_gets_what_is_there() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 wait=0s => t1 e=1 | poll w2 wait=0s => no work");
}

#[test]
pub fn no_slots_no_work() {
    let mut w = World::new();
    w.play("submit t1");
    let p = w.step("poll w1 slots=0 wait=2s").unwrap();
    w.play("wait 1999ms");
    assert_eq!(w.heard(w.answer(p)), "nothing");
    w.play("wait 1ms");
    assert_eq!((w.heard(w.answer(p)), w.count("assign")), ("no work".into(), 0));
}

#[test]
pub fn a_long_poll_is_answered_when_work_comes_and_at_its_time() {
    let mut w = World::new();
    let p = w.step("poll w1 wait=20s").unwrap();
    w.play("wait 15s | submit t1");
    assert_eq!(w.heard(w.answer(p)), "t1 e=1");
    let p = w.step("poll w2 wait=1500ms").unwrap();
    w.play("wait 1499ms");
    assert_eq!(w.heard(w.answer(p)), "nothing");
    w.play("wait 1ms");
    assert_eq!(w.heard(w.answer(p)), "no work");
}

#[test]
pub fn a_paused_queue_hands_out_nothing_until_it_is_resumed_also_after_a_crash() {
    let mut w = World::new();
    w.play(
        "submit t1 | pause q => changed | submit t2 | poll w1 wait=0s => no work | crash | poll w1 wait=0s => no work",
    );
    let p = w.step("poll w1 wait=5s slots=2").unwrap();
    w.play("resume q => changed");
    assert_eq!(w.heard(w.answer(p)), "t1 e=1, t2 e=1");
}

#[test]
pub fn nothing_is_handed_out_beside_a_record_in_flight() {
    let mut w = World::new();
    w.play("submit t1");
    w.hold_log = true;
    let c = w.step("cancel t1").unwrap();
    let p = w.step("poll w1 wait=3s").unwrap();
    assert_eq!(w.me().sent.len(), 1, "one state-changing record of a task in flight");
    w.land();
    assert_eq!(w.heard(w.answer(c)), "cancel accepted");
    assert_eq!(w.history(), "create t1 | cancel t1 | cancelled t1");
    w.play("wait 4s");
    assert_eq!(w.heard(w.answer(p)), "no work");
}

#[test]
pub fn cancel_ends_what_waits_at_once_and_what_runs_when_it_stopped() {
    let mut w = World::new();
    w.play("submit t1 | cancel t1 => cancel accepted | cancel t1 => closed CANCELLED");
    w.play("submit t2 | poll w1 => t2 e=1 | start t2 e=1 | cancel t2 => cancel accepted | cancel t2 => cancel accepted | fail t2 e=1 => accepted");
    assert_eq!(w.count("cancelled t2"), 1);
    w.play("submit t3 | poll w1 => t3 e=1 | start t3 e=1 | fail t3 e=1 | cancel t3 => cancel accepted | wait 1s | get t3 => CANCELLED v6");
    w.play(
        "submit t4 | poll w1 => t4 e=1 | start t4 e=1 | cancel t4 | complete t4 e=1 => accepted | get t4 => SUCCESS v5",
    );
}

#[test]
pub fn with_pause_nothing_is_handed_out_while_the_lock_server_is_away() {
    let mut w = World::with(OwnerConfig { lock_unavailable: LockUnavailablePolicy::Pause, ..OwnerConfig::default() });
    w.play("submit t1 | submit t2");
    w.lock_away = true;
    w.play("poll w1 => t1 e=1 | complete t1 e=1 => accepted");
    assert_eq!(w.alarms("lock_unavailable"), 1);
    let p = w.step("poll w2 wait=20s").unwrap();
    w.play("wait 5s");
    assert_eq!(w.heard(w.answer(p)), "nothing");
    w.lock_away = false;
    w.play("wait 2s");
    assert_eq!(w.heard(w.answer(p)), "t2 e=1", "it is asked although nothing runs");
    assert_eq!(w.alarms("lock_unavailable"), 1, "told once");
}

#[test]
pub fn a_lock_server_that_is_away_is_not_waited_for_and_gets_its_locks_when_it_is_back() {
    let mut w = World::new();
    w.play("submit t1 | submit t2");
    w.lock_away = true;
    w.play("poll w1 => t1 e=1");
    assert_eq!((w.alarms("lock_unavailable"), w.me().locks.0), (1, 1));
    // Whoever waited for its answers would wait here.
    w.hold_lock = true;
    w.play("poll w2 => t2 e=1 | start t1 e=1 => accepted | start t2 e=1 => accepted");
    (w.hold_lock, w.lock_away) = (false, false);
    w.me().locks.1 = 0;
    w.play("wait 2s");
    assert_eq!(w.me().locks, (1, 2), "both are set again at once");
    w.play("submit t3 | poll w3 => t3 e=1");
    assert_eq!((w.me().locks.0, w.alarms("lock_unavailable")), (2, 1));
}

#[test]
pub fn a_hand_out_whose_lock_is_never_answered_comes_back() {
    let mut w = World::new();
    w.play("submit t1");
    w.hold_lock = true;
    let p = w.step("poll w1 wait=1s").unwrap();
    w.play("wait 12s");
    assert_ne!(w.heard(w.answer(p)), "nothing");
    assert_eq!(w.count("release t1 e=1 NOT_STARTED"), 1);
    w.me().calls.clear();
    w.hold_lock = false;
    w.play("poll w2 => t1 e=2 | start t1 e=2 => accepted");
}

#[test]
pub fn locks_are_given_back_when_the_attempt_is_over() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | fail t1 e=1 | approve t1 | plan t1 | poll w2 => t1 e=2 | complete t1 e=2");
    assert_eq!(w.me().released, ["w1#1", "w2#2"]);
}

// With honest writers a record is rejected twice at most, then the pen is the owner's. Here somebody
// writes steps of the attempt in the owner's name, and the fold lets it.
static LOOSE: Rules = Rules { owner_seq: false, ..Rules::STANDARD };

#[test]
pub fn three_equal_rejections_back_off_and_are_told_and_everybody_is_served_after() {
    let mut w = World::bare(OwnerConfig::default());
    (w.hostile, w.fold_rules) = (true, &LOOSE);
    w.fold = PartitionState::with_rules(P, true, &LOOSE);
    w.join("a");
    w.settle();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 => accepted");
    let id = w.id("t1");
    w.hold_log = true;
    let t = w.step("complete t1 e=1").unwrap();
    for n in 1..=3u32 {
        let core = w.fold.tasks.get(id).unwrap().core;
        let done = StepDone { step: "x".into(), index: n, output_hash: sha("x"), is_idempotent: true };
        let body = Body::TaskStepCompleted(TaskStepCompleted { execution_id: core.execution_id, done });
        let draft = Draft {
            task_id: Some(id),
            event_sequence: EventSequence(core.version.0 + 1),
            run_no: core.run_no,
            exec_epoch: core.exec_epoch,
            trace_id: "".into(),
            sampling: Default::default(),
            body,
        };
        let epoch = w.fold.epoch.0;
        w.forge(draft, epoch, 1);
        w.land_one("a");
        w.settle();
        assert_eq!(w.count("complete t1 e=1 => rejected(stale_sequence)"), n as usize);
        assert_eq!(w.alarms("rejected_repeatedly"), usize::from(n == 3));
        // Its follower makes that final: decided anew, but not the third time.
        w.land_one("a");
        w.settle();
        assert_eq!(w.me().sent.len(), usize::from(n < 3), "after rejection {n}: {}", w.tail(5));
    }
    let c = w.step("cancel t1").unwrap();
    assert_eq!((w.heard(w.answer(t)), w.heard(w.answer(c))), ("nothing".into(), "nothing".into()));
    w.hold_log = false;
    w.play("wait 99ms");
    assert_eq!(w.heard(w.answer(t)), "nothing");
    w.play("wait 2ms");
    assert_eq!((w.heard(w.answer(t)), w.heard(w.answer(c))), ("accepted".into(), "closed SUCCESS".into()));
}
