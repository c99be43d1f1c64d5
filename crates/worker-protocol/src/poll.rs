//! Polls and what they bring.

use serde::{Deserialize, Serialize};
use task_events::{ExecutionId, Incarnation, Sha256Hash, SkippedStep, StepDone, TaskId, Text, TraceParent};

use crate::Attempt;

/// A worker asks for work. The answer waits until there is some, or until `wait_ms` is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poll {
    /// Worker.
    pub worker_id: Text,
    /// Its process; the newest one is the worker, an older one is told `superseded`.
    pub incarnation: Incarnation,
    /// Version of its handlers.
    pub handler_version: Text,
    /// Queues it serves.
    pub queues: Vec<Text>,
    /// How many attempts it can take now.
    pub free_slots: u32,
    /// Every attempt it holds. An ASSIGNED attempt of it that is not listed was never delivered
    /// and is handed out again.
    pub held: Vec<ExecutionId>,
    /// Longest wait, ms.
    pub wait_ms: u64,
}

/// An attempt handed to a worker. Its lease runs from the *sending* of the poll that brought it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Task.
    pub task_id: TaskId,
    /// Attempt, to be sent back with every report.
    pub attempt: Attempt,
    /// Opaque; sent back with every report.
    pub attempt_token: Text,
    /// Handler that runs it.
    pub task_type: Text,
    /// Hash over exactly the payload bytes; the worker checks it before use.
    pub payload_hash: Sha256Hash,
    /// Where the payload lies when it is not in the store.
    pub payload_ref: Option<Text>,
    /// Trace of the task.
    pub trace_id: Text,
    /// The attempt as a span of that trace; `None` of a task without a trace.
    #[serde(default)]
    pub traceparent: Option<TraceParent>,
    /// Lease, ms.
    pub lease_ms: u64,
    /// Heartbeat interval, ms.
    pub heartbeat_ms: u64,
    /// Longest life of the handler, ms.
    pub start_to_close_ms: u64,
    /// The handler may be entered before STARTING is answered.
    pub optimistic_start: bool,
    /// Steps of earlier attempts whose recorded output stands in.
    pub steps_done: Vec<StepDone>,
    /// Steps not to be run again, each with its evidence.
    pub skip: Vec<SkippedStep>,
}

/// Answer to a poll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PollAnswer {
    /// Work, or none within the wait.
    Work {
        /// New attempts, at most as many as there were free slots.
        assignments: Vec<Assignment>,
        /// Attempts of this worker that must stop: fenced, or their task's cancel was requested.
        stop: Vec<ExecutionId>,
    },
    /// A newer process of this worker has polled: finish what runs and drain.
    Superseded,
    /// People want this process to take no more work: finish what runs and end.
    Drain,
    /// Nobody can answer now: poll again.
    Unavailable,
}
