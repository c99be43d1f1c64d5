//! Proptest strategies for events, for the tests of every crate (feature `arbitrary-events`).
//!
//! They cover what the schema allows, not what the fold accepts: every number up to its bound,
//! every text that is UTF-8, task kinds without a task. Nothing here may be used outside tests.

mod attempt;
mod others;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use crate::{
    Body, ClosedTask, ErrorCategory, Event, EventId, EventSequence, ExecEpoch, ExecutionId, Incarnation, Kind,
    OwnerSeq, PartitionEpoch, Probe, Producer, RuleVersion, RunNo, Service, Sha256Hash, SkippedStep, StepDone, TaskId,
    TaskState, Text,
};

/// Any event of any kind.
pub fn event() -> BoxedStrategy<Event> {
    kind().prop_flat_map(event_of).boxed()
}

/// Any event of this kind; the envelope is as arbitrary as the body, but names the kind.
pub fn event_of(kind: Kind) -> BoxedStrategy<Event> {
    let subject = (option::of(task_id()), sequence(), u32_any(), u32_any());
    let fence = (option::of(u32_any()), option::of(u63()), any::<i64>(), any::<u32>());
    let origin = (text(), option::of(any::<[u8; 16]>()), producer());
    (any::<[u8; 16]>(), subject, fence, origin, body_of(kind))
        .prop_map(move |(event_id, subject, fence, origin, body)| Event {
            event_id: EventId(event_id),
            kind,
            event_sequence: subject.1,
            task_id: subject.0,
            run_no: RunNo(subject.2),
            exec_epoch: ExecEpoch(subject.3),
            partition_epoch: fence.0.map(PartitionEpoch),
            owner_seq: fence.1.map(OwnerSeq),
            event_time: fence.2,
            trace_id: origin.0,
            causation_id: origin.1.map(EventId),
            producer: origin.2,
            rule_version: RuleVersion(fence.3),
            body,
        })
        .boxed()
}

/// Any kind.
pub fn kind() -> impl Strategy<Value = Kind> {
    proptest::sample::select(Kind::ALL)
}

/// Any body of this kind.
pub fn body_of(kind: Kind) -> BoxedStrategy<Body> {
    match kind {
        Kind::TaskCreated => attempt::created().prop_map(|b| Body::TaskCreated(Box::new(b))).boxed(),
        Kind::TaskAssigned => attempt::assigned().prop_map(|b| Body::TaskAssigned(Box::new(b))).boxed(),
        Kind::TaskStarted => attempt::started().prop_map(Body::TaskStarted).boxed(),
        Kind::TaskStepCompleted => attempt::step_completed().prop_map(Body::TaskStepCompleted).boxed(),
        Kind::TaskReleased => attempt::released().prop_map(Body::TaskReleased).boxed(),
        Kind::TaskCompleted => attempt::completed().prop_map(|b| Body::TaskCompleted(Box::new(b))).boxed(),
        Kind::TaskFailed => attempt::failed().prop_map(|b| Body::TaskFailed(Box::new(b))).boxed(),
        Kind::TaskLost => attempt::lost().prop_map(|b| Body::TaskLost(Box::new(b))).boxed(),
        Kind::TaskTimedOut => attempt::timed_out().prop_map(Body::TaskTimedOut).boxed(),
        Kind::TaskRetryApproved => others::retry_approved().prop_map(|b| Body::TaskRetryApproved(Box::new(b))).boxed(),
        Kind::TaskFailedPermanently => others::failed_permanently().prop_map(Body::TaskFailedPermanently).boxed(),
        Kind::TaskReplayPlanned => others::replay_planned().prop_map(|b| Body::TaskReplayPlanned(Box::new(b))).boxed(),
        Kind::TaskRetried => others::retried().prop_map(Body::TaskRetried).boxed(),
        Kind::TaskCancelRequested => others::cancel_requested().prop_map(Body::TaskCancelRequested).boxed(),
        Kind::TaskCancelled => others::cancelled().prop_map(Body::TaskCancelled).boxed(),
        Kind::TaskReplayRequested => {
            others::replay_requested().prop_map(|b| Body::TaskReplayRequested(Box::new(b))).boxed()
        }
        Kind::TaskReviewed => others::reviewed().prop_map(|b| Body::TaskReviewed(Box::new(b))).boxed(),
        Kind::RejectedReport => others::rejected_report().prop_map(|b| Body::RejectedReport(Box::new(b))).boxed(),
        Kind::TaskOverdue => others::overdue().prop_map(Body::TaskOverdue).boxed(),
        Kind::TaskFailureAnalysis => others::failure_analysis().prop_map(Body::TaskFailureAnalysis).boxed(),
        Kind::TaskSkippedByPolicy => others::skipped_by_policy().prop_map(Body::TaskSkippedByPolicy).boxed(),
        Kind::WorkerQuarantined => others::quarantined().prop_map(Body::WorkerQuarantined).boxed(),
        Kind::WorkerReleased => others::worker_released().prop_map(Body::WorkerReleased).boxed(),
        Kind::QueuePaused => others::queue_paused().prop_map(Body::QueuePaused).boxed(),
        Kind::QueueResumed => others::queue_resumed().prop_map(Body::QueueResumed).boxed(),
        Kind::BacklogAlarm => others::backlog_alarm().prop_map(Body::BacklogAlarm).boxed(),
        Kind::OwnershipClaimed => others::claimed().prop_map(Body::OwnershipClaimed).boxed(),
        Kind::OwnershipRenewed => Just(Body::OwnershipRenewed(crate::OwnershipRenewed {})).boxed(),
        Kind::RulesActivated => others::rules_activated().prop_map(Body::RulesActivated).boxed(),
        Kind::LogSealed => text().prop_map(|note| Body::LogSealed(crate::LogSealed { note })).boxed(),
    }
}

/// Text: empty, short, longer than is kept inline, and any characters.
pub fn text() -> impl Strategy<Value = Text> {
    prop_oneof![
        1 => Just(String::new()),
        4 => "[a-z0-9._-]{1,24}",
        1 => "[a-z ]{25,300}",
        2 => vec(any::<char>(), 0..40).prop_map(|c| c.into_iter().collect()),
    ]
    .prop_map(Text::from)
}

/// Any id that a record can hold.
pub fn task_id() -> impl Strategy<Value = TaskId> {
    prop_oneof![1..=i64::MAX, 1..100_i64].prop_filter_map("positive", TaskId::from_raw)
}

/// An event sequence, mostly small.
pub fn sequence() -> impl Strategy<Value = EventSequence> {
    prop_oneof![0..20_u32, any::<u32>()].prop_map(EventSequence)
}

/// Who wrote it.
pub fn producer() -> impl Strategy<Value = Producer> {
    (proptest::sample::select(Service::ALL), text(), incarnation())
        .prop_map(|(service, instance, incarnation)| Producer { service, instance, incarnation })
}

fn incarnation() -> impl Strategy<Value = Incarnation> {
    (0..=i64::MAX).prop_map(Incarnation)
}

fn u32_any() -> impl Strategy<Value = u32> {
    prop_oneof![0..200_u32, any::<u32>()]
}

// Unsigned numbers as far as an Avro long holds them.
fn u63() -> impl Strategy<Value = u64> {
    prop_oneof![0..100_000_u64, 0..=i64::MAX as u64]
}

fn hash() -> impl Strategy<Value = Sha256Hash> {
    any::<[u8; 32]>().prop_map(Sha256Hash)
}

fn execution_id() -> impl Strategy<Value = ExecutionId> {
    prop_oneof![
        Just(ExecutionId::NONE),
        any::<[u8; 16]>().prop_map(ExecutionId),
        (task_id(), any::<u32>()).prop_map(|(t, e)| ExecutionId::new(t, ExecEpoch(e))),
    ]
}

fn steps() -> impl Strategy<Value = Vec<StepDone>> {
    vec(step(), 0..5)
}

fn step() -> impl Strategy<Value = StepDone> {
    (text(), u32_any(), hash(), any::<bool>()).prop_map(|(step, index, output_hash, is_idempotent)| StepDone {
        step,
        index,
        output_hash,
        is_idempotent,
    })
}

fn skips() -> impl Strategy<Value = Vec<SkippedStep>> {
    vec(skipped_step(), 0..4)
}

fn skipped_step() -> impl Strategy<Value = SkippedStep> {
    (text(), text(), vec(sequence(), 0..4)).prop_map(|(step, rule, evidence)| SkippedStep { step, rule, evidence })
}

fn category() -> impl Strategy<Value = ErrorCategory> {
    proptest::sample::select(ErrorCategory::ALL)
}

fn probe() -> impl Strategy<Value = Probe> {
    (any::<i64>(), text()).prop_map(|(at, answer)| Probe { at, answer })
}

fn closed_task() -> impl Strategy<Value = ClosedTask> {
    let numbers = (u32_any(), sequence(), u32_any(), any::<i64>(), u63());
    let rest = (steps(), option::of(text()), vec(any::<u8>(), 0..100));
    let time = || option::of(any::<i64>());
    let last = (text(), (time(), time(), time()), (u32_any(), u32_any(), u32_any()));
    let failure =
        (option::of(hash()), option::of(text()), option::of(text()), option::of(category()), option::of(text()));
    (proptest::sample::select(TaskState::ALL), numbers, execution_id(), attempt::created(), rest, last, failure)
        .prop_map(|(state, numbers, execution_id, created, rest, last, failure)| ClosedTask {
            state,
            run_no: RunNo(numbers.0),
            event_sequence: numbers.1,
            exec_epoch: ExecEpoch(numbers.2),
            execution_id,
            created: Box::new(created),
            created_at: numbers.3,
            steps: rest.0,
            handler_version: rest.1,
            lease_left_ms: numbers.4,
            history: rest.2.into(),
            worker_id: last.0,
            assigned_at: last.1.0,
            start_time: last.1.1,
            end_time: last.1.2,
            memory_usage_percent: last.2.0,
            retry_count: last.2.1,
            lost_count: last.2.2,
            result_data_hash: failure.0,
            error_code: failure.1,
            error_message: failure.2,
            category: failure.3,
            failed_step: failure.4,
        })
}

fn labels() -> impl Strategy<Value = std::collections::BTreeMap<Text, Text>> {
    btree_map(text(), text(), 0..5)
}
