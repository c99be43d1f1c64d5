//! Commands and answers survive being passed on, every variant of them.

use coordinator::forwarding::{
    ForwardingError, decode_answer, decode_command, encode_answer, encode_command, unanswered,
};
use coordinator::owner::{
    ACCEPTED, Answer, AttemptFacts, AttemptSeen, Blocked, Command, FindBy, Key, ListAsk, Look, Looked, OwnerFacts,
    QUARANTINED, QueueFacts, TaskFilter, TaskSeen, WaitFacts, Why, WhyFacts,
};
use snapshot_store::TaskSummary;
use task_core::decide::{Refusal, Replay};
use task_events::{
    ErrorCategory, ExecEpoch, ExecutionId, Kind, Offset, PartitionEpoch, PartitionId, ReplayFrom, ReviewOutcome,
    RuleVersion, RunNo, SkippedStep, StepDone, TaskId, TaskState,
};
use worker_protocol::{Assignment, Attempt, HeartbeatAnswer, PollAnswer, ReportAnswer, ReportBody};

use crate::kit::{World, beat, complete, fail, poll, report, sha, task};

// One sample for each pattern; the patterns are all there are, or this does not compile.
macro_rules! samples {
    ($all:ident: $type:ty { $($pattern:pat => $sample:expr,)* }) => {
        fn $all() -> Vec<$type> {
            const _: fn(&$type) = |one| match one { $($pattern => {})* };
            vec![$({
                let sample: $type = $sample;
                assert!(matches!(sample, $pattern));
                sample
            }),*]
        }
    };
}

fn id() -> TaskId {
    TaskId::from_parts(9_999_999_999, PartitionId(7), 3).unwrap()
}

fn step() -> StepDone {
    StepDone { step: "pack ✓".into(), index: 2, output_hash: sha("out"), is_idempotent: true }
}

fn attempt() -> Attempt {
    Attempt { run_no: RunNo(2), exec_epoch: ExecEpoch(5), execution_id: ExecutionId::new(id(), ExecEpoch(5)) }
}

fn why(seen: TaskSeen) -> WhyFacts {
    let wait = WaitFacts {
        due_in_ms: 1,
        may_still_run_ms: 2,
        paused: true,
        before: Some(3),
        polled_ms_ago: Some(4),
        owned_for_ms: 5,
        key_held_by: Some(id()),
        blocked: Some(Blocked::LockServer),
    };
    let attempt = AttemptFacts {
        sign_ms_ago: 6,
        lease_ends_in_ms: 7,
        not_started_in_ms: Some(8),
        grace_ends_in_ms: Some(9),
        step: Some(("pack".into(), true)),
        under_way: true,
    };
    WhyFacts { seen, now: -1, wait: Some(wait), attempt: Some(attempt), settling: true }
}

fn told(body: ReportBody) -> Command {
    report(id(), 2, 5, body)
}

samples! { commands: Command {
    Command::Create(_) => {
        let mut create = task("x");
        create.task.created.labels.insert("k".into(), "v".into());
        create.task.created.concurrency_key = Some("one".into());
        create.key = Some(Key { key_hash: sha("k"), request_hash: sha("r") });
        create.payload = Some(bytes::Bytes::from_static(b"{\"a\":[0,255]}\x00\xff"));
        Command::Create(Box::new(create))
    },
    Command::Poll(_) => {
        let mut poll = poll("w");
        poll.held.push(attempt().execution_id);
        Command::Poll(poll)
    },
    Command::Heartbeat(_) => beat(id(), 2, 5, Some(("pack".into(), true))),
    Command::Report(_) => told(complete("r")),
    Command::Cancel { .. } => Command::Cancel { task: id(), actor: "me".into(), reason: "".into() },
    Command::Replay { .. } => {
        let (replay_from, from_step) = (ReplayFrom::Step, Some("pack".into()));
        let ask = Replay { run_no: RunNo(1), replay_from, from_step, actor: "me".into(), reason: "x".into() };
        Command::Replay { task: id(), ask }
    },
    Command::Review { .. } => Command::Review {
        task: id(), run_no: RunNo(1), outcome: ReviewOutcome::Abandoned, instead_of: Some(ReviewOutcome::Accepted), actor: "me".into(), note: "no".into(),
    },
    Command::Get { .. } => Command::Get { task: id() },
    Command::Await { .. } => Command::Await { task: id(), wait_ms: 30_000 },
    Command::Why { .. } => Command::Why { task: id() },
    Command::Find { .. } => Command::Find { by: FindBy::Trace("t".into()), limit: 100 },
    Command::Look(_) => Command::Look(Look::Verdicts { from: Offset(7), limit: 9 }),
    Command::Release { .. } => Command::Release { worker: "w".into(), actor: "me".into(), reason: "x".into() },
    Command::Activate { .. } => Command::Activate { version: RuleVersion(2) },
    Command::Queue { .. } => {
        Command::Queue { queue: "q".into(), pause: true, actor: "me".into(), reason: "x".into() }
    },
} }

samples! { bodies: ReportBody {
    ReportBody::Starting { .. } => ReportBody::Starting { start_time: -1, memory_usage_percent: 7 },
    ReportBody::Declined { .. } => ReportBody::Declined { draining: true },
    ReportBody::Step(_) => ReportBody::Step(step()),
    ReportBody::Success { .. } => ReportBody::Success {
        result_data_hash: sha("r"), execution_time_ms: u64::MAX, steps_done: vec![step()], memory_usage_percent: 1,
    },
    ReportBody::Failure { .. } => {
        let ReportBody::Failure { error_code, error_message, execution_time_ms, .. } = fail("X") else { panic!() };
        ReportBody::Failure {
            error_code, error_message, execution_time_ms, category: ErrorCategory::Transient,
            failed_step: Some("pack".into()), is_idempotent: Some(false), steps_done: vec![step()],
            memory_usage_percent: 3,
        }
    },
} }

samples! { finders: FindBy {
    FindBy::Trace(_) => FindBy::Trace("t".into()),
    FindBy::BusinessKey { .. } => FindBy::BusinessKey { creator: "c".into(), key: "k".into() },
} }

samples! { looks: Look {
    Look::List(_) => Look::List(Box::new(ListAsk {
        review: true,
        filter: TaskFilter {
            states: vec![TaskState::Lost],
            task_type: Some("t".into()),
            queue: Some("q".into()),
            creator: Some("c".into()),
            worker: Some("w".into()),
            code: Some("X".into()),
            labels: [("k".into(), "v".into())].into_iter().collect(),
        },
        low: TaskId::ZERO,
        high: id(),
        oldest_first: true,
        limit: 7,
        look: usize::MAX,
    })),
    Look::Stands(_) => Look::Stands(vec![id()]),
    Look::Queues => Look::Queues,
    Look::Workers => Look::Workers,
    Look::Rules => Look::Rules,
    Look::Facts => Look::Facts,
    Look::Worker(_) => Look::Worker("w".into()),
    Look::Verdicts { .. } => Look::Verdicts { from: Offset(u64::MAX), limit: 0 },
} }

samples! { looked: Looked {
    Looked::Tasks { .. } => {
        let Answer::Task(seen) = seen(true) else { panic!("no task") };
        Looked::Tasks { tasks: vec![TaskSummary::of(&seen.row)], looked_at: 9, looked_to: Some(id()), settled_to: Some(id()) }
    },
    Looked::Queues(_) => Looked::Queues(vec![QueueFacts {
        queue: "q".into(), paused: true, ready: 1, running: 2, open: 3, polled_ms_ago: Some(4),
    }]),
    Looked::Rules(_) => Looked::Rules(RuleVersion(2)),
    Looked::Facts(_) => Looked::Facts(Box::new(OwnerFacts {
        epoch: PartitionEpoch(7), owed_rows: 1, behind: 2, overdue_ms: 3, accepted: 4, quarantined: 5, rejected: vec![6, 7],
        queues: Vec::new(),
    })),
    Looked::Workers(_) => Looked::Workers(vec![("w".into(), 3)]),
    Looked::Attempts { .. } => Looked::Attempts {
        all: 2,
        attempts: vec![AttemptSeen {
            task_id: id(), task_type: "t".into(), queue: "q".into(), state: TaskState::Executing, run_no: RunNo(1),
            execution_id: attempt().execution_id, assigned_at: -1,
        }],
    },
    Looked::Verdicts { .. } => Looked::Verdicts { remembered: Offset(3), verdicts: vec![ACCEPTED, 1, QUARANTINED] },
} }

samples! { polled: PollAnswer {
    PollAnswer::Work { .. } => PollAnswer::Work {
        assignments: vec![Assignment {
            task_id: id(),
            attempt: attempt(),
            attempt_token: "token".into(),
            task_type: "t".into(),
            payload_hash: sha("p"),
            payload_ref: Some("ref".into()),
            trace_id: "trace".into(),
            traceparent: None,
            lease_ms: 1,
            heartbeat_ms: 2,
            start_to_close_ms: 3,
            optimistic_start: true,
            steps_done: vec![step()],
            skip: vec![SkippedStep {
                step: "pack".into(), rule: "done".into(), evidence: vec![task_events::EventSequence(4)],
            }],
        }],
        stop: vec![attempt().execution_id],
    },
    PollAnswer::Superseded => PollAnswer::Superseded,
    PollAnswer::Drain => PollAnswer::Drain,
    PollAnswer::Unavailable => PollAnswer::Unavailable,
} }

samples! { beaten: HeartbeatAnswer {
    HeartbeatAnswer::Accepted { .. } => HeartbeatAnswer::Accepted { lease_ms: 9, cancel_requested: true },
    HeartbeatAnswer::Fenced => HeartbeatAnswer::Fenced,
    HeartbeatAnswer::Unavailable => HeartbeatAnswer::Unavailable,
} }

samples! { reported: ReportAnswer {
    ReportAnswer::Accepted => ReportAnswer::Accepted,
    ReportAnswer::Duplicate => ReportAnswer::Duplicate,
    ReportAnswer::Fenced => ReportAnswer::Fenced,
    ReportAnswer::TooEarly => ReportAnswer::TooEarly,
    ReportAnswer::OutcomeUnknown => ReportAnswer::OutcomeUnknown,
    ReportAnswer::Unavailable => ReportAnswer::Unavailable,
} }

samples! { refusals: Refusal {
    Refusal::State { .. } => Refusal::State { kind: Kind::TaskReviewed, state: TaskState::Executing },
    Refusal::CancelRequested(_) => Refusal::CancelRequested(Kind::TaskAssigned),
    Refusal::NotRequested => Refusal::NotRequested,
    Refusal::Run { .. } => Refusal::Run { named: RunNo(1), current: RunNo(2) },
    Refusal::Decided(_) => Refusal::Decided(Some(ReviewOutcome::Abandoned)),
    Refusal::UnknownStep => Refusal::UnknownStep,
    Refusal::DeadlinePassed { .. } => Refusal::DeadlinePassed { deadline: 1, now: 2 },
    Refusal::Exhausted => Refusal::Exhausted,
} }

samples! { whys: Why {
    Why::NotOwner => Why::NotOwner,
    Why::StoreBehind => Why::StoreBehind,
    Why::StoreUnavailable => Why::StoreUnavailable,
    Why::ClockUnsettled => Why::ClockUnsettled,
    Why::InFlightFull => Why::InFlightFull,
    Why::LogUnavailable => Why::LogUnavailable,
    Why::Draining => Why::Draining,
    Why::Unwritable => Why::Unwritable,
} }

samples! { answers: Answer {
    Answer::Created { .. } => Answer::Created { task_id: id(), created_at: i64::MIN },
    Answer::Duplicate { .. } => Answer::Duplicate { task_id: id() },
    Answer::KeyConflict { .. } => Answer::KeyConflict { task_id: id() },
    Answer::BacklogFull { .. } => Answer::BacklogFull { limit: 5 },
    Answer::Poll(_) => Answer::Poll(PollAnswer::Superseded),
    Answer::Heartbeat(_) => Answer::Heartbeat(HeartbeatAnswer::Fenced),
    Answer::Report(_) => Answer::Report(ReportAnswer::TooEarly),
    Answer::CancelAccepted => Answer::CancelAccepted,
    Answer::Replayed { .. } => Answer::Replayed { run_no: RunNo(2) },
    Answer::Reviewed => Answer::Reviewed,
    Answer::QueueChanged => Answer::QueueChanged,
    Answer::Task(_) => seen(true),
    Answer::Why(_) => match (seen(true), seen(false)) {
        (Answer::Task(seen), _) => Answer::Why(Box::new(why(*seen))),
        _ => unreachable!("tasks"),
    },
    Answer::Found(_) => match (seen(true), seen(false)) {
        (Answer::Task(open), Answer::Task(closed)) => Answer::Found(vec![*open, *closed]),
        other => panic!("{other:?}"),
    },
    Answer::Looked(_) => Answer::Looked(Box::new(looked().remove(0))),
    Answer::WorkerReleased => Answer::WorkerReleased,
    Answer::RulesActive => Answer::RulesActive,
    Answer::RulesRefused { .. } => {
        Answer::RulesRefused { version: RuleVersion(1), active: RuleVersion(2), known: RuleVersion(3) }
    },
    Answer::PlacementConflict { .. } => {
        Answer::PlacementConflict { beside: PartitionId(1), of_key: PartitionId(2) }
    },
    Answer::TaskClosed { .. } => Answer::TaskClosed { state: TaskState::Success, run_no: RunNo(1) },
    Answer::TaskOpen { .. } => Answer::TaskOpen { state: TaskState::Lost, run_no: RunNo(1) },
    Answer::NotFound => Answer::NotFound,
    Answer::Gone => Answer::Gone,
    Answer::Refused(_) => Answer::Refused(Refusal::Exhausted),
    Answer::Unavailable(_) => Answer::Unavailable(Why::Draining),
    Answer::OutcomeUnknown { .. } => Answer::OutcomeUnknown { task_id: Some(id()) },
} }

// A task with everything a row can hold, as its owner shows it.
fn seen(open: bool) -> Answer {
    let mut w = World::new();
    w.play("submit t1 key=k deadline=900s | poll w1 => t1 e=1 | start t1 e=1 | step t1 a i=0 | fail t1 e=1 | approve t1 | plan t1 | poll w2 => t1 e=2 | start t1 e=2");
    if !open {
        w.play("complete t1 e=2 => accepted");
    }
    let token = w.step("get t1").unwrap();
    w.answer(token).cloned().unwrap()
}

#[test]
fn every_command_comes_back_as_it_was() {
    let told = bodies().into_iter().map(told);
    let finds = finders().into_iter().map(|by| Command::Find { by, limit: usize::MAX });
    let looks = looks().into_iter().map(Command::Look);
    for command in commands().into_iter().chain(told).chain(finds).chain(looks) {
        let bytes = encode_command(&command).unwrap();
        assert_eq!(decode_command(&bytes).unwrap(), command);
    }
}

#[test]
fn every_answer_comes_back_as_it_was() {
    let more = polled().into_iter().map(Answer::Poll);
    let more = more.chain(beaten().into_iter().map(Answer::Heartbeat));
    let more = more.chain(reported().into_iter().map(Answer::Report));
    let more = more.chain(refusals().into_iter().map(Answer::Refused));
    let more = more.chain(looked().into_iter().map(|looked| Answer::Looked(Box::new(looked))));
    let more = more.chain(whys().into_iter().map(Answer::Unavailable));
    for answer in answers().into_iter().chain(more) {
        let bytes = encode_answer(&answer).unwrap();
        assert_eq!(decode_answer(&bytes).unwrap(), answer);
    }
}

#[test]
fn what_is_cut_off_or_followed_by_more_is_an_error() {
    let mut bytes = encode_command(&commands()[0]).unwrap();
    for len in 0..bytes.len() {
        assert!(matches!(decode_command(&bytes[..len]), Err(ForwardingError::Decode { .. })), "{len}");
    }
    bytes.push(0);
    assert!(matches!(decode_command(&bytes), Err(ForwardingError::Trailing { rest: 1, .. })));
    assert!(matches!(decode_answer(b"\x81\xa5Hello\x01"), Err(ForwardingError::Decode { .. })));
}

#[test]
fn whatever_writes_and_is_not_answered_is_of_unknown_outcome() {
    for command in commands() {
        let unknown = unanswered(&command) == Answer::OutcomeUnknown { task_id: None };
        let unheard = matches!(command, Command::Poll(_) | Command::Heartbeat(_));
        assert_eq!(unknown, !command.is_read() && !unheard, "{command:?}");
    }
}
