//! A record by its judged numbers alone: how histories are written down and how records nobody
//! honest would write are built. Honest writers get theirs from the production deciders.
#![expect(clippy::wildcard_enum_match_arm, reason = "only some bodies have judged fields")]

use task_core::Record;
use task_events::*;

use crate::plain::{closed_task, named_attempt, plain_body};
use crate::subject::{self, NOW_MS, PARTITION, RULE_VERSION};

/// The closed state a replay or review carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Carried {
    /// State it claims the task was closed in.
    pub state: TaskState,
    /// Run.
    pub run: u32,
    /// event_sequence.
    pub seq: u32,
    /// exec_epoch.
    pub e: u32,
    /// Attempt whose execution id it carries, 0 = none.
    pub x: u32,
}

/// A record by its judged numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rec {
    /// Kind.
    pub kind: Kind,
    /// Subject.
    pub task: Option<TaskId>,
    /// Key.
    pub key: RecordKey,
    /// event_sequence.
    pub seq: u32,
    /// run_no.
    pub run: u32,
    /// exec_epoch.
    pub e: u32,
    /// Attempt whose execution id the body names: 0 = sixteen zero bytes, `None` = null.
    pub x: Option<u32>,
    /// partition_epoch.
    pub p: Option<u32>,
    /// owner_seq.
    pub o: Option<u64>,
    /// Of a replay or review.
    pub carried: Option<Carried>,
    /// Of TaskCreated and of carried states.
    pub max: u32,
    /// Of TaskCreated: it bears the idempotency key all keyed creates of a history share.
    pub keyed: bool,
    /// Which instance of the writing service.
    pub by: u8,
}

/// The execution id of an attempt; 0 = sixteen zero bytes.
pub fn execution(task: Option<TaskId>, x: u32) -> ExecutionId {
    match (task, x) {
        (Some(id), 1..) => ExecutionId::new(id, ExecEpoch(x)),
        _ => ExecutionId::NONE,
    }
}

fn attempt_no(execution: ExecutionId) -> u32 {
    execution.parts().map_or(0, |(_, e)| e.0)
}

impl Rec {
    /// A record of this kind about nothing.
    pub fn bare(kind: Kind) -> Self {
        let key = RecordKey::Control(PARTITION);
        Self {
            kind,
            task: None,
            key,
            seq: 0,
            run: 0,
            e: 0,
            x: None,
            p: None,
            o: None,
            carried: None,
            max: 1,
            keyed: false,
            by: 1,
        }
    }

    /// The record as it would be read back.
    pub fn record(&self) -> Record {
        let (sequence, fence) = (EventSequence(self.seq), (self.p.map(PartitionEpoch), self.o.map(OwnerSeq)));
        let event = Event {
            event_id: subject::event_id(self.kind, self.task, sequence, fence, self.by),
            kind: self.kind,
            event_sequence: sequence,
            task_id: self.task,
            run_no: RunNo(self.run),
            exec_epoch: ExecEpoch(self.e),
            partition_epoch: fence.0,
            owner_seq: fence.1,
            event_time: NOW_MS,
            trace_id: Text::default(),
            causation_id: None,
            producer: subject::producer(self.kind, self.by),
            rule_version: RULE_VERSION,
            body: self.body(),
        };
        Record { offset: Offset(0), broker_ms: 0, key: self.key, event }
    }

    /// The judged numbers of a record.
    pub fn of(record: &Record) -> Self {
        let event = &record.event;
        let mut rec = Self {
            task: event.task_id,
            key: record.key,
            seq: event.event_sequence.0,
            run: event.run_no.0,
            e: event.exec_epoch.0,
            p: event.partition_epoch.map(|p| p.0),
            o: event.owner_seq.map(|o| o.0),
            by: event.producer.incarnation.0.unsigned_abs() as u8,
            ..Self::bare(event.kind)
        };
        match &event.body {
            Body::TaskCreated(b) => (rec.max, rec.keyed) = (b.max_retries, b.key_hash.is_some()),
            Body::TaskReplayRequested(b) => rec.carry(&b.carried),
            Body::TaskReviewed(b) => rec.carry(&b.carried),
            body => rec.x = named_attempt(body),
        }
        rec
    }

    fn carry(&mut self, c: &ClosedTask) {
        let (run, seq, e) = (c.run_no.0, c.event_sequence.0, c.exec_epoch.0);
        self.carried = Some(Carried { state: c.state, run, seq, e, x: attempt_no(c.execution_id) });
        self.max = c.created.max_retries;
    }

    // Bodies with the judged fields set and the rest empty.
    fn body(&self) -> Body {
        let empty = Text::default;
        let execution_id = execution(self.task, self.x.unwrap_or(0));
        match self.kind {
            Kind::TaskCreated => Body::TaskCreated(Box::new(subject::created(self.max, self.keyed))),
            Kind::TaskAssigned => Body::TaskAssigned(Box::new(TaskAssigned {
                worker_id: Text::const_new("w1"),
                incarnation: Incarnation(1),
                execution_id,
                assignment_time: NOW_MS,
                timeout_config: TimeoutConfig { start_to_close_ms: 1, heartbeat_ms: 1, lease_ms: 3 },
                lease_max_ms: 3,
                optimistic_start: false,
                handler_version: empty(),
            })),
            Kind::TaskStarted => Body::TaskStarted(TaskStarted {
                execution_id,
                worker_id: empty(),
                start_time: NOW_MS,
                memory_usage_percent: 0,
            }),
            Kind::TaskStepCompleted => {
                Body::TaskStepCompleted(TaskStepCompleted { execution_id, done: crate::honest::step_done() })
            }
            Kind::TaskReleased => {
                Body::TaskReleased(TaskReleased { execution_id, reason: ReleaseReason::Drain, lease_left_ms: 0 })
            }
            Kind::TaskCompleted => Body::TaskCompleted(Box::new(TaskCompleted {
                execution_id,
                result_data_hash: Sha256Hash::default(),
                execution_time_ms: 0,
                steps_done: Vec::new(),
                memory_usage_percent: 0,
            })),
            Kind::TaskFailed => Body::TaskFailed(Box::new(TaskFailed {
                execution_id,
                error_code: Text::const_new("E"),
                error_message: empty(),
                category: ErrorCategory::Transient,
                failed_step: None,
                is_idempotent: None,
                execution_time_ms: 0,
                steps_done: Vec::new(),
                memory_usage_percent: 0,
            })),
            Kind::TaskLost => Body::TaskLost(Box::new(TaskLost {
                execution_id,
                last_sign_of_life: NOW_MS,
                step_in_progress: None,
                step_is_idempotent: None,
                probes: Vec::new(),
                lease_left_ms: 0,
            })),
            Kind::TaskTimedOut => Body::TaskTimedOut(TaskTimedOut {
                timeout: TimeoutKind::ScheduleToStart,
                execution_id: self.x.map(|x| execution(self.task, x)),
                step_in_progress: None,
                step_is_idempotent: None,
                lease_left_ms: 0,
            }),
            Kind::TaskFailureAnalysis => Body::TaskFailureAnalysis(TaskFailureAnalysis {
                execution_id,
                category: ErrorCategory::Transient,
                summary: empty(),
            }),
            Kind::RejectedReport => Body::RejectedReport(Box::new(RejectedReport {
                execution_id,
                reported: ReportedStatus::Success,
                worker_id: empty(),
                result_data_hash: None,
                error_code: None,
                reason: empty(),
            })),
            Kind::TaskReplayRequested => Body::TaskReplayRequested(Box::new(TaskReplayRequested {
                carried: closed_task(self),
                replay_from: ReplayFrom::Failure,
                from_step: None,
                actor: empty(),
                reason: empty(),
                closed_at_offset: Offset(0),
            })),
            Kind::TaskReviewed => Body::TaskReviewed(Box::new(TaskReviewed {
                carried: closed_task(self),
                outcome: ReviewOutcome::Accepted,
                actor: empty(),
                note: empty(),
            })),
            Kind::TaskRetryApproved
            | Kind::TaskFailedPermanently
            | Kind::TaskReplayPlanned
            | Kind::TaskRetried
            | Kind::TaskCancelRequested
            | Kind::TaskCancelled
            | Kind::TaskOverdue
            | Kind::TaskSkippedByPolicy
            | Kind::WorkerQuarantined
            | Kind::WorkerReleased
            | Kind::QueuePaused
            | Kind::QueueResumed
            | Kind::BacklogAlarm
            | Kind::OwnershipClaimed
            | Kind::OwnershipRenewed
            | Kind::RulesActivated
            | Kind::LogSealed => plain_body(self.kind, self.by),
        }
    }
}
