//! Kinds by which the engine and the replayer decide what happens to a broken-off task, and their annotations. Fields, ranges and docs as in `schemas/task-execution-event.avsc`.

use serde::{Deserialize, Serialize};

use super::shared::{ErrorCategory, SkippedStep};
use crate::{EventSequence, ExecutionId, Text};

/// The engine lets the task run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRetryApproved {
    /// Unix ms before which it is not assigned.
    pub not_before: Option<i64>,
    /// Drawn backoff.
    pub backoff_ms: u64,
    /// After this verdict.
    pub retry_count: u32,
    /// After this verdict.
    pub lost_count: u32,
    /// Steps not to run again, each with rule and evidence.
    pub skip: Vec<SkippedStep>,
    /// Hint.
    pub prefer_workers: Vec<Text>,
    /// Hint.
    pub avoid_workers: Vec<Text>,
    /// Policy that decided.
    pub policy_version: u32,
}

/// The engine gives the task up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFailedPermanently {
    /// Code of the last failure.
    pub error_code: Text,
    /// Why, as given.
    pub reason: Text,
    /// People should look at it.
    pub review: bool,
    /// Policy that decided.
    pub policy_version: u32,
}

/// What remains to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReplayPlanned {
    /// First step to run, null = from the start.
    pub resume_from_step: Option<Text>,
    /// Number of steps not run again.
    pub resume_index: u32,
    /// Steps not to run again.
    pub skip: Vec<SkippedStep>,
    /// Event_sequences the plan rests on.
    pub based_on: Vec<EventSequence>,
    /// What the plan was checked against.
    pub witness: Witness,
}

/// What the plan was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Witness {
    /// `SNAPSHOT_AND_LOG`
    #[serde(rename = "SNAPSHOT_AND_LOG")]
    SnapshotAndLog,
    /// `LOG_ONLY`
    #[serde(rename = "LOG_ONLY")]
    LogOnly,
}

impl Witness {
    /// Every symbol, in schema order.
    pub const ALL: &'static [Self] = &[Self::SnapshotAndLog, Self::LogOnly];

    /// The symbol as it stands in the schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SnapshotAndLog => "SNAPSHOT_AND_LOG",
            Self::LogOnly => "LOG_ONLY",
        }
    }
}

impl std::fmt::Display for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The task waits for a worker again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRetried {
    /// Unix ms before which it is not assigned.
    pub not_before: Option<i64>,
}

/// Explains the TaskFailed that follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFailureAnalysis {
    /// Attempt that reports or is meant.
    pub execution_id: ExecutionId,
    /// Kind of failure.
    pub category: ErrorCategory,
    /// At most 256 characters.
    pub summary: Text,
}

/// Explains the TaskRetryApproved that follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSkippedByPolicy {
    /// The step.
    pub skipped: SkippedStep,
}

/// Explains the TaskRetryApproved that follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerQuarantined {
    /// Who gets no new work.
    pub worker_id: Text,
    /// Why, as given.
    pub reason: Text,
    /// Unix ms.
    pub until: i64,
}
