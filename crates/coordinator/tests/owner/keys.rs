//! Concurrency keys (design.md §8, §10; ADR 050): never two handlers of one key, in the order of the
//! dispatch, whoever the owner is. `one=k` gives a task the key.

use std::time::Duration;

use coordinator::owner::{Input, OwnerConfig};
use service_kit::{Clock as _, SystemClock};

use crate::kit::World;

// Leases of 6 s, 8.6 s with the owner's margin.
fn short() -> World {
    let cfg = OwnerConfig { lease_ms: 6_000, lease_max_ms: 6_000, heartbeat_ms: 2_000, ..OwnerConfig::default() };
    World::with(cfg)
}

#[test]
pub fn one_task_of_a_key_runs_at_a_time_in_the_order_of_the_dispatch() {
    let mut w = World::new();
    w.play("submit a one=k | submit b one=k prio=1 | submit c one=k prio=9 | submit x | submit d one=other");
    w.play("poll w1 slots=9 => c e=1, x e=1, d e=1 | poll w2 wait=0s slots=9 => no work");
    w.play("start c e=1 => accepted | poll w2 wait=0s slots=9 => no work | complete c e=1 => accepted");
    w.play("poll w2 slots=9 => a e=1 | fail a e=1 => accepted | poll w3 slots=9 => b e=1");
    w.play("approve a | plan a | poll w4 wait=0s slots=9 => no work | complete b e=1 => accepted");
    w.play("poll w4 slots=9 => a e=2 | complete a e=2 => accepted");
}

#[test]
fn one_poll_gets_one_of_them_and_the_next_when_it_is_over() {
    let mut w = World::new();
    w.hold_log = true;
    let polls = [w.step("poll w1 slots=4 wait=20s").unwrap(), w.step("poll w2 slots=4 wait=20s").unwrap()];
    w.step("submit a one=k");
    w.step("submit b one=k");
    w.land();
    assert_eq!(w.heard(w.answer(polls[0])), "a e=1");
    assert_eq!(w.heard(w.answer(polls[1])), "nothing");
    w.play("complete a e=1 => accepted");
    assert_eq!(w.heard(w.answer(polls[1])), "b e=1");
}

#[test]
fn keys_are_each_creators_own() {
    let mut w = World::new();
    w.play("submit a one=k creator=x | submit b one=k creator=y | submit c one=k creator=x");
    w.play("poll w1 slots=9 => a e=1, b e=1");
}

#[test]
fn a_queue_nobody_serves_or_that_is_paused_holds_up_no_other_one() {
    let mut w = World::new();
    w.play("submit a one=k queue=lonely prio=9 | submit b one=k | submit c one=k queue=lonely");
    w.play("poll w1 => b e=1 | poll w2 queue=lonely wait=0s => no work | complete b e=1 => accepted");
    w.play("pause lonely => changed | submit d one=k | poll w2 queue=lonely wait=0s => no work");
    w.play("poll w1 => d e=1 | resume lonely => changed | poll w2 queue=lonely wait=0s => no work | complete d e=1");
    w.play("poll w2 queue=lonely slots=9 => a e=1 | complete a e=1 | poll w2 queue=lonely => c e=1");
}

#[test]
fn one_that_comes_late_and_is_more_urgent_comes_first_and_so_does_one_that_aged_past() {
    let mut w = World::new();
    w.play("submit a one=k | submit b one=k prio=5 | poll w1 => b e=1 | complete b e=1");
    // `old` is a level below `late` and has waited for half a minute longer.
    w.play("submit c one=k prio=3 | cancel a | poll w1 => c e=1 | start c e=1 | submit old one=k prio=3 | wait 30s");
    w.play("beat c e=1 | submit late one=k prio=4 | complete c e=1 | wait 31s | poll w2 => old e=1");
}

#[test]
fn a_hand_out_that_comes_to_nothing_frees_the_key() {
    let mut w = World::new();
    w.play("submit a one=k | submit b one=k");
    w.hold_log = true;
    let p = w.step("poll w1 slots=2 wait=9s").unwrap();
    w.not_sent();
    w.hold_log = false;
    w.play("wait 200ms");
    assert_eq!(w.heard(w.answer(p)), "a e=1");
    // The owner must not know of two: dead behind its claim.
    w.play("complete a e=1");
    w.hold_log = true;
    let p = w.step("poll w1 slots=2 wait=9s").unwrap();
    w.unknown();
    w.land();
    w.play("wait 1s");
    assert_eq!(w.heard(w.answer(p)), "b e=1");
    assert_eq!(w.count("assign b"), 1);
}

#[test]
fn declined_or_never_delivered_it_frees_the_key() {
    let mut w = World::new();
    w.play("submit a one=k | poll w1 => a e=1 | decline a e=1 => accepted | submit b one=k prio=9");
    w.play("poll w1 => b e=1 | poll w1 => b e=2 | complete b e=2 => accepted | poll w1 => a e=2");
}

#[test]
fn a_successor_keeps_to_it_whatever_it_finds() {
    let mut w = World::new();
    w.play("submit a one=k | submit b one=k | poll w1 => a e=1 | crash | poll w2 wait=0s slots=9 => no work");
    w.play("start a e=1 => accepted | crash | poll w2 wait=0s => no work | complete a e=1 => accepted | crash");
    w.play("poll w2 => b e=1 | crash | submit c one=k prio=9 | poll w3 wait=0s => no work | fail b e=1 => accepted");
    w.play("poll w3 => c e=1");
}

#[test]
fn a_lost_attempt_keeps_the_key_until_its_lease_is_over() {
    let mut w = short();
    w.play("submit a one=k to_close=4s | submit b one=k | poll w1 => a e=1 | start a e=1 => accepted | wait 4100ms");
    assert_eq!(w.count("timeout a"), 1);
    let p = w.step("poll w2 wait=30s").unwrap();
    w.play("wait 4s");
    assert_eq!(w.heard(w.answer(p)), "nothing", "its lease runs for 8.6 s with the margin");
    w.play("wait 700ms");
    assert_eq!(w.heard(w.answer(p)), "b e=1");
    // Lost by silence alone: its lease is over then.
    w.play("submit c one=k | wait 9s");
    assert_eq!(w.count("lost b"), 1);
    w.play("poll w3 => c e=1");
}

#[test]
fn after_a_take_over_what_is_left_of_a_lease_counts_from_the_claim() {
    let mut w = short();
    w.play(
        "submit a one=k to_close=2s | submit b one=k | poll w1 => a e=1 | start a e=1 | wait 2100ms | wait 4s | crash",
    );
    let p = w.step("poll w2 wait=30s").unwrap();
    w.play("wait 6s");
    assert_eq!(w.heard(w.answer(p)), "nothing");
    w.play("wait 700ms");
    assert_eq!(w.heard(w.answer(p)), "b e=1");
}

#[test]
fn a_task_that_was_cancelled_or_given_up_keeps_its_key_while_its_handler_may_run() {
    for ends in ["cancel", "give up"] {
        for crash in [false, true] {
            let cfg = OwnerConfig {
                lease_ms: 60_000,
                lease_max_ms: 60_000,
                cancel_grace_ms: 3_000,
                ..OwnerConfig::default()
            };
            let mut w = World::with(cfg);
            w.play("submit a one=k deadline=5s | submit b one=k | poll w1 => a e=1 | start a e=1 => accepted");
            if ends == "cancel" {
                w.play("cancel a => cancel accepted | wait 3100ms");
                assert_eq!(w.count("cancelled a"), 1);
            } else {
                w.play("wait 5100ms");
                w.approve(w.id("a"), 0);
                assert_eq!(w.count("giveup a"), 1, "{}", w.tail(9));
            }
            assert!(w.fold.tasks.get(w.id("a")).is_none(), "the fold has forgotten it");
            if crash {
                w.play("wait 3s | crash");
            }
            let p = w.step("poll w2 wait=60s").unwrap();
            w.play("wait 50s");
            assert_eq!(w.heard(w.answer(p)), "nothing", "{ends} {crash}");
            w.play("wait 20s | poll w2 wait=0s");
            assert_eq!(w.count("assign b w2 e=1"), 1, "{ends} {crash}");
        }
    }
}

#[test]
fn no_checkpoint_hides_a_closed_task_whose_handler_may_still_run() {
    let cfg = OwnerConfig { checkpoint_every: 8, cancel_grace_ms: 1_000, ..OwnerConfig::default() };
    let mut w = World::with(cfg);
    w.play("submit b one=k | submit a one=k prio=9 | poll w1 => a e=1 | start a e=1 | cancel a | wait 1100ms");
    assert_eq!(w.count("cancelled a"), 1);
    let offset = w.lines.iter().position(|line| line.starts_with("cancelled a")).unwrap() as u64;
    w.play("wait 30s");
    let newest = |w: &World| w.checkpoint_names().iter().map(|name| name.offset.0).max().unwrap_or(0);
    assert!(newest(&w) <= offset, "{:?} hides offset {offset}", w.checkpoint_names());
    // A hand-over leaves none either; the next owner reads of it.
    w.feed(w.on, Input::Drain(Duration::from_secs(1)));
    w.settle();
    assert!(w.me().drained && newest(&w) <= offset);
    w.join("b");
    w.settle();
    w.play("poll w2 wait=0s => no work | wait 70s | poll w2 => b e=1 | start b e=1 | complete b e=1");
    w.step("poll w3 wait=20s");
    w.play("wait 20s");
    assert!(newest(&w) > offset, "published once it is over: {:?}", w.checkpoint_names());
}

#[test]
fn a_replayed_task_waits_for_its_key_and_for_its_own_former_handler() {
    let cfg = OwnerConfig { cancel_grace_ms: 1_000, ..OwnerConfig::default() };
    let mut w = World::with(cfg);
    w.play("submit a one=k | submit b one=k | poll w1 => a e=1 | complete a e=1 | poll w1 => b e=1 | start b e=1");
    w.play("replay a => run 2 | plan a | poll w2 wait=0s => no work | cancel b | wait 1100ms | wait 3s");
    assert_eq!(w.count("cancelled b"), 1);
    w.play("poll w2 wait=0s => no work | replay b => run 2 | plan b | poll w2 wait=0s => no work | crash");
    w.play(
        "poll w2 wait=0s => no work | wait 70s | poll w2 slots=2 => a e=2 | complete a e=2 | poll w2 slots=2 => b e=2",
    );
}

#[test]
fn the_former_attempt_of_a_task_does_not_keep_it_from_its_own_key() {
    let mut w = short();
    w.play("submit a one=k to_close=4s | poll w1 => a e=1 | start a e=1 | wait 4100ms | approve a | plan a");
    let p = w.step("poll w2 wait=30s").unwrap();
    w.play("wait 4700ms");
    assert_eq!(w.heard(w.answer(p)), "a e=2");
}

#[test]
fn a_cancelled_one_that_waits_makes_way() {
    let mut w = World::new();
    w.play("submit a one=k | submit b one=k | submit c one=k | cancel a => cancel accepted | poll w1 => b e=1");
    w.play("cancel b => cancel accepted | poll w2 wait=0s => no work | fail b e=1 => accepted | poll w2 => c e=1");
}

#[test]
fn what_waits_for_a_key_is_no_backlog() {
    let mut w = World::new();
    w.play("submit a one=k | submit b one=k | submit c one=k");
    assert_eq!(w.owner().backlog(), 1);
    w.play("poll w1 => a e=1");
    assert_eq!(w.owner().backlog(), 0);
    w.play("complete a e=1");
    assert_eq!(w.owner().backlog(), 1);
}

#[test]
fn ten_thousand_tasks_of_one_key_are_one_after_the_other_and_cheap() {
    let mut w = World::new();
    w.hold_read = true;
    for n in 0..10_000 {
        w.step(&format!("submit t{n} one=k"));
        if n % 1_000 == 999 {
            w.land();
            w.hold_read = true;
        }
    }
    w.land();
    assert_eq!((w.fold.tasks.len(), w.owner().backlog()), (10_000, 1));
    let started = SystemClock.boot_ms();
    for n in 0..2_000 {
        w.play(&format!("poll w1 wait=0s slots=8 => t{n} e=1 | complete t{n} e=1 => accepted"));
    }
    // A scan of what is parked would take minutes.
    let took_ms = SystemClock.boot_ms() - started;
    assert!(took_ms < 30_000, "{took_ms} ms");
}

#[test]
fn a_delayed_task_holds_nothing_is_no_backlog_and_is_due_in_time() {
    let mut w = World::new();
    w.play("submit a not_before=60s one=k");
    assert_eq!(w.owner().backlog(), 0);
    assert!(w.me().calls.is_empty() && w.fold.tasks.iter().all(|slot| !slot.core.state.is_live()));
    let p = w.step("poll w1 wait=60s").unwrap();
    // Its key is free meanwhile.
    w.play("submit b one=k");
    assert_eq!(w.heard(w.answer(p)), "b e=1");
    w.play("complete b e=1 => accepted | wait 30s");
    let p = w.step("poll w2 wait=60s").unwrap();
    w.play("wait 29900ms");
    assert_eq!((w.heard(w.answer(p)), w.owner().backlog(), w.count("assign a")), ("nothing".into(), 0, 0));
    // Never early by the broker's clock, at most a slot of the wheel late beside the clock's own
    // uncertainty of 1 ms in 10,000 since its last anchor.
    w.play("wait 120ms");
    assert_eq!(w.heard(w.answer(p)), "a e=1");
}
