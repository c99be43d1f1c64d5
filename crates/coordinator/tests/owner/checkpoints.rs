//! design.md §4.10: checkpoints, and the state hashes that readers compare.

use coordinator::owner::{Input, OwnerConfig, Phase, Stop};
use snapshot_store::CheckpointName;
use task_core::{PartitionState, STANDARD, checkpoint};
use task_events::{Offset, PartitionEpoch, RuleVersion};

use crate::kit::{P, World};

fn every(n: u64) -> OwnerConfig {
    OwnerConfig { checkpoint_every: n, ..OwnerConfig::default() }
}

fn filled(n: usize) -> World {
    let mut w = World::with(every(16));
    for i in 0..n {
        w.play(&format!("submit t{i} => created t{i}"));
    }
    w
}

#[test]
pub fn published_when_the_rows_below_are_acknowledged_and_not_before() {
    let mut w = World::with(every(16));
    w.store_away = true;
    for i in 0..20 {
        w.play(&format!("submit t{i} => created t{i}"));
    }
    w.play("wait 3s");
    assert_eq!(w.checkpoint_names(), []);
    w.store_away = false;
    w.play("wait 3s");
    let names = w.checkpoint_names();
    assert_eq!(names[0].offset, Offset(16));
    assert_eq!(names[0].state_hash, w.hashes[16], "the state at its offset, not at its publication");
    assert_eq!(names[0].epoch, PartitionEpoch(1));
}

#[test]
pub fn one_that_was_taken_in_a_former_ownership_is_not_published() {
    let mut w = World::with(every(16));
    w.store_away = true;
    for i in 0..16 {
        w.play(&format!("submit t{i}"));
    }
    w.foreign_claim();
    w.store_away = false;
    w.play("wait 10s");
    assert!(w.checkpoint_names().iter().all(|n| n.offset > Offset(16)), "{:?}", w.checkpoint_names());
}

fn published(w: &World, n: usize) -> PartitionState {
    let parts = w.members["a"].published[n].state.parts();
    checkpoint::load(&parts.manifest, true, &STANDARD, |hash| {
        parts.chunks.iter().find(|(h, _)| *h == hash).map(|(_, bytes)| bytes.clone())
    })
    .unwrap()
}

#[test]
pub fn an_execution_gets_one_rejected_report_across_a_take_over_from_a_checkpoint() {
    let mut w = World::with(every(16));
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 => accepted | fail t1 e=1 => accepted | approve t1 | plan t1");
    w.play("poll w2 => t1 e=2 | complete t1 e=1 => fenced | complete t1 e=1 => fenced");
    assert_eq!(w.count("noted t1 e=1"), 1);
    (2..20).for_each(|i| w.play(&format!("submit t{i} => created t{i}")));
    w.play("wait 2s");
    let fold = published(&w, 0);
    assert!(fold.next_offset.0 >= 16);
    w.members.remove("a");
    w.join_from("b", fold);
    w.settle();
    w.play("complete t1 e=1 => fenced");
    assert_eq!(w.count("noted t1 e=1"), 1);
}

#[test]
pub fn a_take_over_from_a_checkpoint_comes_to_the_same_state() {
    let mut w = filled(20);
    w.play("poll w1 => t0 e=1 | start t0 e=1 | wait 2s");
    let fold = published(&w, 0);
    assert!(w.acked() > fold.next_offset, "rows above the checkpoint are acknowledged");
    w.members.remove("a");
    w.join_from("b", fold);
    w.settle();
    assert_eq!(w.owner().phase(), Phase::Owning);
    assert_eq!(w.owner().fold().hash(), w.fold.hash());
    let written = w.writes.len();
    w.play("complete t0 e=1 => accepted | submit t99 => created t99 | wait 3s");
    let again = &w.writes[written..];
    assert!(again.iter().all(|l| l.contains("t0 ") || l.contains("t99")), "{again:?}");
}

fn name(offset: u64, state_hash: u128) -> CheckpointName {
    CheckpointName {
        partition: P,
        offset: Offset(offset),
        epoch: PartitionEpoch(1),
        rule_version: RuleVersion(1),
        state_hash,
    }
}

#[test]
pub fn another_state_at_the_same_offset_stops_the_reader() {
    for ahead in [false, true] {
        let mut w = filled(if ahead { 3 } else { 40 });
        let right = if ahead { Vec::new() } else { vec![name(16, w.hashes[16]), name(32, w.hashes[32])] };
        w.feed("a", Input::Checkpoints(right));
        assert_eq!(w.owner().phase(), Phase::Owning);
        w.feed("a", Input::Checkpoints(vec![name(16, 7)]));
        let t = w.step("submit x0").unwrap();
        for i in 1..20 {
            w.step(&format!("submit x{i}"));
        }
        let Some(Stop::StateDiffers(differs)) = w.members["a"].stopped.clone() else { panic!("goes on") };
        assert_eq!((differs.offset, differs.other, differs.own), (Offset(16), 7, w.hash_at(16)));
        assert_eq!(w.owner().phase(), Phase::Done);
        assert_ne!(w.heard(w.answer(t)), "nothing");
    }
}

#[test]
pub fn a_reader_that_only_folds_compares_too() {
    let mut w = filled(40);
    w.hold_read = true;
    w.join("b");
    w.feed("b", Input::Checkpoints(vec![name(32, 1)]));
    w.hold_read = false;
    w.settle();
    assert!(matches!(w.members["b"].stopped, Some(Stop::StateDiffers(_))));
}

#[test]
pub fn gaps_and_unknown_rules_stop_it_and_everybody_is_answered() {
    let mut w = World::new();
    w.hold_log = true;
    let t = w.step("submit t1").unwrap();
    let mut raw = w.log[0].clone();
    raw.offset = Offset(9);
    w.feed("a", Input::Records(vec![raw]));
    assert!(matches!(w.members["a"].stopped, Some(Stop::Gap { expected: Offset(1), found: Offset(9) })));
    assert_eq!(w.heard(w.answer(t)), "unknown, with its id", "its record may be in the log");
    let mut w = World::new();
    let body = task_events::RulesActivated { activated: RuleVersion(99) };
    let epoch = w.fold.epoch.0;
    w.forge(task_core::decide::Draft::control(task_events::Body::RulesActivated(body)), epoch, 50);
    assert!(matches!(w.members["a"].stopped, Some(Stop::UnknownRules { version: RuleVersion(99), .. })));
    let t = w.step("submit t1").unwrap();
    assert_eq!(w.heard(w.answer(t)), "unavailable(Draining)");
}

#[test]
pub fn malformed_records_are_passed_over_and_told() {
    let mut w = World::new();
    w.play("submit t1");
    w.land_raw(None, Vec::new(), None);
    w.land_raw(Some("1".into()), Vec::new(), Some(bytes::Bytes::from_static(&[0, 0, 0, 0, 42, 1])));
    w.settle();
    assert_eq!(w.alarms("quarantined"), 2);
    w.play("submit t2 => created t2");
    assert_eq!(w.owner().fold().counters.quarantined, 2);
    assert_eq!(w.owner().fold().counters.total(), w.owner().fold().next_offset.0);
}
