//! Waiting for a task's end, and finding what the store may not show yet (design.md §7, §8).

use std::time::Duration;

use coordinator::owner::{AWAIT_MAX_MS, Command, Input};

use crate::kit::World;

fn drain(w: &mut World) {
    w.feed(w.on, Input::Drain(Duration::from_secs(1)));
    w.settle();
}

#[test]
fn whoever_waits_is_told_when_the_task_ends() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 => accepted");
    let waits: Vec<_> = (0..3).map(|_| w.step("await t1 for=30s").unwrap()).collect();
    w.play("wait 20s | fail t1 e=1 => accepted");
    assert_eq!(w.heard(w.answer(waits[0])), "nothing", "FAILED is not the end");
    w.play("approve t1 | plan t1 | poll w1 => t1 e=2 | complete t1 e=2 => accepted");
    for token in waits {
        assert!(w.heard(w.answer(token)).starts_with("SUCCESS"), "{}", w.heard(w.answer(token)));
    }
    w.play("await t1 => SUCCESS v9 | wait 3s | await t1 => SUCCESS v9");
}

#[test]
fn at_the_end_of_its_time_it_is_told_what_the_task_is_then() {
    let mut w = World::new();
    w.play("submit t1 | await t1 for=0s => CREATED v1");
    let wait = w.step("await t1 for=5s").unwrap();
    w.play("poll w1 => t1 e=1 | start t1 e=1 | wait 4999ms");
    assert_eq!(w.heard(w.answer(wait)), "nothing");
    w.play("wait 2ms");
    assert_eq!(w.heard(w.answer(wait)), "EXECUTING v3");
    let long = w.ask(Command::Await { task: w.id("t1"), wait_ms: u64::MAX });
    for _ in 0..AWAIT_MAX_MS / 10_000 {
        assert_eq!(w.heard(w.answer(long)), "nothing");
        w.play("beat t1 e=1 => accepted | wait 10s");
    }
    w.play("wait 10ms");
    assert_eq!(w.heard(w.answer(long)), "EXECUTING v3", "a minute at most");
}

#[test]
fn one_that_nobody_knows_is_answered_like_any_read() {
    let mut w = World::new();
    w.play("submit t1");
    let id = w.id("t1");
    let other = task_events::TaskId::from_raw(id.raw() + 1).unwrap();
    let token = w.ask(Command::Await { task: other, wait_ms: 30_000 });
    assert_eq!(w.heard(w.answer(token)), "not found");
}

#[test]
fn a_hand_over_and_a_supersession_tell_it_to_ask_elsewhere() {
    let mut w = World::new();
    w.play("submit t1");
    let wait = w.step("await t1").unwrap();
    w.hold_log = true;
    w.step("submit t2");
    drain(&mut w);
    assert_eq!(w.heard(w.answer(wait)), "unavailable(Draining)");
    w.play("await t1 => unavailable(Draining)");
    let mut w = World::new();
    w.play("submit t1");
    let wait = w.step("await t1").unwrap();
    w.foreign_claim();
    assert_eq!(w.heard(w.answer(wait)), "unavailable(NotOwner)");
}

#[test]
fn it_waits_on_behind_a_claim_and_hears_of_an_end_that_came_meanwhile() {
    let mut w = World::new();
    w.play("submit t1 | submit t2 | poll w1 => t1 e=1");
    let waits = [w.step("await t1").unwrap(), w.step("await t2").unwrap()];
    w.hold_log = true;
    w.step("complete t1 e=1");
    let sent = w.unknown();
    w.land_copy(&sent);
    w.settle();
    assert_eq!(w.heard(w.answer(waits[0])), "nothing", "closed, and this owner is not proven to be one");
    w.land();
    assert_eq!(w.heard(w.answer(waits[0])), "SUCCESS v3");
    assert_eq!(w.heard(w.answer(waits[1])), "nothing");
    w.play("cancel t2 => cancel accepted");
    assert_eq!(w.heard(w.answer(waits[1])), "CANCELLED v3");
}

#[test]
fn without_a_proof_it_is_told_nothing() {
    let mut w = World::new();
    w.play("submit t1 | wait 5s");
    let wait = w.step("await t1 for=3s").unwrap();
    w.hold_read = true;
    w.play("wait 5s");
    assert_eq!(w.heard(w.answer(wait)), "nothing");
    w.land();
    assert_eq!(w.heard(w.answer(wait)), "CREATED v1");
    let wait = w.step("await t1 for=3s").unwrap();
    w.hold_log = true;
    w.play("wait 14s");
    assert_eq!(w.heard(w.answer(wait)), "unavailable(NotOwner)", "as long as any request, after its wait");
}

#[test]
fn one_that_went_away_leaves_nothing_behind() {
    let mut w = World::new();
    w.play("submit t1");
    let gone = w.step("await t1 for=40s").unwrap();
    let stays = w.step("await t1 for=40s").unwrap();
    w.feed(w.on, Input::Forget(gone));
    w.play("cancel t1 => cancel accepted | wait 60s");
    assert_eq!((w.heard(w.answer(gone)), w.heard(w.answer(stays))), ("nothing".into(), "CANCELLED v3".into()));
}

#[test]
fn what_is_owed_is_found_and_what_is_written_is_not_looked_at() {
    let mut w = World::new();
    w.hold_store = true;
    w.play("submit a trace=x | submit b trace=x | submit c trace=y | submit d creator=other");
    w.play("find trace=x => b, a | find trace=x limit=1 => b | find trace=z => none");
    w.play("find a => a | find d => none | find d creator=other => d");
    w.play("poll w1 => a e=1 | complete a e=1 | find trace=x => b, a | find a => a");
    w.hold_store = false;
    w.play("wait 3s | find trace=x => none | poll w1 slots=9 => d e=1, b e=1, c e=1 | find trace=x => b");
    w.hold_store = true;
    w.play("wait 3s | find trace=x => b");
    w.hold_store = false;
    w.play("wait 1s | find trace=x => none | start b e=1 | crash | find trace=x => b");
}
