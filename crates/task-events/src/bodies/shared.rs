//! Records and enumerations that several kinds share. Fields, ranges and docs as in `schemas/task-execution-event.avsc`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::attempt::TaskCreated;
use crate::{EventSequence, ExecEpoch, ExecutionId, Incarnation, RunNo, Sha256Hash, Text};

/// Limits of a task, ms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// Longest life of one attempt.
    pub start_to_close_ms: u64,
    /// Longest wait for a worker.
    pub schedule_to_start_ms: Option<u64>,
}

/// How payload hashes are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HashForm {
    /// `PLAIN_SHA256`
    #[serde(rename = "PLAIN_SHA256")]
    PlainSha256,
    /// `SALTED_SHA256`
    #[serde(rename = "SALTED_SHA256")]
    SaltedSha256,
}

impl HashForm {
    /// Every symbol, in schema order.
    pub const ALL: &'static [Self] = &[Self::PlainSha256, Self::SaltedSha256];

    /// The symbol as it stands in the schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PlainSha256 => "PLAIN_SHA256",
            Self::SaltedSha256 => "SALTED_SHA256",
        }
    }
}

impl std::fmt::Display for HashForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Limits of this attempt, ms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeoutConfig {
    /// Handler limit.
    pub start_to_close_ms: u64,
    /// Expected heartbeat interval.
    pub heartbeat_ms: u64,
    /// Lease at hand-out.
    pub lease_ms: u64,
}

/// A completed step as the attempt reported it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDone {
    /// Name of the step, unique inside the handler.
    pub step: Text,
    /// Position in the handler, from 0.
    pub index: u32,
    /// SHA-256 of the recorded output.
    pub output_hash: Sha256Hash,
    /// Declared by the handler.
    pub is_idempotent: bool,
}

/// A step that a resume doesn't run again, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedStep {
    /// Name of the step.
    pub step: Text,
    /// Policy rule that allows it.
    pub rule: Text,
    /// Event_sequences of this task that prove it.
    pub evidence: Vec<EventSequence>,
}

/// What kind of failure; NON_RETRYABLE is never retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ErrorCategory {
    /// `TRANSIENT`
    #[serde(rename = "TRANSIENT")]
    Transient,
    /// `RESOURCE`
    #[serde(rename = "RESOURCE")]
    Resource,
    /// `TIMEOUT`
    #[serde(rename = "TIMEOUT")]
    Timeout,
    /// `NON_RETRYABLE`
    #[serde(rename = "NON_RETRYABLE")]
    NonRetryable,
    /// `OUTCOME_UNKNOWN`
    #[serde(rename = "OUTCOME_UNKNOWN")]
    OutcomeUnknown,
}

impl ErrorCategory {
    /// Every symbol, in schema order.
    pub const ALL: &'static [Self] =
        &[Self::Transient, Self::Resource, Self::Timeout, Self::NonRetryable, Self::OutcomeUnknown];

    /// The symbol as it stands in the schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "TRANSIENT",
            Self::Resource => "RESOURCE",
            Self::Timeout => "TIMEOUT",
            Self::NonRetryable => "NON_RETRYABLE",
            Self::OutcomeUnknown => "OUTCOME_UNKNOWN",
        }
    }
}

impl std::fmt::Display for ErrorCategory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// One probe of the worker's backup address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Unix ms.
    pub at: i64,
    /// What came back, or why nothing did.
    pub answer: Text,
}

/// A closed task as the owner read it from owed rows or the row; carried so that every fold can go on from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedTask {
    /// Terminal state it was closed in.
    pub state: TaskState,
    /// Run that was closed.
    pub run_no: RunNo,
    /// Version at the close, reviews included.
    pub event_sequence: EventSequence,
    /// Highest fencing token handed out.
    pub exec_epoch: ExecEpoch,
    /// Attempt that reports or is meant.
    pub execution_id: ExecutionId,
    /// What TaskCreated said.
    pub created: Box<TaskCreated>,
    /// Event time of TaskCreated, Unix ms.
    pub created_at: i64,
    /// Steps completed in the closed run.
    pub steps: Vec<StepDone>,
    /// Of the last attempt.
    pub handler_version: Option<Text>,
    /// What is left of the last attempt's lease, 0 when it said it stopped.
    pub lease_left_ms: u64,
    /// Delta-coded offsets and verdicts so far, see state.md.
    pub history: Bytes,
    /// Of the last attempt, empty if there was none.
    pub worker_id: Text,
    /// Last assignment, Unix ms.
    pub assigned_at: Option<i64>,
    /// Handler entered, Unix ms.
    pub start_time: Option<i64>,
    /// End of the run, Unix ms.
    pub end_time: Option<i64>,
    /// Memory in use at the worker, percent.
    pub memory_usage_percent: u32,
    /// Approved retries after failures in the closed run.
    pub retry_count: u32,
    /// Approved retries after losses in the closed run.
    pub lost_count: u32,
    /// Result of the closed run.
    pub result_data_hash: Option<Sha256Hash>,
    /// Last failure.
    pub error_code: Option<Text>,
    /// Last failure.
    pub error_message: Option<Text>,
    /// Last failure.
    pub category: Option<ErrorCategory>,
    /// Step of the last failure.
    pub failed_step: Option<Text>,
}

/// State of a task, design section 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskState {
    /// `CREATED`
    #[serde(rename = "CREATED")]
    Created,
    /// `ASSIGNED`
    #[serde(rename = "ASSIGNED")]
    Assigned,
    /// `EXECUTING`
    #[serde(rename = "EXECUTING")]
    Executing,
    /// `SUCCESS`
    #[serde(rename = "SUCCESS")]
    Success,
    /// `FAILED`
    #[serde(rename = "FAILED")]
    Failed,
    /// `LOST`
    #[serde(rename = "LOST")]
    Lost,
    /// `RETRY_APPROVED`
    #[serde(rename = "RETRY_APPROVED")]
    RetryApproved,
    /// `REPLAY_PLANNED`
    #[serde(rename = "REPLAY_PLANNED")]
    ReplayPlanned,
    /// `RETRYING`
    #[serde(rename = "RETRYING")]
    Retrying,
    /// `FAILED_PERMANENTLY`
    #[serde(rename = "FAILED_PERMANENTLY")]
    FailedPermanently,
    /// `CANCELLED`
    #[serde(rename = "CANCELLED")]
    Cancelled,
}

impl TaskState {
    /// Every symbol, in schema order.
    pub const ALL: &'static [Self] = &[
        Self::Created,
        Self::Assigned,
        Self::Executing,
        Self::Success,
        Self::Failed,
        Self::Lost,
        Self::RetryApproved,
        Self::ReplayPlanned,
        Self::Retrying,
        Self::FailedPermanently,
        Self::Cancelled,
    ];

    /// The symbol as it stands in the schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::Assigned => "ASSIGNED",
            Self::Executing => "EXECUTING",
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
            Self::Lost => "LOST",
            Self::RetryApproved => "RETRY_APPROVED",
            Self::ReplayPlanned => "REPLAY_PLANNED",
            Self::Retrying => "RETRYING",
            Self::FailedPermanently => "FAILED_PERMANENTLY",
            Self::Cancelled => "CANCELLED",
        }
    }
}

impl std::fmt::Display for TaskState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Producer {
    /// Service.
    pub service: Service,
    /// Instance name.
    pub instance: Text,
    /// Start of the process, ms since 2024 << 22 | random.
    pub incarnation: Incarnation,
}

/// Service of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Service {
    /// `COORDINATOR`
    #[serde(rename = "COORDINATOR")]
    Coordinator,
    /// `TASK_ENGINE`
    #[serde(rename = "TASK_ENGINE")]
    TaskEngine,
    /// `AUTO_REPLAY`
    #[serde(rename = "AUTO_REPLAY")]
    AutoReplay,
    /// `AUDIT_REPORT`
    #[serde(rename = "AUDIT_REPORT")]
    AuditReport,
}

impl Service {
    /// Every symbol, in schema order.
    pub const ALL: &'static [Self] = &[Self::Coordinator, Self::TaskEngine, Self::AutoReplay, Self::AuditReport];

    /// The symbol as it stands in the schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Coordinator => "COORDINATOR",
            Self::TaskEngine => "TASK_ENGINE",
            Self::AutoReplay => "AUTO_REPLAY",
            Self::AuditReport => "AUDIT_REPORT",
        }
    }
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
