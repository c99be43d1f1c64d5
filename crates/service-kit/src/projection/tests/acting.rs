use super::*;
use crate::testing::Fate;

#[test]
fn it_folds_to_the_end_before_it_acts() {
    let mut world = World::new();
    for (kind, subject) in [(b'o', 1), (b'v', 1), (b'o', 2)] {
        world.log.write(0, vec![record(kind, subject, 1, 9)]);
    }
    world.log.assign(&[0, 1]);
    world.run.settle();
    assert_eq!(world.verdicts(), [(2, 1, 1)]);
    world.open(3, 1);
    world.open(2, 2);
    assert_eq!(world.verdicts(), [(2, 1, 1), (3, 1, 1), (2, 2, 1)]);
    assert_eq!(world.metrics.counters()["projection_verdicts_accepted_total"], 3);
    assert_eq!(world.metrics.counters()["projection_records_folded_total"], 8);
}

#[test]
fn many_at_once_go_out_in_batches() {
    let mut world = World::new();
    world.log.write(0, (0..=255).map(|s| record(b'o', s, 1, 0)).collect());
    world.log.assign(&[0]);
    world.run.settle();
    assert_eq!((world.log.appended().len(), world.verdicts().len()), (1, 256));
}

#[test]
fn an_unknown_outcome_is_never_sent_again_only_decided_anew() {
    let mut world = World::new();
    world.log.assign(&[0]);
    world.log.fate(Fate::UnknownLost);
    world.open(1, 1);
    world.pass(9_950);
    assert_eq!(world.verdicts(), [(1, 1, 1)]);
    world.log.fate(Fate::UnknownLanded);
    world.pass(50);
    assert_eq!(world.verdicts(), [(1, 1, 1), (1, 1, 2)]);
    world.pass(60_000);
    assert_eq!(world.verdicts().len(), 2, "it was read back");
    assert_eq!(world.metrics.counters()["projection_outcomes_unknown_total"], 2);
}

#[test]
fn a_stuck_append_is_decided_anew_after_a_longer_wait() {
    let mut world = World::new();
    world.log.assign(&[0]);
    world.log.fate(Fate::Stuck);
    world.open(1, 1);
    world.pass(29_950);
    assert_eq!(world.verdicts().len(), 1);
    world.pass(50);
    assert_eq!(world.verdicts(), [(1, 1, 1), (1, 1, 2)]);
}

#[test]
fn a_refused_append_is_tried_again_with_growing_pauses() {
    let mut world = World::new();
    world.log.assign(&[0]);
    for _ in 0..3 {
        world.log.fate(Fate::NotSent);
    }
    world.open(1, 1);
    let mut sent = Vec::new();
    for _ in 0..20 {
        sent.push(world.verdicts().len());
        world.pass(50);
    }
    assert_eq!(sent, [1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4]);
}

#[test]
fn three_equal_rejections_make_it_rest_and_raise_an_alarm() {
    let mut world = World::new();
    world.knobs.lock().reject = true;
    world.log.assign(&[0]);
    world.open(1, 1);
    assert_eq!(world.verdicts().len(), 3);
    assert_eq!(world.metrics.alarms()["equal_rejections"].count, 1);
    world.pass(100);
    assert_eq!(world.verdicts().len(), 4);
    world.pass(150);
    assert_eq!(world.verdicts().len(), 4);
    world.knobs.lock().reject = false;
    world.pass(50);
    assert_eq!(world.verdicts().len(), 5);
    world.pass(60_000);
    assert_eq!(world.verdicts().len(), 5);
}

#[test]
fn it_looks_again_every_five_seconds() {
    let mut world = World::new();
    world.knobs.lock().decide_nothing = true;
    world.log.assign(&[0]);
    world.open(1, 1);
    world.pass(4_950);
    world.knobs.lock().decide_nothing = false;
    assert_eq!(world.verdicts(), []);
    world.pass(50);
    assert_eq!(world.verdicts(), [(1, 1, 1)]);
}

#[test]
fn a_decision_may_wait_for_an_answer() {
    let mut world = World::new();
    world.knobs.lock().ask_first = true;
    world.log.assign(&[0]);
    world.open(1, 1);
    assert_eq!(world.verdicts(), [(1, 1, 1)]);
}
