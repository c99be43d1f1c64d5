//! Handing over (design.md §4.10, §11): everything settles or is answered.

use std::time::Duration;

use coordinator::owner::{Input, OwnerConfig, Phase};
use task_events::Offset;

use crate::kit::World;

fn drain(w: &mut World, ms: u64) {
    let on = w.on;
    w.feed(on, Input::Drain(Duration::from_millis(ms)));
    w.settle();
}

#[test]
fn what_is_in_flight_settles_and_a_checkpoint_is_left() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1");
    let p = w.step("poll w2").unwrap();
    w.hold_log = true;
    let t = w.step("submit t2 key=k").unwrap();
    drain(&mut w, 1_000);
    assert_eq!(w.heard(w.answer(p)), "unavailable");
    w.play("submit t3 => unavailable(Draining) | beat t1 e=1 => unavailable");
    assert!(!w.me().drained);
    w.land();
    w.play("wait 200ms");
    assert_eq!(w.heard(w.answer(t)), "created t2");
    assert!(w.me().drained);
    let end = Offset(w.log.len() as u64);
    let last = w.checkpoint_names().last().cloned().unwrap();
    assert_eq!((last.offset, last.state_hash), (end, w.fold.hash()));
    assert_eq!(w.acked(), end, "the next owner owes nothing");
    let lines = w.lines.len();
    w.play("wait 10s | submit t4 => unavailable(Draining)");
    assert_eq!(w.lines.len(), lines, "silent for good");
}

#[test]
fn at_its_deadline_what_is_in_flight_is_unknown_and_nothing_is_left() {
    let mut w = World::new();
    w.hold_log = true;
    let unkeyed = w.step("submit t1").unwrap();
    let keyed = w.step("submit t2 key=k").unwrap();
    let get = w.step("submit t3 payload=x").unwrap();
    drain(&mut w, 1_000);
    w.play("wait 1001ms");
    assert!(w.me().drained);
    assert_eq!(w.heard(w.answer(unkeyed)), "unknown, with its id", "it may be in the log: never 'nothing was written'");
    assert_eq!(w.heard(w.answer(keyed)), "unknown");
    assert_ne!(w.heard(w.answer(get)), "nothing");
    assert_eq!(w.checkpoint_names(), []);
    let sent = w.me().sent.clone();
    w.join("b");
    sent.iter().for_each(|s| w.land_copy(s));
    w.land();
    w.play("submit t2 key=k => duplicate t2");
}

#[test]
fn rows_that_cannot_be_written_leave_no_checkpoint() {
    let mut w = World::new();
    w.store_away = true;
    w.play("submit t1");
    drain(&mut w, 1_000);
    w.play("wait 1s");
    assert!(w.me().drained);
    assert_eq!(w.checkpoint_names(), []);
    assert!(w.acked() <= Offset(1));
    w.store_away = false;
    w.join("b");
    w.settle();
    w.play("wait 2s");
    assert_eq!(w.store.rows().len(), 1, "derived again");
}

#[test]
fn in_every_other_phase_it_ends_at_once() {
    let mut w = World::bare(OwnerConfig::default());
    w.hold_log = true;
    w.join("a");
    let t = w.step("submit t1").unwrap();
    drain(&mut w, 1_000);
    assert!(w.me().drained, "claiming");
    assert_eq!(w.heard(w.answer(t)), "unavailable(Draining)");
    let mut w = World::new();
    w.foreign_claim();
    drain(&mut w, 1_000);
    assert!(w.me().drained, "superseded");
    w.play("wait 10s");
    assert_eq!(w.count("claim http://a"), 1, "it does not come back");
    let mut w = World::new();
    w.hold_read = true;
    w.join("b");
    drain(&mut w, 1_000);
    assert!(w.me().drained, "folding");
}

#[test]
fn a_claim_under_way_settles_what_is_outstanding_first() {
    let mut w = World::new();
    w.hold_log = true;
    let t = w.step("submit t1").unwrap();
    let sent = w.unknown();
    drain(&mut w, 1_000);
    assert!(!w.me().drained);
    w.land_copy(&sent);
    w.land();
    w.play("wait 1s");
    assert_eq!(w.heard(w.answer(t)), "created t1");
    assert!(w.me().drained);
    let mut w = World::new();
    w.hold_log = true;
    let t = w.step("submit t1").unwrap();
    w.unknown();
    drain(&mut w, 1_000);
    w.land();
    w.play("wait 1s");
    assert_eq!(w.heard(w.answer(t)), "unavailable(Draining)", "dead behind the claim: nothing was written");
    assert_eq!((w.count("create"), w.owner().phase()), (0, Phase::Done));
}

#[test]
fn nothing_new_is_begun() {
    let mut w = World::new();
    w.store_away = true;
    w.play("submit t1 | submit t2 | poll w1 => t1 e=1 | start t1 e=1 | cancel t1 => cancel accepted");
    let lines = w.lines.len();
    drain(&mut w, 100_000);
    w.play("wait 90s");
    assert_eq!(w.lines.len(), lines, "no renewals, no judgements: {}", w.tail(4));
    assert!(w.ticks < 5_000);
}
