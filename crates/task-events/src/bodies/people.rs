//! Kinds behind which people, or a late worker, stand. Fields, ranges and docs as in `schemas/task-execution-event.avsc`.

use serde::{Deserialize, Serialize};

use super::shared::{ClosedTask, TaskState};
use crate::{ExecutionId, Offset, Sha256Hash, Text};

/// Somebody wants the task cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCancelRequested {
    /// Who asked.
    pub actor: Text,
    /// Why, as given.
    pub reason: Text,
}

/// The task is cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCancelled {
    /// The worker said it stopped.
    pub worker_stopped: bool,
    /// Longest time from the read-back of this record during which the former attempt may still run, ms.
    pub lease_left_ms: u64,
}

/// A closed task is opened again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReplayRequested {
    /// The closed state.
    pub carried: Box<ClosedTask>,
    /// Where to resume.
    #[serde(rename = "from")]
    pub replay_from: ReplayFrom,
    /// With STEP.
    pub from_step: Option<Text>,
    /// Who asked.
    pub actor: Text,
    /// Why, as given.
    pub reason: Text,
    /// Offset of the closed task's last event: the one that closed it, or a review since. That event
    /// has the `event_sequence` of `carried`.
    pub closed_at_offset: Offset,
}

/// Where a replay resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReplayFrom {
    /// `FAILURE`
    #[serde(rename = "FAILURE")]
    Failure,
    /// `START`
    #[serde(rename = "START")]
    Start,
    /// `STEP`
    #[serde(rename = "STEP")]
    Step,
}

impl ReplayFrom {
    /// Every symbol, in schema order.
    pub const ALL: &'static [Self] = &[Self::Failure, Self::Start, Self::Step];

    /// The symbol as it stands in the schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failure => "FAILURE",
            Self::Start => "START",
            Self::Step => "STEP",
        }
    }
}

impl std::fmt::Display for ReplayFrom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// People decided about a closed task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReviewed {
    /// The closed state.
    pub carried: Box<ClosedTask>,
    /// What was decided.
    pub outcome: ReviewOutcome,
    /// Who asked.
    pub actor: Text,
    /// Free text.
    pub note: Text,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReviewOutcome {
    /// `ACCEPTED`
    #[serde(rename = "ACCEPTED")]
    Accepted,
    /// `ABANDONED`
    #[serde(rename = "ABANDONED")]
    Abandoned,
}

impl ReviewOutcome {
    /// Every symbol, in schema order.
    pub const ALL: &'static [Self] = &[Self::Accepted, Self::Abandoned];

    /// The symbol as it stands in the schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "ACCEPTED",
            Self::Abandoned => "ABANDONED",
        }
    }
}

impl std::fmt::Display for ReviewOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A terminal report that is neither live, late nor a duplicate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedReport {
    /// Attempt that reports or is meant.
    pub execution_id: ExecutionId,
    /// What the worker reported.
    pub reported: ReportedStatus,
    /// Who reported.
    pub worker_id: Text,
    /// Of its result.
    pub result_data_hash: Option<Sha256Hash>,
    /// Of its failure.
    pub error_code: Option<Text>,
    /// Why, as given.
    pub reason: Text,
}

/// What the worker reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReportedStatus {
    /// `SUCCESS`
    #[serde(rename = "SUCCESS")]
    Success,
    /// `FAILED`
    #[serde(rename = "FAILED")]
    Failed,
}

impl ReportedStatus {
    /// Every symbol, in schema order.
    pub const ALL: &'static [Self] = &[Self::Success, Self::Failed];

    /// The symbol as it stands in the schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
        }
    }
}

impl std::fmt::Display for ReportedStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A task waits too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOverdue {
    /// State it waits in.
    pub state: TaskState,
    /// Whose turn it is: worker, coordinator, task-engine or auto-replay.
    pub waiting_for: Text,
    /// Unix ms.
    pub since: i64,
}
