//! design.md §3 (ids), §4.5, §4.9, §8: keys, limits, payloads, ids.

use coordinator::owner::{Answer, Effect, Input, Key, OwnerConfig, Token};
use futures::FutureExt as _;
use snapshot_store::SnapshotStore as _;
use task_core::decide::Refusal;
use task_events::Sha256Hash;

use crate::kit::{World, parameters};

fn heard(w: &World, tokens: &[Token]) -> Vec<String> {
    tokens.iter().map(|t| w.heard(w.answer(*t))).collect()
}

#[test]
pub fn one_key_one_task() {
    let mut w = World::new();
    w.play("submit t1 key=k => created t1 | submit t2 key=k => duplicate t1 | submit t3 key=k body=other => conflict t1 | wait 5s");
    w.play("submit t4 key=k => duplicate t1 | submit t5 key=k body=other => conflict t1");
    assert_eq!(w.history(), "create t1");
}

#[test]
pub fn what_a_key_created_is_told_also_after_its_deadline() {
    let mut w = World::new();
    w.play("submit t1 key=k deadline=5s => created t1 | wait 6s | submit t2 key=k deadline=0s => duplicate t1");
    let mut late = crate::kit::task("t3");
    late.task.created.deadline = Some(1);
    late.key = Some(Key { key_hash: Sha256Hash([7; 32]), request_hash: Sha256Hash([7; 32]) });
    let asked = w.ask(coordinator::owner::Command::Create(Box::new(late)));
    let Some(Answer::Refused(Refusal::DeadlinePassed { deadline: 1, .. })) = w.answer(asked) else {
        panic!("{:?}", w.answer(asked))
    };
    assert_eq!(w.count("create t3"), 0);
}

#[test]
pub fn equal_keys_in_flight_join() {
    let mut w = World::new();
    w.hold_log = true;
    let tokens: Vec<_> = (0..20).map(|i| w.step(&format!("submit t{i} key=k")).unwrap()).collect();
    let other = w.step("submit x key=k body=other").unwrap();
    w.land();
    let heard = heard(&w, &tokens);
    assert_eq!(heard[0], "created t0");
    assert!(heard[1..].iter().all(|h| h == "duplicate t0"), "{heard:?}");
    assert_eq!((w.heard(w.answer(other)), w.history()), ("conflict t0".into(), "create t0".into()));
}

#[test]
pub fn those_that_joined_are_answered_whatever_becomes_of_the_first() {
    // The store fails.
    let mut w = World::new();
    w.hold_store = true;
    let tokens: Vec<_> = (0..3).map(|i| w.step(&format!("submit a{i} key=a")).unwrap()).collect();
    (w.store_away, w.hold_store) = (true, false);
    w.settle();
    assert_eq!(heard(&w, &tokens), ["unavailable(StoreUnavailable)"; 3]);
    w.store_away = false;
    // Its payload fails, theirs does not.
    w.hold_store = true;
    let tokens: Vec<_> = (0..2).map(|i| w.step(&format!("submit b{i} key=b payload={{}}")).unwrap()).collect();
    w.release_call(|c| matches!(c, Effect::ReadKey(..)));
    w.store_away = true;
    w.release_call(|c| matches!(c, Effect::StorePayloads(..)));
    (w.store_away, w.hold_store) = (false, false);
    w.settle();
    assert_eq!(heard(&w, &tokens), ["unavailable(StoreUnavailable)", "created b1"]);
    // Its client goes away, before and after it is written.
    w.hold_store = true;
    let tokens: Vec<_> = (0..2).map(|i| w.step(&format!("submit c{i} key=c")).unwrap()).collect();
    w.feed("a", Input::Forget(tokens[0]));
    w.hold_store = false;
    w.settle();
    assert_eq!(heard(&w, &tokens), ["nothing", "created c1"]);
    w.hold_log = true;
    let tokens: Vec<_> = (0..2).map(|i| w.step(&format!("submit d{i} key=d")).unwrap()).collect();
    w.feed("a", Input::Forget(tokens[0]));
    w.land();
    assert_eq!(heard(&w, &tokens), ["nothing", "duplicate d0"]);
    // Its record dies.
    w.hold_log = true;
    let tokens: Vec<_> = (0..3).map(|i| w.step(&format!("submit e{i} key=e")).unwrap()).collect();
    w.unknown();
    w.land();
    let mut answers = heard(&w, &tokens);
    answers.sort();
    assert_eq!((answers[0].starts_with("created e"), w.count("create e")), (true, 1), "{answers:?}");
    // Another takes over.
    w.hold_store = true;
    let tokens: Vec<_> = (0..3).map(|i| w.step(&format!("submit f{i} key=f")).unwrap()).collect();
    w.foreign_claim();
    assert_eq!(heard(&w, &tokens), ["unavailable(NotOwner)"; 3]);
}

#[test]
pub fn a_key_that_is_read_while_claiming_again_holds_nobody_up() {
    let mut w = World::new();
    w.hold_store = true;
    let tokens: Vec<_> = (0..2).map(|i| w.step(&format!("submit a{i} key=a")).unwrap()).collect();
    w.hold_log = true;
    w.step("submit x");
    w.unknown();
    w.release_call(|c| matches!(c, Effect::ReadKey(..)));
    w.hold_store = false;
    w.land();
    w.settle();
    let mut answers = heard(&w, &tokens);
    answers.sort();
    assert_eq!(answers, ["created a0", "duplicate a0"]);
    w.play("submit a2 key=a => duplicate a0");
}

#[test]
pub fn a_key_read_of_a_former_ownership_decides_nothing() {
    let mut w = World::new();
    w.hold_store = true;
    let first = w.step("submit a0 key=a").unwrap();
    w.foreign_claim();
    w.wait(4_000);
    let second = w.step("submit a1 key=a").unwrap();
    w.release_call(|c| matches!(c, Effect::ReadKey(..)));
    assert_eq!(w.count("create"), 0, "the answer of the first read came");
    w.hold_store = false;
    w.settle();
    assert_eq!(heard(&w, &[first, second]), ["unavailable(NotOwner)", "created a1"]);
}

#[test]
pub fn keys_are_known_after_the_task_is_forgotten_and_the_owner_too() {
    let mut w = World::new();
    w.store_away = true;
    w.hold_store = true;
    w.step("submit t1 key=k");
    w.store_away = false;
    w.release_call(|c| matches!(c, Effect::ReadKey(..)));
    w.store_away = true;
    w.play("poll w1 => t1 e=1 | complete t1 e=1 => accepted");
    w.hold_store = false;
    w.play("wait 3s | submit t2 key=k => duplicate t1 | crash");
    w.play("submit t3 key=k => duplicate t1");
    assert_eq!(w.count("create"), 1);
    w.store_away = false;
    w.play("wait 3s | crash | submit t4 key=k => duplicate t1");
}

#[test]
pub fn a_key_is_free_again_after_a_day() {
    let mut w = World::new();
    w.play("submit t1 key=k => created t1 | wait 3s | freeze 86400s | wait 1s | submit t2 key=k => created t2");
}

#[test]
pub fn payloads_are_stored_before_and_ids_leave_in_the_order_they_were_minted() {
    let mut w = World::new();
    w.hold_store = true;
    let tokens: Vec<_> = ["submit t1 payload=1", "submit t2", "submit t3 payload=3", "submit t4 payload=4"]
        .iter()
        .map(|s| w.step(s).unwrap())
        .collect();
    assert_eq!(w.history(), "");
    w.me().calls.rotate_left(2);
    w.release_call(|c| matches!(c, Effect::StorePayloads(..)));
    assert_eq!(w.history(), "", "the third one waits for the first");
    w.release_call(|c| matches!(c, Effect::StorePayloads(..)));
    assert_eq!(w.history(), "create t1 | create t2");
    w.store_away = true;
    w.release_call(|c| matches!(c, Effect::StorePayloads(..)));
    w.settle();
    assert_eq!(heard(&w, &tokens[..2]), ["created t1", "created t2"]);
    let rest = heard(&w, &tokens[2..]);
    assert!(rest.contains(&"unavailable(StoreUnavailable)".to_owned()), "{rest:?}");
    assert!(rest.iter().any(|r| r.starts_with("created")), "the one that failed is not waited for: {rest:?}");
    let id = w.id("t1");
    let stored = w.store.payload(id, parameters("1")).now_or_never().unwrap().unwrap();
    assert_eq!(stored.as_deref(), Some(b"1".as_slice()));
}

#[test]
pub fn an_owner_that_was_superseded_takes_no_parameters_away() {
    let mut w = World::new();
    w.play("submit t1 payload={} => created t1");
    // It does not know yet that it is none any more, and mints above the same id in the same ms.
    let mut zombie = World::new();
    zombie.hold_store = true;
    zombie.step("submit t1 payload=[]");
    let stores =
        |effect: &Effect| if let Effect::StorePayloads(_, items) = effect { Some(items.clone()) } else { None };
    let items = zombie.me().calls.iter().find_map(stores).expect("its payload");
    assert_eq!((items[0].0, &items[0].2[..]), (w.id("t1"), &b"[]"[..]), "the same id, other parameters");
    w.store.put_payloads(items).now_or_never().unwrap().unwrap();
    let stored = w.store.payload(w.id("t1"), parameters("{}")).now_or_never().unwrap().unwrap();
    assert_eq!(stored.as_deref(), Some(b"{}".as_slice()), "those that the accepted event names");
}

#[test]
pub fn a_payload_that_is_never_answered_holds_up_nobody_for_longer_than_a_request() {
    let mut w = World::new();
    w.hold_store = true;
    let slow = w.step("submit t1 payload=1").unwrap();
    w.wait(5_000);
    let next = w.step("submit t2").unwrap();
    w.wait(5_001);
    assert_eq!(heard(&w, &[slow, next]), ["unavailable(NotOwner)", "created t2"]);
    w.hold_store = false;
    w.play("wait 1s | submit t3 => created t3");
    assert_eq!(w.history(), "create t2 | create t3");
}

#[test]
pub fn a_creator_may_have_so_many_open_tasks() {
    let mut w = World::with(OwnerConfig { max_open_tasks: 3, ..OwnerConfig::default() });
    w.hold_log = true;
    let tokens: Vec<_> = (0..5).map(|i| w.step(&format!("submit t{i} key=k{i}")).unwrap()).collect();
    w.land();
    let answers = heard(&w, &tokens);
    assert_eq!(answers.iter().filter(|a| a.starts_with("created")).count(), 3, "{answers:?}");
    w.play("submit x => backlog_full 3 | submit y creator=other => created y | submit t0 key=k0 => duplicate t0");
    w.play("poll w1 => t0 e=1 | complete t0 e=1 | submit z => created z | submit x => backlog_full 3");
    w.play("crash | submit x => backlog_full 3");
}

#[test]
pub fn creates_stop_at_half_of_what_may_be_owed_and_dispatch_at_all() {
    let mut w = World::with(OwnerConfig { owed_bytes: 256 * 7, ..OwnerConfig::default() });
    w.hold_store = true;
    w.play("submit t1 => created t1 | submit t2 => created t2 | submit t3 => created t3 | submit t4 => created t4");
    w.play("submit t5 => unavailable(StoreBehind) | poll w1 => t1 e=1 | complete t1 e=1 => accepted");
    let p = w.step("poll w2").unwrap();
    assert_eq!(w.heard(w.answer(p)), "nothing", "dispatch waits");
    w.hold_store = false;
    w.play("wait 1500ms");
    assert_eq!(w.heard(w.answer(p)), "t2 e=1");
    w.play("submit t5 => created t5");
}

#[test]
pub fn ids_rise_whatever_the_clocks_do() {
    let mut w = World::new();
    w.play("submit t1 | submit t2");
    w.now.wall_ms -= 3_000;
    w.skew_ms = 3_000;
    w.play("submit t3 => created t3 | crash | submit t4 => created t4");
    let ids: Vec<_> = ["t1", "t2", "t3", "t4"].iter().map(|n| w.id(n)).collect();
    assert!(ids.is_sorted(), "{ids:?}");
}

#[test]
pub fn twenty_clients_and_any_outcome_are_each_told_once() {
    for lost in 0..6 {
        let mut w = World::new();
        w.hold_log = true;
        let tokens: Vec<_> = (0..6).map(|i| w.step(&format!("submit t{i}")).unwrap()).collect();
        for i in 0..lost {
            let sent = w.me().sent.pop_front().unwrap();
            if i % 2 == 0 {
                w.land_copy(&sent);
            }
            w.feed("a", Input::Appended(sent.ticket, event_log::AppendOutcome::Unknown("?".into())));
        }
        w.land();
        assert!(heard(&w, &tokens).iter().all(|h| h.starts_with("created")), "{:?}", heard(&w, &tokens));
        assert_eq!(w.fold.tasks.len(), 6);
    }
}
