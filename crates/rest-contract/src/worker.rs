//! Worker endpoints: register, poll, payloads, and the answers to what workers report.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use task_events::{ExecutionId, Incarnation, Sha256Hash, SkippedStep, TaskId, Text};

use crate::forms;
use crate::limits::{MAX_HELD, MAX_QUEUES, MAX_SLOTS, MAX_WAIT_MS};

/// `POST /coordinator/v1/workers/register`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// Worker.
    #[schemars(with = "forms::Name")]
    pub worker_id: Text,
    /// Its process.
    #[serde(with = "forms::IncarnationText")]
    pub incarnation: Incarnation,
    /// Version of its handlers.
    #[schemars(with = "forms::Name")]
    pub handler_version: Text,
    /// Queues it serves, at least one.
    #[schemars(with = "Vec<forms::Name>", length(min = 1, max = MAX_QUEUES))]
    pub queues: Vec<Text>,
    /// Attempts at a time.
    #[schemars(range(min = 1, max = MAX_SLOTS))]
    pub slots: u32,
}

/// Its answer: what the coordinator expects of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registered {
    /// Instance that answered.
    pub instance: Text,
    /// Lease at hand-out, ms.
    pub lease_ms: u64,
    /// Heartbeat interval, ms.
    pub heartbeat_ms: u64,
    /// Longest wait of a poll, ms.
    pub max_wait_ms: u64,
    /// Longest payload, step output or result, bytes.
    pub max_payload_bytes: usize,
}

/// `GET /coordinator/v1/ping`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pong {
    /// Instance that answered.
    pub instance: Text,
    /// Its wall clock, Unix ms.
    pub now: i64,
}

/// `POST /coordinator/v1/workers/{id}/poll`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollRequest {
    /// Process of the worker.
    #[serde(with = "forms::IncarnationText")]
    pub incarnation: Incarnation,
    /// Version of its handlers.
    #[schemars(with = "forms::Name")]
    pub handler_version: Text,
    /// Queues it serves, at least one.
    #[schemars(with = "Vec<forms::Name>", length(min = 1, max = MAX_QUEUES))]
    pub queues: Vec<Text>,
    /// How many attempts it can take now.
    #[schemars(range(max = MAX_SLOTS))]
    pub free_slots: u32,
    /// Every attempt it holds; an ASSIGNED attempt of it that is not listed is handed out again.
    #[serde(with = "forms::ExecutionTexts", default)]
    #[schemars(length(max = MAX_HELD))]
    pub held: Vec<ExecutionId>,
    /// Longest wait for work, ms.
    #[serde(default)]
    #[schemars(range(max = MAX_WAIT_MS))]
    pub wait_ms: u64,
}

/// Its answer; a process that was superseded gets the problem `superseded` instead.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PollResponse {
    /// New attempts, at most as many as there were free slots.
    pub assignments: Vec<AssignmentBody>,
    /// Attempts that must stop.
    #[serde(with = "forms::ExecutionTexts")]
    pub stop: Vec<ExecutionId>,
    /// People want this process to take no more work: it finishes what it holds and ends.
    #[serde(default)]
    pub drain: bool,
}

/// An attempt handed to a worker. Its lease runs from the *sending* of the poll that brought it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AssignmentBody {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
    /// Run it belongs to.
    pub run_no: u32,
    /// Fencing token.
    pub exec_epoch: u32,
    /// Identity of the attempt.
    #[serde(with = "forms::ExecutionText")]
    pub execution_id: ExecutionId,
    /// Opaque; sent back with every report.
    pub attempt_token: Text,
    /// Handler that runs it.
    pub task_type: Text,
    /// The payload exactly as the creator sent it; absent with `payload_ref`, and when the store did
    /// not answer in time (then it is read by `GET …/payload`).
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "forms::present")]
    pub payload: Option<Box<RawValue>>,
    /// Hash over exactly the payload's bytes; checked before use.
    #[serde(with = "forms::HashText")]
    pub payload_hash: Sha256Hash,
    /// Where the payload lies when it was not sent along.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub payload_ref: Option<Text>,
    /// Trace of the task.
    pub trace_id: Text,
    /// The attempt as a span of that trace (W3C Trace Context), to be handed on by the handler; absent
    /// if the task has no trace.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub traceparent: Option<Text>,
    /// Lease, ms.
    pub lease_ms: u64,
    /// Heartbeat interval, ms.
    pub heartbeat_ms: u64,
    /// Longest life of the handler, ms.
    pub start_to_close_ms: u64,
    /// The handler may be entered before STARTING is answered.
    #[serde(default)]
    pub optimistic_start: bool,
    /// Steps of earlier attempts whose recorded output stands in.
    #[serde(default)]
    pub steps_done: Vec<StepBody>,
    /// Steps not to be run again, each with its evidence.
    #[serde(default)]
    #[schemars(with = "Vec<forms::Skipped>")]
    pub skip: Vec<SkippedStep>,
}

/// A completed step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepBody {
    /// Name, unique inside the handler.
    #[schemars(with = "forms::Name")]
    pub step: Text,
    /// Position in the handler, from 0.
    pub index: u32,
    /// SHA-256 of the recorded output.
    #[serde(with = "forms::HashText")]
    pub output_hash: Sha256Hash,
    /// Declared by the handler.
    pub is_idempotent: bool,
}

/// Which payload of a task: `?item=…` of `GET /coordinator/v1/task/{id}/payload`, whose answer is the
/// bytes themselves, and in [`PayloadBody`]. There may be several, by several attempts or owners, of which the
/// log names one: `&hash=` (64 hexadecimal digits, as the log and the assignment have it) says which one is
/// read, of all but the text of an error.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PayloadName {
    /// Parameters as the creator sent them.
    Parameters,
    /// Output of a step; the step is named beside it.
    Step,
    /// Result of the task.
    Result,
    /// Whole text of an error.
    ErrorText,
}

impl PayloadName {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Parameters, Self::Step, Self::Result, Self::ErrorText];

    /// As it stands in a query and in JSON.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Step => "step",
            Self::Result => "result",
            Self::ErrorText => "error_text",
        }
    }

    /// The one of this text.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }
}

/// A payload that a worker stores, before the report that names its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PayloadBody {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
    /// Which one; parameters are the creator's and refused here.
    pub item: PayloadName,
    /// Step, with `item` = `step`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub step: Option<Text>,
    /// Bytes.
    #[serde(with = "forms::Base64")]
    pub data: Bytes,
}
