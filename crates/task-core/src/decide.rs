//! What may be written next: one command per file, each a pure function that proposes events or
//! refuses. Nothing in here is authority: the fold judges what was written like anything else.

mod assign;
mod cancel;
mod create;
mod lost;
mod overdue;
mod release;
mod replay;
mod replay_plan;
mod report;
mod retried;
mod retry_verdict;
mod review;
mod timed_out;

use serde::{Deserialize, Serialize};
use task_events::{
    Body, Event, EventId, EventSequence, ExecEpoch, Kind, OwnerSeq, PartitionEpoch, Producer, ReviewOutcome,
    RuleVersion, RunNo, Sampling, TaskId, TaskState, Text,
};

use crate::rules::STANDARD;
use crate::{Cell, Column, CoreState, Row};

pub use assign::{Assign, assign};
pub use cancel::{cancel_request, cancelled};
pub use create::{NewTask, create};
pub use lost::{Lost, lost};
pub use overdue::{HeldBack, OVERDUE_AFTER_MS, overdue};
pub use release::release;
pub use replay::{Replay, replay};
pub use replay_plan::replay_plan;
pub use report::{Fate, MAX_ERROR_CHARS, Report, ReportBody, classify, classify_closed, rejected_report, report};
pub use retried::retried;
pub use retry_verdict::{RetryPolicy, backoff_ms, retry_verdict};
pub use review::{decided, review};
pub use timed_out::{due_timeout, timed_out};

/// An open task as a decider sees it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Judged state.
    pub core: &'a CoreState,
    /// Row fields.
    pub row: &'a Row,
}

/// An event without what only its writer can add: identity, fence, time, producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Subject; `None` for control kinds.
    pub task_id: Option<TaskId>,
    /// As the envelope's.
    pub event_sequence: EventSequence,
    /// As the envelope's.
    pub run_no: RunNo,
    /// As the envelope's.
    pub exec_epoch: ExecEpoch,
    /// As the envelope's.
    pub trace_id: Text,
    /// What the record's trace context says.
    pub sampling: Sampling,
    /// What happened.
    pub body: Body,
}

/// What a writer adds to a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Identity of the record.
    pub event_id: EventId,
    /// Owner kinds.
    pub partition_epoch: Option<PartitionEpoch>,
    /// Owner kinds.
    pub owner_seq: Option<OwnerSeq>,
    /// Unix ms by the writer.
    pub event_time: i64,
    /// What led to it.
    pub causation_id: Option<EventId>,
    /// Who writes.
    pub producer: Producer,
    /// Rules it was decided by.
    pub rule_version: RuleVersion,
}

impl Draft {
    /// A control record.
    pub fn control(body: Body) -> Self {
        Self {
            task_id: None,
            event_sequence: EventSequence(0),
            run_no: RunNo(0),
            exec_epoch: ExecEpoch(0),
            trace_id: Text::default(),
            sampling: Sampling::default(),
            body,
        }
    }

    /// The event with its writer's stamp.
    pub fn stamped(self, stamp: Stamp) -> Event {
        Event {
            event_id: stamp.event_id,
            kind: self.body.kind(),
            event_sequence: self.event_sequence,
            task_id: self.task_id,
            run_no: self.run_no,
            exec_epoch: self.exec_epoch,
            partition_epoch: stamp.partition_epoch,
            owner_seq: stamp.owner_seq,
            event_time: stamp.event_time,
            trace_id: self.trace_id,
            causation_id: stamp.causation_id,
            producer: stamp.producer,
            rule_version: stamp.rule_version,
            body: self.body,
        }
    }
}

/// Why a command is refused. The names are codes of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    /// The matrix does not allow it now.
    #[error("{kind} is not possible while the task is {state}")]
    State {
        /// What was wanted.
        kind: Kind,
        /// What the task is.
        state: TaskState,
    },
    /// A cancel request stands in the way.
    #[error("{0} is not possible, a cancel request is on record")]
    CancelRequested(Kind),
    /// There is no cancel request yet.
    #[error("task has no cancel request")]
    NotRequested,
    /// A replay or review names another run than the task's last one.
    #[error("run {named} was named, the task's last run is {current}")]
    Run {
        /// Named by the caller.
        named: RunNo,
        /// The task's.
        current: RunNo,
    },
    /// A review that would take back a decision without naming it, or names another than stands.
    #[error("{}", standing(*.0))]
    Decided(Option<ReviewOutcome>),
    /// A create whose deadline has passed; told only after its idempotency key was looked up.
    #[error("deadline {deadline} has passed, it is {now} (Unix ms)")]
    DeadlinePassed {
        /// Unix ms.
        deadline: i64,
        /// The owner's time, Unix ms.
        now: i64,
    },
    /// The step to resume from is not on record.
    #[error("step to resume from is not among the completed or failed steps")]
    UnknownStep,
    /// A counter or the version ran out of numbers.
    #[error("task has used up its sequence numbers")]
    Exhausted,
}

fn standing(decided: Option<ReviewOutcome>) -> String {
    match decided {
        Some(outcome) => {
            format!("the decision {outcome} is on record, and another one takes its place only if it names it")
        }
        None => "no decision is on record that could be taken back".to_owned(),
    }
}

impl View<'_> {
    // The next event of this task.
    fn next(&self, body: Body) -> Result<Draft, Refusal> {
        let event_sequence = self.core.version.next().ok_or(Refusal::Exhausted)?;
        self.allowed(body.kind())?;
        Ok(self.draft(event_sequence, body))
    }

    fn draft(&self, event_sequence: EventSequence, body: Body) -> Draft {
        Draft {
            task_id: Some(self.core.id),
            event_sequence,
            run_no: self.core.run_no,
            exec_epoch: self.core.exec_epoch,
            trace_id: self.row.trace_id.clone(),
            sampling: self.row.sampling,
            body,
        }
    }

    fn allowed(&self, kind: Kind) -> Result<(), Refusal> {
        let cell = STANDARD.matrix.cell(kind, Column::of(self.core.state));
        if cell == Cell::No || cell == Cell::Late && !self.core.closed_by_lost {
            return Err(Refusal::State { kind, state: self.core.state });
        }
        Ok(())
    }
}
