//! design.md §4.1 and §4.3 to §4.6: claim, read-back, unknown outcomes, proof of being current.

use coordinator::owner::{Command, Effect, OwnerConfig, Phase};
use futures::FutureExt as _;
use snapshot_store::SnapshotStore as _;
use task_core::decide::Draft;
use task_events::{Body, OwnershipRenewed};

use crate::kit::{World, parameters};

fn small() -> OwnerConfig {
    OwnerConfig { lease_ms: 6_000, lease_max_ms: 12_000, heartbeat_ms: 2_000, ..OwnerConfig::default() }
}

#[test]
pub fn nothing_is_decided_before_the_own_claim_is_read_back() {
    let mut w = World::bare(OwnerConfig::default());
    w.hold_log = true;
    w.join("a");
    w.play("submit t1 => nothing | poll w1 => nothing");
    assert_eq!(w.me().sent.len(), 1, "the claim alone");
    w.hold_read = true;
    w.land_one("a");
    w.play("wait 1s");
    assert_eq!(w.owner().in_flight(), 0, "acknowledged is not read back");
    w.land();
    assert_eq!(w.history(), "create t1 | assign t1 w1 e=1");
}

#[test]
pub fn answers_and_effects_come_only_after_read_back() {
    let mut w = World::new();
    w.hold_read = true;
    let t = w.step("submit t1").unwrap();
    assert_eq!((w.count("create t1"), w.heard(w.answer(t))), (1, "nothing".into()), "acknowledged, not read");
    w.land();
    assert_eq!(w.heard(w.answer(t)), "created t1");
    w.hold_read = true;
    w.hold_lock = true;
    let p = w.step("poll w1").unwrap();
    w.release_call(|c| matches!(c, Effect::TakeLocks(..)));
    assert_eq!(w.heard(w.answer(p)), "nothing", "locked, not read back");
    w.land();
    assert_eq!(w.heard(w.answer(p)), "t1 e=1");
    let p = w.step("submit t2").and_then(|_| w.step("poll w2")).unwrap();
    w.hold_lock = true;
    assert_eq!(w.heard(w.answer(p)), "nothing", "read back, not locked");
    w.hold_lock = false;
    w.settle();
    assert_eq!(w.heard(w.answer(p)), "t2 e=1");
    for (ask, answer) in
        [("start t1 e=1", "accepted"), ("cancel t1", "cancel accepted"), ("complete t1 e=1", "accepted")]
    {
        w.hold_read = true;
        let t = w.step(ask).unwrap();
        assert_eq!(w.heard(w.answer(t)), "nothing", "{ask}");
        w.land();
        assert_eq!(w.heard(w.answer(t)), answer);
    }
}

#[test]
pub fn a_lock_answer_of_a_dead_hand_out_says_nothing_of_the_next_one() {
    let mut w = World::new();
    w.play("submit t1");
    (w.hold_log, w.hold_lock) = (true, true);
    let p = w.step("poll w1").unwrap();
    w.unknown();
    w.hold_log = false;
    w.settle();
    assert_eq!(w.history(), "create t1 | assign t1 w1 e=1", "the first one never landed, the second did");
    w.release_call(|c| matches!(c, Effect::TakeLocks(..)));
    assert_eq!(w.heard(w.answer(p)), "nothing", "that was the lock of the first one");
    w.release_call(|c| matches!(c, Effect::TakeLocks(..)));
    assert_eq!(w.heard(w.answer(p)), "t1 e=1");
}

#[test]
pub fn an_assignment_that_was_rejected_gives_its_own_lock_back() {
    let mut w = World::new();
    w.play("submit t1");
    w.hold_log = true;
    let p = w.step("poll w9").unwrap();
    w.foreign_claim();
    assert_eq!(w.me().released, ["w9#1"]);
    assert_eq!(w.heard(w.answer(p)), "unavailable");
}

#[test]
pub fn an_unknown_outcome_that_landed_is_accepted_before_the_claim() {
    let mut w = World::new();
    w.hold_log = true;
    let t = w.step("submit t1").unwrap();
    let sent = w.unknown();
    assert_eq!(w.owner().phase(), Phase::Claiming { retry_ms: None });
    w.land_copy(&sent);
    w.land();
    assert_eq!(w.heard(w.answer(t)), "created t1");
    w.land_copy(&sent);
    w.settle();
    assert_eq!(w.history(), "create t1 | create t1 => rejected(stale_epoch)");
}

#[test]
pub fn an_unknown_outcome_that_did_not_land_is_dead_behind_the_claim_and_gets_a_new_id() {
    let mut w = World::new();
    w.hold_log = true;
    let t = w.step("submit t1 payload={}").unwrap();
    let sent = w.unknown();
    w.land();
    assert_eq!(w.heard(w.answer(t)), "created t1");
    let born = w.id("t1");
    w.land_copy(&sent);
    w.settle();
    assert_eq!(w.history(), "create t1 | create t1 => rejected(stale_epoch)");
    assert_eq!((w.fold.tasks.len(), w.fold.highest, w.id("t1")), (1, born, born));
    let stored = w.store.payload(born, parameters("{}")).now_or_never().unwrap().unwrap();
    assert_eq!(stored.as_deref(), Some(b"{}".as_slice()), "its payload row is written again");
    assert_eq!(w.count("claim http://a"), 2);
}

#[test]
pub fn a_claim_whose_outcome_is_unknown_is_made_again_under_another_identity() {
    let mut w = World::new();
    w.hold_log = true;
    let t = w.step("submit t1").unwrap();
    w.unknown();
    let first = w.unknown();
    w.wait(200);
    w.land_copy(&first);
    w.land();
    assert_eq!((w.owner().phase(), w.fold.epoch.0), (Phase::Owning, 2));
    assert_eq!(w.count("claim http://a => rejected(claim_conflict)"), 1);
    assert_eq!(w.heard(w.answer(t)), "created t1");
}

#[test]
pub fn a_claim_that_nobody_ever_hears_of_is_made_again() {
    let mut w = World::bare(OwnerConfig::default());
    w.hold_log = true;
    w.join("a");
    w.me().sent.clear();
    w.wait(9_999);
    assert_eq!(w.me().sent.len(), 0);
    w.wait(1_001);
    assert_eq!(w.me().sent.len(), 1, "its outcome was lost with it");
    w.land();
    w.play("submit t1 => created t1");
}

#[test]
pub fn superseded_it_stops_at_once_and_claims_again_after_two_seconds_and_more() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1");
    w.hold_log = true;
    let t = w.step("submit t2").unwrap();
    w.foreign_claim();
    assert_eq!(w.heard(w.answer(t)), "unavailable(NotOwner)", "dead behind the claim: nothing was written");
    w.me().sent.clear();
    w.play("beat t1 e=1 => unavailable | submit t3 => unavailable(NotOwner) | poll w1 => unavailable");
    w.wait(1_999);
    assert_eq!(w.me().sent.len(), 0, "silent");
    w.wait(1_001);
    assert_eq!(w.me().sent.len(), 1, "one claim");
    w.land();
    assert_eq!((w.owner().phase(), w.fold.epoch.0), (Phase::Owning, 3));
    w.play("beat t1 e=1 => accepted");
}

#[test]
pub fn two_that_take_it_from_each_other_slow_down() {
    let mut w = World::new();
    let mut waits = Vec::new();
    for _ in 0..8 {
        w.foreign_claim();
        let from = w.now.boot_ms;
        while w.owner().phase() != Phase::Owning {
            w.wait(50);
        }
        waits.push(w.now.boot_ms - from);
    }
    assert!(waits[0] <= 3_100, "{waits:?}");
    assert!(waits.iter().any(|w| *w > 6_000), "the back-off doubles: {waits:?}");
    assert!(waits.iter().all(|w| *w <= 32_100), "{waits:?}");
}

#[test]
pub fn a_rejection_is_no_answer_while_a_copy_may_land() {
    let mut w = World::new();
    w.play("submit t1 max=1 | poll w1 | start t1 e=1 | fail t1 e=1");
    w.hold_log = true;
    let t = w.step("cancel t1").unwrap();
    w.approve(w.id("t1"), 0);
    w.hold_read = true;
    w.land_one("a");
    w.hold_log = true;
    w.hold_read = false;
    w.settle();
    assert_eq!(w.count("cancel t1 => rejected(stale_sequence)"), 1);
    assert_eq!(w.heard(w.answer(t)), "nothing", "a copy of it may still be accepted");
    assert_eq!(w.me().sent.len(), 1, "the follower that makes it final");
    assert!(w.me().sent[0].records[0].key.starts_with(b"#"), "a renewal, not the cancel decided anew");
    w.wait(500);
    assert_eq!(w.me().sent.len(), 1, "one follower, not many");
    w.land();
    assert_eq!(w.heard(w.answer(t)), "cancel accepted");
    assert_eq!(w.count("cancel t1"), 2);
}

#[test]
pub fn certainly_not_sent_is_answered_and_nothing_is_forgotten() {
    let mut w = World::with(small());
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1");
    w.hold_log = true;
    let t = w.step("submit t2").unwrap();
    w.not_sent();
    assert_eq!(w.heard(w.answer(t)), "unavailable(LogUnavailable)");
    assert_eq!(w.owner().phase(), Phase::Owning, "no reason to claim");
    w.hold_log = false;
    w.settle();
    w.play("wait 8500ms");
    w.hold_log = true;
    w.play("wait 300ms");
    let mut refused = 0;
    for _ in 0..100 {
        if w.me().sent.is_empty() {
            w.wait(20);
        } else {
            w.not_sent();
            refused += 1;
        }
    }
    assert!((2..40).contains(&refused), "neither given up nor hammered: {refused} tries in a second or two");
    w.land();
    w.play("wait 3s");
    assert_eq!(w.count("lost t1"), 1, "the lease is judged when the log takes records again: {}", w.tail(9));
}

#[test]
pub fn what_is_not_read_back_within_ten_seconds_is_unknown_and_final_at_the_next_claim() {
    let mut w = World::new();
    w.hold_log = true;
    let unkeyed = w.step("submit t1").unwrap();
    let keyed = w.step("submit t2 key=k").unwrap();
    w.wait(9_999);
    assert_eq!(w.heard(w.answer(unkeyed)), "nothing");
    w.wait(1);
    assert_eq!(w.heard(w.answer(unkeyed)), "unknown, with its id");
    assert_eq!(w.heard(w.answer(keyed)), "unknown");
    w.land();
    w.play("submit t2 key=k => duplicate t2 | submit t3 => created t3");
    assert_eq!(w.count("create"), 3);
}

#[test]
pub fn every_request_is_answered_while_the_log_is_away() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | submit t2");
    w.hold_log = true;
    w.wait(2_500);
    let asked: Vec<_> =
        ["beat t1 e=1", "poll w2 wait=1s", "start t1 e=1", "submit t3", "get t1", "cancel t2", "poll w3 wait=100000s"]
            .iter()
            .map(|s| w.step(s).unwrap())
            .collect();
    w.wait(120_000);
    for token in asked {
        assert_ne!(w.heard(w.answer(token)), "nothing", "{token:?}");
    }
    assert!(w.ticks < 5_000, "{} ticks in two minutes of waiting", w.ticks);
}

#[test]
pub fn idle_partitions_write_nothing() {
    let mut w = World::new();
    w.wait(60_000);
    assert_eq!(w.lines.len(), 1, "the claim: {}", w.tail(5));
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | wait 10s");
    let renewed = w.count("renew");
    assert!((8..=10).contains(&renewed), "{renewed} renewals in 10 s of a lease");
    w.play("beat t1 e=1 => accepted | complete t1 e=1 => accepted | wait 2s");
    let lines = w.lines.len();
    w.play("wait 60s");
    assert_eq!(w.lines.len(), lines, "idle again: {}", w.tail(5));
}

#[test]
pub fn without_a_proof_nothing_is_answered_from_memory() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | submit t2");
    w.wait(100);
    w.hold_log = true;
    w.play("wait 1900ms | beat t1 e=1 => accepted | wait 200ms");
    for ask in ["beat t1 e=1", "get t2", "start t1 e=1", "poll w2", "cancel t1"] {
        let t = w.step(ask).unwrap();
        assert_eq!(w.heard(w.answer(t)), "nothing", "{ask}");
    }
    w.land();
    w.play("wait 10ms");
    assert!(w.replies.len() as u64 >= w.asked, "all answered");
}

#[test]
pub fn a_frozen_owner_answers_and_judges_nothing_before_it_is_proven_again() {
    let mut w = World::with(small());
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 => accepted");
    w.hold_log = true;
    w.play("freeze 60s | beat t1 e=1 => nothing");
    assert_eq!(w.me().sent.len(), 1, "a renewal, and no TaskLost");
    w.land();
    assert_eq!(w.count("lost"), 0, "the heartbeat came before the judgement");
    w.play("beat t1 e=1 => accepted | wait 8s | wait 2s");
    assert_eq!(w.count("lost t1"), 1);
}

#[test]
pub fn a_zombie_is_rejected_and_nobody_acted_on_it() {
    let mut w = World::with(small());
    w.play("submit t1 | submit t2 | poll w1 => t1 e=1 | start t1 e=1");
    w.me().frozen = true;
    w.join("b");
    w.settle();
    w.play("poll w2 => t2 e=1 | start t2 e=1 => accepted | complete t2 e=1 => accepted | wait 60s");
    assert_eq!(w.count("lost t1"), 1);
    w.me().frozen = false;
    w.on = "a";
    w.me().frozen = false;
    w.hold_read = true;
    w.feed("a", coordinator::owner::Input::Tick);
    let t = w.step("submit t9").unwrap();
    assert_eq!(w.heard(w.answer(t)), "nothing");
    w.land();
    assert_eq!(w.heard(w.answer(t)), "unavailable(NotOwner)");
    assert_eq!(
        w.count("create t9 => rejected(stale_epoch)") + w.count("renew => rejected(stale_epoch)"),
        w.count("create t9") + w.count("renew => r")
    );
    assert_eq!((w.count("lost t1"), w.fold.tasks.len()), (1, 1));
}

#[test]
pub fn at_most_so_many_records_are_in_flight() {
    let mut w = World::with(OwnerConfig { max_in_flight: 8, ..small() });
    let names: Vec<String> = (0..30).map(|i| format!("t{i}")).collect();
    for name in &names {
        w.play(&format!("submit {name}"));
    }
    w.hold_log = true;
    w.play("poll w1 slots=30");
    assert!(w.owner().in_flight() <= 8, "{}", w.owner().in_flight());
    w.hold_log = false;
    w.settle();
    for i in 2..8 {
        w.play(&format!("poll w{i} slots=30 wait=0s"));
    }
    assert_eq!(w.count("assign"), 30);
    for name in &names {
        w.play(&format!("start {name} e=1 => accepted"));
    }
    w.hold_log = true;
    w.play("wait 1s");
    let refused = (0..20).map(|i| w.step(&format!("submit x{i}")).unwrap()).collect::<Vec<_>>();
    assert!(w.owner().in_flight() <= 8);
    assert!(refused.iter().any(|t| w.heard(w.answer(*t)) == "unavailable(InFlightFull)"));
    w.land();
    // All leases end at once.
    w.hold_log = true;
    w.play("wait 9s");
    w.hold_log = false;
    for _ in 0..2_000 {
        assert!(w.owner().in_flight() <= 9, "{} in flight", w.owner().in_flight());
        if !w.land_one("a") && !w.read_on("a") {
            w.hold_log = true;
            w.wait(10);
            w.hold_log = false;
        }
        if w.count("lost") == 30 {
            break;
        }
    }
    assert_eq!(w.count("lost"), 30, "each once: {}", w.tail(5));
}

#[test]
pub fn a_forged_owner_seq_makes_it_claim_again() {
    let mut w = World::new();
    let epoch = w.fold.epoch.0;
    w.forge(Draft::control(Body::OwnershipRenewed(OwnershipRenewed {})), epoch, u64::MAX >> 1);
    w.play("submit t1 => created t1 | poll w1 => t1 e=1");
    assert!(w.lines.len() < 20, "no storm: {}", w.tail(20));
}

#[test]
pub fn forgotten_requests_are_neither_answered_nor_served() {
    let mut w = World::new();
    let p = w.step("poll w1 wait=60s").unwrap();
    let on = w.on;
    w.feed(on, coordinator::owner::Input::Forget(p));
    w.play("submit t1 | wait 1s");
    assert_eq!(w.count("assign"), 0, "handed to nobody");
    w.hold_log = true;
    let p = w.step("poll w1 wait=60s").unwrap();
    w.feed(on, coordinator::owner::Input::Forget(p));
    w.unknown();
    w.land();
    w.play("wait 1s");
    assert_eq!(w.count("assign"), 0, "the hand-out died, the poll was gone: {}", w.history());
    let _ = Command::Get { task: w.id("t1") };
}
