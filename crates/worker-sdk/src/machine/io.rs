//! What goes into the machine and what comes out.

use std::sync::Arc;

use task_events::{ErrorCategory, ExecutionId, Sha256Hash, StepDone, TaskId, Text};
use worker_protocol::{Assignment, Heartbeat, HeartbeatAnswer, Poll, PollAnswer, Report, ReportAnswer};

/// Error code of an attempt that ended because of a cancel.
pub const CANCELLED: Text = Text::const_new("CANCELLED");
/// Error code of a handler that panicked.
pub const HANDLER_PANICKED: Text = Text::const_new("HANDLER_PANICKED");
/// Error code of a handler that ran longer than allowed.
pub const TIMEOUT_START_TO_CLOSE: Text = Text::const_new("TIMEOUT_START_TO_CLOSE");

/// Both clocks of the worker at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// CLOCK_BOOTTIME, ms: all decisions.
    pub boot_ms: u64,
    /// Unix ms: for people only.
    pub wall_ms: i64,
}

/// A request of this machine; an answer names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time went on.
    Tick,
    /// A poll was answered.
    PollAnswered {
        /// Which.
        request: RequestId,
        /// How.
        answer: PollAnswer,
    },
    /// A heartbeat was answered.
    HeartbeatAnswered {
        /// Which.
        request: RequestId,
        /// How.
        answer: HeartbeatAnswer,
    },
    /// A report was answered.
    ReportAnswered {
        /// Which.
        request: RequestId,
        /// How.
        answer: ReportAnswer,
    },
    /// A request could not be sent, or its answer will not come. Whether it arrived is unknown.
    SendFailed {
        /// Which.
        request: RequestId,
    },
    /// A handler entered a step.
    StepStarted {
        /// Its attempt.
        execution_id: ExecutionId,
        /// Name of the step.
        step: Text,
        /// Declared by the handler.
        is_idempotent: bool,
    },
    /// A handler completed a step, and its output is stored.
    StepDone {
        /// Its attempt.
        execution_id: ExecutionId,
        /// The step.
        done: StepDone,
    },
    /// A handler is gone, whatever the reason: nothing of it acts any more.
    HandlerEnded {
        /// Its attempt.
        execution_id: ExecutionId,
        /// How.
        end: HandlerEnd,
    },
    /// Memory in use at the worker.
    Memory {
        /// Percent.
        percent: u32,
    },
    /// Take no new work, finish what runs.
    Drain,
}

/// How a handler ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerEnd {
    /// It returned a result, which is stored.
    Success {
        /// SHA-256 of the result.
        result_data_hash: Sha256Hash,
    },
    /// It returned an error.
    Failed {
        /// Machine-readable.
        error_code: Text,
        /// For people.
        error_message: Text,
        /// Kind of failure.
        category: ErrorCategory,
    },
    /// It panicked.
    Panicked {
        /// Message of the panic.
        message: Text,
    },
    /// It was stopped, or gave up because of the cancellation token.
    Stopped,
}

/// Why a handler must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The lease is over: another worker may get the task.
    LeaseEnd,
    /// It ran longer than allowed.
    StartToClose,
    /// It did not heed the cancellation token in time.
    CancelGrace,
    /// The attempt is over.
    Fenced,
}

/// What to do, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send it; the answer comes back under the same id.
    Poll {
        /// Id of the request.
        request: RequestId,
        /// What to send.
        poll: Poll,
    },
    /// Send it.
    Heartbeat {
        /// Id of the request.
        request: RequestId,
        /// Task, for routing.
        task_id: TaskId,
        /// Opaque, from the assignment.
        attempt_token: Text,
        /// What to send.
        heartbeat: Heartbeat,
    },
    /// Send it.
    Report {
        /// Id of the request.
        request: RequestId,
        /// Task, for routing.
        task_id: TaskId,
        /// Opaque, from the assignment.
        attempt_token: Text,
        /// What to send.
        report: Report,
    },
    /// Enter the handler, unless [`super::Machine::may_write`] no longer holds.
    Start {
        /// The attempt, with what earlier attempts completed.
        assignment: Arc<Assignment>,
    },
    /// Raise the cancellation token of the handler.
    Cancel {
        /// Its attempt.
        execution_id: ExecutionId,
    },
    /// End the handler at once, and say so by [`Input::HandlerEnded`] when it is gone.
    Stop {
        /// Its attempt.
        execution_id: ExecutionId,
        /// Why.
        why: Stop,
    },
    /// Make it durable before any later output is run.
    Persist {
        /// What must survive a crash of this process.
        entry: OutboxEntry,
    },
    /// It need not survive any longer.
    Forget {
        /// Which entry.
        key: EntryKey,
    },
}

/// Name of an outbox entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// Attempt.
    pub execution_id: ExecutionId,
    /// Number of the report inside the attempt, in the order of sending.
    pub number: u32,
}

/// A report that must reach the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    /// Its name.
    pub key: EntryKey,
    /// Task, for routing.
    pub task_id: TaskId,
    /// Opaque, from the assignment.
    pub attempt_token: Text,
    /// The report.
    pub report: Report,
}
