//! Reading a task, cancelling it, opening it again.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use task_events::{ExecutionId, ReplayFrom, Sha256Hash, TaskId, TaskState, Text};

use crate::create::TimeoutsBody;
use crate::forms;
use crate::limits::MAX_PRIORITY;
use crate::worker::StepBody;

/// `GET /api/v1/task/{id}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskView {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
    /// State.
    #[schemars(with = "forms::State")]
    pub status: TaskState,
    /// A cancel request is on record.
    pub cancel_requested: bool,
    /// Run.
    pub run_no: u32,
    /// Highest event_sequence.
    pub version: u32,
    /// Handler that runs it.
    pub task_type: Text,
    /// Queue.
    pub queue: Text,
    /// Client that created it.
    pub creator: Text,
    /// 0 to 9.
    #[schemars(range(max = MAX_PRIORITY))]
    pub priority: u8,
    /// Unix ms.
    pub created_at: i64,
    /// Last assignment, Unix ms.
    pub assigned_at: Option<i64>,
    /// Last time a handler was entered, Unix ms.
    pub start_time: Option<i64>,
    /// Last failure, loss, timeout or end, Unix ms.
    pub end_time: Option<i64>,
    /// Unix ms.
    pub not_before: Option<i64>,
    /// Unix ms.
    pub deadline: Option<i64>,
    /// Limits of an attempt.
    pub timeouts: TimeoutsBody,
    /// Worker of the last attempt.
    pub worker_id: Option<Text>,
    /// Its fencing token; 0 = never assigned.
    pub exec_epoch: u32,
    /// Its identity.
    #[schemars(with = "Option<forms::ExecutionText>")]
    pub execution_id: Option<String>,
    /// Approved retries after failures in this run.
    pub retry_count: u32,
    /// Limit of it.
    pub max_retries: u32,
    /// Approved retries after losses in this run.
    pub lost_count: u32,
    /// As last reported.
    pub memory_usage_percent: u32,
    /// Trace.
    pub trace_id: Text,
    /// Of the caller.
    pub business_key: Option<Text>,
    /// For search.
    pub labels: BTreeMap<Text, Text>,
    /// One at a time.
    pub concurrency_key: Option<Text>,
    /// SHA-256 of the payload.
    #[serde(with = "forms::HashText")]
    pub payload_hash: Sha256Hash,
    /// Where it lies, if not in the store.
    pub payload_ref: Option<Text>,
    /// SHA-256 of the result, 64 hexadecimal digits.
    #[schemars(with = "Option<forms::HashText>")]
    pub result_data_hash: Option<String>,
    /// Last failure.
    pub error: Option<ErrorView>,
    /// Steps completed in this run or taken over.
    pub steps: Vec<StepBody>,
    /// Where in the log this is read from.
    pub as_of: AsOf,
    /// The partition has no proven owner now, so this is what the task's row in the store says: true as of `as_of`,
    /// and perhaps not any more.
    #[serde(default)]
    pub stale: bool,
}

/// Last failure of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorView {
    /// Machine-readable.
    pub code: Text,
    /// For people.
    pub message: Text,
    /// Kind of failure.
    pub category: Option<Text>,
    /// Step it failed in.
    pub failed_step: Option<Text>,
}

/// Where in the log something is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AsOf {
    /// Partition.
    pub partition: u16,
    /// Every record below this offset is taken into account.
    pub offset: u64,
}

/// `GET /api/v1/task/{id}/events`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventsView {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
    /// Records with the task's key, in the order of the log.
    pub events: Vec<EventView>,
    /// Records of this page that retention has deleted from the log; their offsets.
    pub deleted: Vec<u64>,
    /// Where in the log this is read from.
    pub as_of: AsOf,
    /// `cursor` of the next page; absent if there is none yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
}

/// A record and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventView {
    /// Offset in the task's partition.
    pub offset: u64,
    /// Broker time, Unix ms.
    pub broker_time: i64,
    /// `accepted`, `rejected` or `quarantined`.
    pub verdict: Text,
    /// Why it was rejected or quarantined.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Text>,
    /// The event, envelope and body; absent for what cannot be decoded.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub event: Option<Value>,
}

/// `GET /api/v1/task/{id}/why`: the one fact that keeps the task where it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhyView {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
    /// State.
    #[schemars(with = "forms::State")]
    pub status: TaskState,
    /// Machine-readable name of the fact.
    pub fact: Text,
    /// The fact in words, with its numbers.
    pub text: String,
    /// Whose turn it is: `coordinator`, `task-engine`, `auto-replay`, `worker`, `people`, `nobody`.
    pub waits_for: Text,
    /// When the wait ends by itself, Unix ms, if it does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<i64>,
    /// What can be done.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<String>,
    /// Where in the log this is read from.
    pub as_of: AsOf,
}

/// `GET /api/v1/task/{id}/result`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResultView {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
    /// Run whose result it is.
    pub run_no: u32,
    /// SHA-256 over exactly the result's bytes.
    #[serde(with = "forms::HashText")]
    pub result_data_hash: Sha256Hash,
    /// The result, if it is a JSON text.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "forms::present")]
    pub result: Option<Box<RawValue>>,
    /// The result's bytes as Base64, if it is not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result_base64: Option<String>,
    /// As in [`TaskView`]: the run is that of the task's row, and perhaps not the last one any more.
    #[serde(default)]
    pub stale: bool,
}

/// `POST /api/v1/task/{id}/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// Who asks; `default` without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub actor: Option<Text>,
    /// Why.
    #[serde(default)]
    #[schemars(with = "forms::Note")]
    pub reason: Text,
}

/// 202: the request is on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelAccepted {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
}

/// `POST /api/v1/task/{id}/replay`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// The run that is replayed; another one than the last is refused with the current one.
    #[schemars(range(min = 1))]
    pub run_no: u32,
    /// Where to resume: `FAILURE` (default), `START`, `STEP`.
    #[serde(default = "from_failure")]
    #[schemars(with = "forms::ResumeFrom")]
    pub from: ReplayFrom,
    /// With `STEP`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub from_step: Option<Text>,
    /// Who asks; `default` without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub actor: Option<Text>,
    /// Why.
    #[serde(default)]
    #[schemars(with = "forms::Note")]
    pub reason: Text,
}

const fn from_failure() -> ReplayFrom {
    ReplayFrom::Failure
}

/// 202: a new run is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
    /// The new run.
    pub run_no: u32,
}

/// `GET /api/v1/trace/{trace_id}` and `/api/v1/business/{key}`: 207 when a partition did not answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundView {
    /// Tasks, oldest first.
    pub tasks: Vec<TaskView>,
    /// More were found than are shown.
    pub truncated: bool,
    /// Partitions that did not answer: their newest tasks may be missing.
    pub unanswered: Vec<u16>,
}

/// The id of an execution as views show it; absent for a task that was never assigned.
pub fn shown(id: ExecutionId) -> Option<String> {
    (id != ExecutionId::NONE).then(|| id.to_string())
}
