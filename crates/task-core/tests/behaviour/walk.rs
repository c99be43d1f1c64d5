//! Every decider as one function, and walks through the states they lead to.

use task_core::decide::{
    self, Assign, Draft, Fate, Lost, NewTask, Refusal, Replay, Report, ReportBody, RetryPolicy, Stamp, View,
};
use task_core::{PartitionState, Record, Verdict};
use task_events::*;

use crate::kit::{PARTITION, World, task};

/// What a walk can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Create,
    Assign,
    Release,
    Lost,
    TimedOut,
    Retried,
    CancelRequest,
    Cancelled,
    Verdict,
    Plan,
    Overdue,
    Start,
    Declined,
    Step,
    Success,
    Failure,
    Replay,
    Review,
}

/// All of them.
pub const OPS: [Op; 18] = [
    Op::Create,
    Op::Assign,
    Op::Release,
    Op::Lost,
    Op::TimedOut,
    Op::Retried,
    Op::CancelRequest,
    Op::Cancelled,
    Op::Verdict,
    Op::Plan,
    Op::Overdue,
    Op::Start,
    Op::Declined,
    Op::Step,
    Op::Success,
    Op::Failure,
    Op::Replay,
    Op::Review,
];

impl Op {
    /// The kind of the event that does it, last of those proposed; a verdict may also be an approval.
    pub fn kind(self) -> Kind {
        match self {
            Op::Create => Kind::TaskCreated,
            Op::Assign => Kind::TaskAssigned,
            Op::Release | Op::Declined => Kind::TaskReleased,
            Op::Lost => Kind::TaskLost,
            Op::TimedOut => Kind::TaskTimedOut,
            Op::Retried => Kind::TaskRetried,
            Op::CancelRequest => Kind::TaskCancelRequested,
            Op::Cancelled => Kind::TaskCancelled,
            Op::Verdict => Kind::TaskFailedPermanently,
            Op::Plan => Kind::TaskReplayPlanned,
            Op::Overdue => Kind::TaskOverdue,
            Op::Start => Kind::TaskStarted,
            Op::Step => Kind::TaskStepCompleted,
            Op::Success => Kind::TaskCompleted,
            Op::Failure => Kind::TaskFailed,
            Op::Replay => Kind::TaskReplayRequested,
            Op::Review => Kind::TaskReviewed,
        }
    }
}

/// What a report of the task's last attempt says.
pub fn report_of(op: Op, arg: u16) -> Option<ReportBody> {
    let category = ErrorCategory::ALL[usize::from(arg) % ErrorCategory::ALL.len()];
    let steps_done = vec![step(arg), step(arg / 2)];
    Some(match op {
        Op::Start => ReportBody::Starting { start_time: i64::from(arg), memory_usage_percent: 1 },
        Op::Declined => ReportBody::Declined { draining: arg.is_multiple_of(2) },
        Op::Step => ReportBody::Step(step(arg)),
        Op::Success => ReportBody::Success {
            result_data_hash: Sha256Hash::of(&arg.to_be_bytes()),
            execution_time_ms: 1,
            steps_done,
            memory_usage_percent: 1,
        },
        Op::Failure => ReportBody::Failure {
            error_code: "E".into(),
            error_message: "m".into(),
            category,
            failed_step: Some(step(arg).step),
            is_idempotent: Some(arg.is_multiple_of(3)),
            execution_time_ms: 1,
            steps_done,
            memory_usage_percent: 1,
        },
        _ => return None,
    })
}

fn step(arg: u16) -> StepDone {
    let name = format!("s{}", arg % 5);
    StepDone {
        step: name.into(),
        index: u32::from(arg % 4),
        output_hash: Sha256Hash::of(&arg.to_be_bytes()),
        is_idempotent: true,
    }
}

/// What a decider proposes for a task; `None` when it is not in a condition the decider is about.
pub fn propose(world: &World, op: Op, n: u16, arg: u16) -> Option<Result<Vec<Draft>, Option<Refusal>>> {
    let one = |draft: Result<Draft, Refusal>| Some(draft.map(|d| vec![d]).map_err(Some));
    if op == Op::Create {
        let Body::TaskCreated(created) = samples::minimal(Kind::TaskCreated).body else { return None };
        let created = TaskCreated { max_retries: u32::from(arg % 3), ..*created };
        let unborn = task(n) > world.state.highest;
        return unborn.then(|| {
            Ok(vec![decide::create(task(n), NewTask { created, trace_id: "t".into(), sampling: Default::default() })])
        });
    }
    if let Some(closed) = world.closed.get(&task(n)) {
        let run_no = closed.core.run_no;
        let from = [ReplayFrom::Failure, ReplayFrom::Start][usize::from(arg % 2)];
        let (actor, reason): (Text, Text) = ("a".into(), "r".into());
        return match op {
            Op::Replay => {
                one(decide::replay(closed, Replay { run_no, replay_from: from, from_step: None, actor, reason }, 1))
            }
            Op::Review => one(decide::review(closed, run_no, ReviewOutcome::Accepted, None, actor, reason)),
            _ => None,
        };
    }
    let slot = world.state.tasks.get(task(n))?;
    let view = View { core: &slot.core, row: slot.row.as_deref()? };
    if let Some(body) = report_of(op, arg) {
        let report = Report { attempt: slot.core.attempt(), worker_id: "w".into(), body };
        return Some(match decide::classify(view, &report) {
            Fate::Counts => decide::report(view, report).map_err(Some),
            Fate::Duplicate | Fate::Fenced | Fate::TooEarly => Err(None),
        });
    }
    let to = Assign {
        worker_id: format!("w{}", arg % 3).into(),
        incarnation: Incarnation(1),
        handler_version: "1".into(),
        lease_ms: 3,
        lease_max_ms: 9,
        heartbeat_ms: 1,
        optimistic_start: arg.is_multiple_of(2),
    };
    let lost = Lost {
        step_in_progress: arg.is_multiple_of(4).then(|| ("s1".into(), arg.is_multiple_of(8))),
        ..Lost::default()
    };
    let limit = TimeoutKind::ALL[usize::from(arg) % 3];
    match op {
        Op::Assign => one(decide::assign(view, to, i64::from(arg))),
        Op::Release => one(decide::release(view, ReleaseReason::NotStarted, u64::from(arg))),
        Op::Lost => one(decide::lost(view, lost)),
        Op::TimedOut => one(decide::timed_out(
            view,
            limit,
            arg.is_multiple_of(4).then(|| ("s1".into(), arg.is_multiple_of(8))),
            u64::from(arg),
        )),
        Op::Retried => one(decide::retried(view)),
        Op::CancelRequest => one(decide::cancel_request(view, "a".into(), "r".into())),
        Op::Cancelled => one(decide::cancelled(view, arg.is_multiple_of(2), u64::from(arg))),
        Op::Verdict => one(decide::retry_verdict(view, RetryPolicy::default(), i64::from(arg), u64::from(arg) << 40)),
        Op::Plan => one(decide::replay_plan(view, Witness::LogOnly)),
        Op::Overdue => Some(decide::overdue(view, i64::from(arg), None).map(|d| vec![d]).ok_or(None)),
        _ => None,
    }
}

/// The record of a draft as its writer stamps it in this state.
pub fn stamped(draft: Draft, state: &PartitionState) -> Event {
    let service = writer_of(draft.body.kind());
    let owner = service == Service::Coordinator;
    draft.stamped(Stamp {
        event_id: EventId::default(),
        partition_epoch: owner.then_some(state.epoch),
        owner_seq: state.owner_seq.next().filter(|_| owner),
        event_time: 1_000 * state.next_offset.0 as i64,
        causation_id: None,
        producer: Producer { service, instance: "i".into(), incarnation: Incarnation(1) },
        rule_version: RuleVersion(1),
    })
}

/// What the fold says of an event, without anything being changed.
pub fn verdict(state: &PartitionState, event: &Event) -> Verdict {
    let mut state = state.clone();
    let key = RecordKey::of(event, PARTITION);
    state.apply(&Record { offset: state.next_offset, broker_ms: 0, key, event: event.clone() })
}

/// Does what a decider proposes, if it proposes something. All of it must be accepted.
pub fn walk(world: &mut World, op: Op, n: u16, arg: u16) {
    for draft in propose(world, op, n, arg).and_then(Result::ok).unwrap_or_default() {
        let event = stamped(draft, &world.state);
        let verdict = world.append(&event).expect("well formed");
        assert_eq!(verdict.rejected(), None, "proposed, but rejected: {event:?}");
    }
}
