//! Numbers at the end of their range.

use task_core::decide::{self, Assign, Refusal, Replay, RetryPolicy, View};
use task_core::{PartitionState, Record, Verdict};
use task_events::*;

use crate::kit::{PARTITION, World, play, task};
use crate::notation::right;
use crate::walk::verdict;

// Not reached by a log of this length: the state is set.
fn with(text: &str, set: impl FnOnce(&mut task_core::CoreState)) -> World {
    let mut world = play(text);
    world.state.tasks.update(task(1), |slot| set(&mut slot.core)).unwrap();
    world
}

fn says(state: &PartitionState, event: &Event) -> Option<&'static str> {
    verdict(state, event).rejected().map(|r| r.as_str())
}

fn view(world: &World, f: impl FnOnce(View<'_>)) {
    let slot = world.state.tasks.get(task(1)).unwrap();
    f(View { core: &slot.core, row: slot.row.as_deref().unwrap() });
}

fn to() -> Assign {
    Assign {
        worker_id: "w".into(),
        incarnation: Incarnation(1),
        handler_version: "1".into(),
        lease_ms: u64::MAX,
        lease_max_ms: u64::MAX,
        heartbeat_ms: 1,
        optimistic_start: false,
    }
}

#[test]
fn a_task_whose_sequence_is_used_up_can_only_be_overdue() {
    let w = with("claim | submit t1", |core| core.version = EventSequence(u32::MAX));
    view(&w, |v| {
        assert_eq!(decide::assign(v, to(), 0), Err(Refusal::Exhausted));
        assert_eq!(decide::cancel_request(v, "a".into(), "r".into()), Err(Refusal::Exhausted));
        assert_eq!(decide::timed_out(v, TimeoutKind::Deadline, None, 0), Err(Refusal::Exhausted));
        assert!(decide::overdue(v, 0, None).is_some());
    });
    for sequence in [0, 1, u32::MAX] {
        let mut event = right(&w, Kind::TaskAssigned, task(1));
        event.event_sequence = EventSequence(sequence);
        assert_eq!(says(&w.state, &event), Some("stale_sequence"));
    }
    assert_eq!(says(&w.state, &right(&w, Kind::TaskOverdue, task(1))), None);
}

#[test]
fn the_last_sequence_is_accepted() {
    let w = with("claim | submit t1", |core| core.version = EventSequence(u32::MAX - 1));
    assert_eq!(says(&w.state, &right(&w, Kind::TaskAssigned, task(1))), None);
}

#[test]
fn no_attempt_follows_the_last_fencing_token() {
    let w = with("claim | submit t1", |core| core.exec_epoch = ExecEpoch(u32::MAX));
    view(&w, |v| assert_eq!(decide::assign(v, to(), 0), Err(Refusal::Exhausted)));
    for epoch in [0, 1, u32::MAX] {
        let mut event = right(&w, Kind::TaskAssigned, task(1));
        event.exec_epoch = ExecEpoch(epoch);
        assert_eq!(says(&w.state, &event), Some("wrong_attempt"));
    }
}

#[test]
fn the_last_retry_of_the_largest_limit() {
    let failed = "claim | submit t1 max=4294967295 | assign t1 | fail t1";
    let w = with(failed, |core| core.retry_count = u32::MAX - 1);
    view(&w, |v| {
        let draft = decide::retry_verdict(v, RetryPolicy::default(), i64::MAX, u64::MAX).unwrap();
        let Body::TaskRetryApproved(b) = draft.body else { panic!("{draft:?}") };
        assert_eq!((b.retry_count, b.backoff_ms, b.not_before), (u32::MAX, 300_000, Some(i64::MAX)));
    });
    let w = with(failed, |core| core.retry_count = u32::MAX);
    view(&w, |v| {
        let draft = decide::retry_verdict(v, RetryPolicy::default(), 0, 0).unwrap();
        assert_eq!(draft.body.kind(), Kind::TaskFailedPermanently);
    });
    assert_eq!(says(&w.state, &right(&w, Kind::TaskRetryApproved, task(1))), Some("retries_exhausted"));
}

#[test]
fn ownership_ends_with_its_numbers() {
    let mut w = play("claim");
    w.state.epoch = PartitionEpoch(u32::MAX);
    for epoch in [None, Some(0), Some(1), Some(u32::MAX)] {
        let mut claim = right(&w, Kind::OwnershipClaimed, task(1));
        claim.partition_epoch = epoch.map(PartitionEpoch);
        assert_eq!(says(&w.state, &claim), Some("claim_conflict"));
    }
    w.state.owner_seq = OwnerSeq(u64::MAX);
    let mut renew = right(&w, Kind::OwnershipRenewed, task(1));
    for seq in [None, Some(0), Some(u64::MAX)] {
        renew.owner_seq = seq.map(OwnerSeq);
        assert_eq!(says(&w.state, &renew), Some("stale_owner_seq"));
    }
}

#[test]
fn a_closed_task_at_the_end_of_its_numbers_stays_closed() {
    let ask = || Replay {
        run_no: RunNo(1),
        replay_from: ReplayFrom::Start,
        from_step: None,
        actor: "a".into(),
        reason: "r".into(),
    };
    let mut closed = play("claim | submit t1 | assign t1 | complete t1").closed[&task(1)].clone();
    closed.core.version = EventSequence(u32::MAX);
    assert_eq!(decide::replay(&closed, ask(), 0), Err(Refusal::Exhausted));
    assert_eq!(
        decide::review(&closed, RunNo(1), ReviewOutcome::Accepted, None, "a".into(), "n".into()),
        Err(Refusal::Exhausted)
    );
    (closed.core.version, closed.core.run_no) = (EventSequence(3), RunNo(u32::MAX));
    assert_eq!(decide::replay(&closed, Replay { run_no: RunNo(u32::MAX), ..ask() }, 0), Err(Refusal::Exhausted));
}

#[test]
fn a_replay_named_for_another_run_or_from_a_step_nobody_knows_is_refused() {
    let closed = play("claim | submit t1 | assign t1 | start t1 | step t1 a#0 | fail t1 in=b | giveup t1").closed
        [&task(1)]
        .clone();
    let ask = |run, from: Option<&str>| Replay {
        run_no: RunNo(run),
        replay_from: ReplayFrom::Step,
        from_step: from.map(Text::from),
        actor: "a".into(),
        reason: "r".into(),
    };
    assert_eq!(decide::replay(&closed, ask(2, Some("a")), 0), Err(Refusal::Run { named: RunNo(2), current: RunNo(1) }));
    assert_eq!(decide::replay(&closed, ask(1, Some("z")), 0), Err(Refusal::UnknownStep));
    assert_eq!(decide::replay(&closed, ask(1, None), 0), Err(Refusal::UnknownStep));
    for known in ["a", "b"] {
        assert!(decide::replay(&closed, ask(1, Some(known)), 0).is_ok());
    }
    assert_eq!(
        decide::review(&closed, RunNo(2), ReviewOutcome::Abandoned, None, "a".into(), "n".into()),
        Err(Refusal::Run { named: RunNo(2), current: RunNo(1) })
    );
}

#[test]
fn a_closed_task_that_failed_in_no_step_cannot_resume_from_none() {
    let closed = play("claim | submit t1 | assign t1 | complete t1").closed[&task(1)].clone();
    let ask = Replay {
        run_no: RunNo(1),
        replay_from: ReplayFrom::Step,
        from_step: None,
        actor: "a".into(),
        reason: "r".into(),
    };
    assert_eq!(decide::replay(&closed, ask, 0), Err(Refusal::UnknownStep));
}

#[test]
fn ids_end_with_their_range() {
    let mut state = PartitionState::new(PARTITION, true);
    (state.epoch, state.highest) = (PartitionEpoch(1), TaskId::from_raw(i64::MAX).unwrap());
    assert_eq!(TaskId::mint(state.highest, PARTITION, i64::MAX), None);
    let mut world = play("claim");
    world.state = state;
    let event = right(&world, Kind::TaskCreated, task(1));
    let key = RecordKey::of(&event, PARTITION);
    let record = Record { offset: Offset(0), broker_ms: i64::MIN, key, event };
    assert_eq!(world.state.apply(&record), Verdict::Rejected(task_core::Reason::IdOrder));
}
