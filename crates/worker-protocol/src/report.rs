//! Heartbeats and reports.

use serde::{Deserialize, Serialize};
use task_events::{ErrorCategory, ExecEpoch, ExecutionId, Incarnation, RunNo, Sha256Hash, StepDone, Text};

/// The attempt a report speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// Run it belongs to.
    pub run_no: RunNo,
    /// Fencing token.
    pub exec_epoch: ExecEpoch,
    /// Identity.
    pub execution_id: ExecutionId,
}

/// A sign of life of a running attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Attempt.
    pub attempt: Attempt,
    /// Worker.
    pub worker_id: Text,
    /// Its process.
    pub incarnation: Incarnation,
    /// Percent.
    pub memory_usage_percent: u32,
    /// Step in progress and whether it is declared idempotent.
    pub step_in_progress: Option<(Text, bool)>,
}

/// A report of one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Attempt it speaks of.
    pub attempt: Attempt,
    /// Worker that sends it.
    pub worker_id: Text,
    /// What it says.
    pub body: ReportBody,
}

/// What a report says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReportBody {
    /// The handler is about to be entered.
    Starting {
        /// Unix ms by the worker.
        start_time: i64,
        /// Percent.
        memory_usage_percent: u32,
    },
    /// The handler will not be entered: the worker drains or declines.
    Declined {
        /// The worker drains; else it declines this task.
        draining: bool,
    },
    /// A step is done and its output stored.
    Step(StepDone),
    /// The handler returned.
    Success {
        /// SHA-256 of the result.
        result_data_hash: Sha256Hash,
        /// Handler time, ms.
        execution_time_ms: u64,
        /// All steps, earlier attempts' included.
        steps_done: Vec<StepDone>,
        /// Percent.
        memory_usage_percent: u32,
    },
    /// The handler failed, or was stopped by a cancel.
    Failure {
        /// Machine-readable.
        error_code: Text,
        /// For people; the event keeps the first 256 characters.
        error_message: Text,
        /// Kind of failure.
        category: ErrorCategory,
        /// Step it failed in.
        failed_step: Option<Text>,
        /// Whether that step is idempotent.
        is_idempotent: Option<bool>,
        /// Handler time, ms.
        execution_time_ms: u64,
        /// Steps completed.
        steps_done: Vec<StepDone>,
        /// Percent.
        memory_usage_percent: u32,
    },
}

impl ReportBody {
    /// Whether the attempt ends with it.
    pub const fn is_terminal(&self) -> bool {
        match self {
            Self::Success { .. } | Self::Failure { .. } => true,
            Self::Starting { .. } | Self::Declined { .. } | Self::Step(_) => false,
        }
    }
}
