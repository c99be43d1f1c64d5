use event_log::{LogError, MembershipEvent};

use super::*;
use crate::testing::Fate;

fn revoke(seconds: u64) -> Result<MembershipEvent, LogError> {
    Ok(MembershipEvent::Revoked { partitions: vec![PartitionId(0)], deadline: Duration::from_secs(seconds) })
}

#[test]
fn a_revoked_partition_is_given_back_once_appends_are_settled() {
    let mut world = World::new();
    world.log.assign(&[0, 1]);
    world.log.fate(Fate::Stuck);
    world.open(1, 1);
    world.log.tell(revoke(2));
    world.open(2, 1);
    world.pass(1_950);
    assert_eq!((world.log.released(), world.verdicts().len()), (vec![], 1), "nothing is decided any more");
    world.pass(50);
    assert_eq!((world.log.released(), world.log.open_tails()), (vec![PartitionId(0)], 1));
    world.log.assign(&[0]);
    world.run.settle();
    let anew = [(1, 1, 1), (1, 1, 2), (2, 1, 1)];
    assert_eq!(world.verdicts(), anew, "a new fold decides by what it sees, and repeats no identity");
    world.log.tell(revoke(2));
    world.run.settle();
    assert_eq!(world.log.released().len(), 2);
}

#[test]
fn a_lost_partition_is_dropped_at_once() {
    let mut world = World::new();
    world.log.assign(&[0]);
    world.log.fate(Fate::Stuck);
    world.open(1, 1);
    world.log.tell(Ok(MembershipEvent::Lost(vec![PartitionId(0)])));
    world.open(2, 1);
    world.pass(60_000);
    assert_eq!((world.verdicts().len(), world.log.open_tails(), world.log.released()), (1, 0, vec![]));
}

#[test]
fn unknown_rules_and_gaps_stop_it_with_an_alarm() {
    for (alarm, gap) in [("unknown_rules", false), ("offset_gap", true)] {
        let mut world = World::new();
        world.log.assign(&[0, 1]);
        world.open(1, 1);
        if gap {
            let mut record = world.log.records(0)[0].clone();
            record.offset = Offset(7);
            world.log.write_raw(record);
            world.log.write(0, Vec::new());
        } else {
            world.log.write(0, vec![record(b'r', 0, 0, 0)]);
        }
        world.run.settle();
        assert!(matches!(world.run.output, Some(Err(ProjectionError::Stopped { .. }))), "{alarm}");
        assert_eq!(world.metrics.alarms()[alarm].count, 1);
        assert_eq!(world.log.joins_and_left(), (1, true));
        assert_eq!(world.log.open_tails(), 0);
    }
}

#[test]
fn offsets_seen_before_are_ignored() {
    let mut world = World::new();
    world.log.assign(&[0]);
    world.open(1, 1);
    let record = world.log.records(0)[0].clone();
    world.log.write_raw(record);
    world.log.write(0, Vec::new());
    world.run.settle();
    assert_eq!(world.metrics.counters()["projection_records_seen_again_total"], 1);
}

#[test]
fn a_member_that_was_dropped_joins_again_and_starts_anew() {
    let mut world = World::new();
    world.log.assign(&[0]);
    world.open(1, 1);
    world.log.tell(Err(LogError::NotMember("toys".into())));
    world.log.assign(&[0]);
    world.run.settle();
    assert_eq!(world.log.joins_and_left(), (2, false));
    world.open(2, 1);
    assert_eq!(world.verdicts(), [(1, 1, 1), (2, 1, 1)]);
    assert_eq!(world.log.open_tails(), 1);
}

#[test]
fn attempts_are_counted_across_assignments() {
    let mut world = World::new();
    world.log.assign(&[0]);
    world.log.fate(Fate::Stuck);
    world.open(1, 1);
    world.log.fate(Fate::Stuck);
    world.log.tell(Ok(MembershipEvent::Lost(vec![PartitionId(0)])));
    world.log.assign(&[0]);
    world.run.settle();
    world.log.tell(Err(LogError::NotMember("toys".into())));
    world.log.assign(&[0]);
    world.run.settle();
    assert_eq!(world.verdicts(), [(1, 1, 1), (1, 1, 2), (1, 1, 3)]);
}

#[test]
fn a_broken_tail_is_opened_again_where_it_broke() {
    let mut world = World::new();
    world.log.assign(&[0]);
    world.open(1, 1);
    world.log.break_tail(LogError::Unavailable("gone".into()));
    world.open(2, 1);
    assert_eq!(world.verdicts().len(), 1);
    world.pass(100);
    assert_eq!(world.verdicts(), [(1, 1, 1), (2, 1, 1)]);
    assert_eq!(world.log.open_tails(), 1);
}

#[test]
fn a_damaged_log_ends_it() {
    let mut world = World::new();
    world.log.assign(&[0]);
    world.run.settle();
    let damage = LogError::Damaged { file: "f".into(), position: 1, offset: Offset(0), reason: "crc".into() };
    world.log.break_tail(damage.clone());
    world.run.settle();
    assert_eq!(world.run.output, Some(Err(ProjectionError::Log(damage))));
    assert_eq!(world.metrics.alarms()["log_unusable"].count, 1);
}

#[test]
fn a_start_that_fails_is_tried_again() {
    let mut world = World::new();
    world.knobs.lock().load_fails = 2;
    world.log.assign(&[0]);
    world.open(1, 1);
    world.pass(9_950);
    assert_eq!((world.verdicts(), world.knobs.lock().loads), (vec![], 2));
    world.pass(50);
    assert_eq!(world.verdicts(), [(1, 1, 1)]);
    assert_eq!(world.metrics.alarms()["reader_start"].count, 2);
}

#[test]
fn shutdown_settles_and_leaves() {
    let mut world = World::new();
    world.log.assign(&[0]);
    world.log.fate(Fate::Stuck);
    world.open(1, 1);
    world.shutdown.request();
    world.open(2, 1);
    assert_eq!(world.run.output, None, "an append is out");
    world.pass(2_000);
    assert_eq!((world.run.output.clone(), world.log.joins_and_left()), (Some(Ok(())), (1, true)));
    assert_eq!(world.verdicts().len(), 1);
}

#[test]
fn dropping_the_future_is_a_crash_at_any_point() {
    for polls in 0..12 {
        let mut world = World::new();
        world.log.assign(&[0]);
        world.log.write(0, vec![record(b'o', 1, 1, 0)]);
        for _ in 0..polls {
            world.run.poll_once();
        }
        let (log, first) = (world.log.clone(), world.verdicts().len());
        drop(world);
        assert_eq!(log.open_tails(), 0);
        let mut next = World::on(log.clone());
        log.assign(&[0]);
        next.run.settle();
        assert_eq!(next.verdicts().len(), 1, "{first} before the crash");
    }
}

#[test]
fn what_it_holds_is_shown_and_no_longer_once_it_is_given_back() {
    let mut world = World::new();
    assert!(world.standings.all().is_empty());
    world.log.assign(&[0]);
    world.open(1, 1);
    let shown = world.standings.all();
    let Standing { owning, applied } = shown[&PartitionId(0)];
    assert!(owning && applied == Offset(2), "the opening and the verdict are folded: {shown:?}");
    world.log.tell(revoke(2));
    world.run.settle();
    assert!(world.standings.all().is_empty());
}
