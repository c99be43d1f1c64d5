//! Kinds that tell the life of an attempt: all written by the owner. Fields, ranges and docs as in `schemas/task-execution-event.avsc`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::shared::{ErrorCategory, HashForm, Probe, StepDone, TimeoutConfig, Timeouts};
use crate::{ExecutionId, Incarnation, Sha256Hash, Text};

/// A task is born.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCreated {
    /// Handler that runs it.
    pub task_type: Text,
    /// Queue it waits in.
    pub queue: Text,
    /// Client that created it.
    pub creator: Text,
    /// 0 to 9, 9 first.
    pub priority: u8,
    /// Unix ms after which it fails with TIMEOUT_DEADLINE.
    pub deadline: Option<i64>,
    /// Unix ms before which it is not assigned.
    pub not_before: Option<i64>,
    /// Hash over exactly the payload bytes as sent.
    pub payload_hash: Sha256Hash,
    /// How payload_hash is formed.
    pub hash_form: HashForm,
    /// Where the payload lies when it is not inline.
    pub payload_ref: Option<Text>,
    /// Order number or the like of the upstream system.
    pub business_key: Option<Text>,
    /// Labels for search, ascending by name.
    pub labels: BTreeMap<Text, Text>,
    /// Tasks with equal keys run one at a time.
    pub concurrency_key: Option<Text>,
    /// Limits.
    pub timeouts: Timeouts,
    /// Approved retries after failures.
    pub max_retries: u32,
    /// The caller gave the trace, so it is indexed.
    pub trace_given: bool,
    /// SHA-256 over client, 0x00 and idempotency key.
    pub key_hash: Option<Sha256Hash>,
    /// SHA-256 over the create request, compared when the key comes again.
    pub request_hash: Option<Sha256Hash>,
}

/// An attempt is handed to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAssigned {
    /// Who gets it.
    pub worker_id: Text,
    /// Which process of the worker.
    pub incarnation: Incarnation,
    /// Attempt that reports or is meant.
    pub execution_id: ExecutionId,
    /// Unix ms.
    pub assignment_time: i64,
    /// Limits of this attempt.
    pub timeout_config: TimeoutConfig,
    /// Largest lease this attempt can get.
    pub lease_max_ms: u64,
    /// The handler may start before STARTING was answered: no release by silence.
    pub optimistic_start: bool,
    /// Version of the handler at the worker, empty if unknown.
    pub handler_version: Text,
}

/// The handler was entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStarted {
    /// Attempt that reports or is meant.
    pub execution_id: ExecutionId,
    /// Who runs it.
    pub worker_id: Text,
    /// Unix ms by the worker.
    pub start_time: i64,
    /// Memory in use at the worker, percent.
    pub memory_usage_percent: u32,
}

/// A step is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStepCompleted {
    /// Attempt that reports or is meant.
    pub execution_id: ExecutionId,
    /// The step.
    pub done: StepDone,
}

/// An attempt comes back without its handler having been entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReleased {
    /// Attempt that reports or is meant.
    pub execution_id: ExecutionId,
    /// Why.
    pub reason: ReleaseReason,
    /// Longest time from the read-back of this record during which the former attempt may still run, ms.
    pub lease_left_ms: u64,
}

/// Why an attempt came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReleaseReason {
    /// `DRAIN`
    #[serde(rename = "DRAIN")]
    Drain,
    /// `DECLINED`
    #[serde(rename = "DECLINED")]
    Declined,
    /// `NOT_STARTED`
    #[serde(rename = "NOT_STARTED")]
    NotStarted,
    /// `NEVER_DELIVERED`
    #[serde(rename = "NEVER_DELIVERED")]
    NeverDelivered,
}

impl ReleaseReason {
    /// Every symbol, in schema order.
    pub const ALL: &'static [Self] = &[Self::Drain, Self::Declined, Self::NotStarted, Self::NeverDelivered];

    /// The symbol as it stands in the schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Drain => "DRAIN",
            Self::Declined => "DECLINED",
            Self::NotStarted => "NOT_STARTED",
            Self::NeverDelivered => "NEVER_DELIVERED",
        }
    }
}

impl std::fmt::Display for ReleaseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The attempt succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCompleted {
    /// Attempt that reports or is meant.
    pub execution_id: ExecutionId,
    /// SHA-256 of the result.
    pub result_data_hash: Sha256Hash,
    /// Handler time by the worker.
    pub execution_time_ms: u64,
    /// All steps, those of earlier attempts included.
    pub steps_done: Vec<StepDone>,
    /// Memory in use at the worker, percent.
    pub memory_usage_percent: u32,
}

/// The attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFailed {
    /// Attempt that reports or is meant.
    pub execution_id: ExecutionId,
    /// Machine-readable code.
    pub error_code: Text,
    /// At most 256 characters, nothing personal.
    pub error_message: Text,
    /// Kind of failure.
    pub category: ErrorCategory,
    /// Step it failed in.
    pub failed_step: Option<Text>,
    /// Whether that step is declared idempotent.
    pub is_idempotent: Option<bool>,
    /// Handler time by the worker.
    pub execution_time_ms: u64,
    /// Steps completed.
    pub steps_done: Vec<StepDone>,
    /// Memory in use at the worker, percent.
    pub memory_usage_percent: u32,
}

/// No sign of life from the attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLost {
    /// Attempt that reports or is meant.
    pub execution_id: ExecutionId,
    /// Unix ms by the owner.
    pub last_sign_of_life: i64,
    /// As last told.
    pub step_in_progress: Option<Text>,
    /// As last told.
    pub step_is_idempotent: Option<bool>,
    /// Failed probes, empty without a backup address.
    pub probes: Vec<Probe>,
    /// Longest time from the read-back of this record during which the former attempt may still run, ms.
    pub lease_left_ms: u64,
}

/// A limit of the task ran out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTimedOut {
    /// Which limit.
    pub timeout: TimeoutKind,
    /// The live attempt, null when there is none.
    pub execution_id: Option<ExecutionId>,
    /// As last told by the live attempt.
    pub step_in_progress: Option<Text>,
    /// As last told by the live attempt.
    pub step_is_idempotent: Option<bool>,
    /// Longest time from the read-back of this record during which the former attempt may still run, ms.
    pub lease_left_ms: u64,
}

/// Which limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimeoutKind {
    /// `SCHEDULE_TO_START`
    #[serde(rename = "SCHEDULE_TO_START")]
    ScheduleToStart,
    /// `START_TO_CLOSE`
    #[serde(rename = "START_TO_CLOSE")]
    StartToClose,
    /// `DEADLINE`
    #[serde(rename = "DEADLINE")]
    Deadline,
}

impl TimeoutKind {
    /// Every symbol, in schema order.
    pub const ALL: &'static [Self] = &[Self::ScheduleToStart, Self::StartToClose, Self::Deadline];

    /// The symbol as it stands in the schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ScheduleToStart => "SCHEDULE_TO_START",
            Self::StartToClose => "START_TO_CLOSE",
            Self::Deadline => "DEADLINE",
        }
    }
}

impl std::fmt::Display for TimeoutKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
