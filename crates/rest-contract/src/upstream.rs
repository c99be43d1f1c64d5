//! Upstream endpoints: create, read, cancel, replay.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use task_events::{ExecutionId, ReplayFrom, Sha256Hash, TaskId, TaskState, Text};

use crate::forms;
use crate::limits::{
    DEFAULT_MAX_RETRIES, DEFAULT_PRIORITY, DEFAULT_START_TO_CLOSE_MS, MAX_BATCH_ITEMS, MAX_LABELS, MAX_LIFE_MS,
    MAX_PRIORITY, MAX_RETRIES,
};
use crate::problem::Problem;
use crate::worker::StepBody;

/// `POST /api/v1/task/create`, and an item of a batch.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRequest {
    /// Handler that runs it.
    #[schemars(with = "forms::Name")]
    pub task_type: Text,
    /// Parameters, kept exactly as sent; this or `payload_ref`.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "forms::present")]
    pub payload: Option<Box<RawValue>>,
    /// Where the payload lies instead; needs `payload_hash`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Note>")]
    pub payload_ref: Option<Text>,
    /// SHA-256 of what lies at `payload_ref`, 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::HashText>")]
    pub payload_hash: Option<Text>,
    /// Queue it waits in; `task_type` without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub queue: Option<Text>,
    /// Client that creates it; `default` without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub creator: Option<Text>,
    /// 0 to 9, 9 first; 4 without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(range(max = MAX_PRIORITY), extend("default" = DEFAULT_PRIORITY))]
    pub priority: Option<u8>,
    /// Unix ms before which it is not handed out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(range(min = 0))]
    pub not_before: Option<i64>,
    /// Unix ms after which it fails with TIMEOUT_DEADLINE.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub deadline: Option<i64>,
    /// Limits of its attempts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeouts: Option<TimeoutsBody>,
    /// Approved retries after failures; 3 without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(range(max = MAX_RETRIES), extend("default" = DEFAULT_MAX_RETRIES))]
    pub max_retries: Option<u32>,
    /// Order number or the like of the caller.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub business_key: Option<Text>,
    /// For search.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    #[schemars(with = "BTreeMap<String, forms::Label>", extend("maxProperties" = MAX_LABELS))]
    pub labels: BTreeMap<Text, Text>,
    /// Tasks of one creator with equal keys run one at a time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub concurrency_key: Option<Text>,
    /// Task beside which it is placed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::TaskIdText>")]
    pub same_partition_as: Option<Text>,
    /// Trace of the caller, 32 hexadecimal digits; that of `traceparent` without it, else a new one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Trace>")]
    pub trace_id: Option<Text>,
    /// Idempotency key of this item of a batch; `Idempotency-Key#i` without it. Not for a single create.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::Name>")]
    pub idempotency_key: Option<Text>,
}

/// Limits of a task's attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeoutsBody {
    /// Longest life of one attempt, ms; 1 h without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(range(min = 1, max = MAX_LIFE_MS), extend("default" = DEFAULT_START_TO_CLOSE_MS))]
    pub start_to_close_ms: Option<u64>,
    /// Longest wait for a worker, ms; none without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(range(min = 1, max = MAX_LIFE_MS))]
    pub schedule_to_start_ms: Option<u64>,
}

/// 201 (a new task) or 200 (the key's first task).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Created {
    /// Task.
    #[serde(with = "forms::TaskIdText")]
    pub task_id: TaskId,
    /// Its creation, Unix ms.
    pub create_timestamp: i64,
    /// The key named a task that was there before.
    #[serde(default)]
    pub duplicate: bool,
}

/// `POST /api/v1/task/create-batch`: at most 1,000 items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBatch {
    /// Tasks.
    #[schemars(length(min = 1, max = MAX_BATCH_ITEMS))]
    pub tasks: Vec<CreateRequest>,
}

/// 207: item by item, in the order sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchCreated {
    /// One for each task sent.
    pub items: Vec<BatchItem>,
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchItem {
    /// Position in the request, from 0.
    pub index: usize,
    /// What became of it.
    pub outcome: ItemOutcome,
    /// HTTP status it would have had alone.
    pub status: u16,
    /// Task, if it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<forms::TaskIdText>")]
    pub task_id: Option<Text>,
    /// Creation, Unix ms.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub create_timestamp: Option<i64>,
    /// Why it was rejected, or is unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<Box<Problem>>,
}

/// Of an item of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemOutcome {
    /// A new task.
    Created,
    /// The key's first task.
    Duplicate,
    /// Nothing was written.
    Rejected,
    /// Not known: ask again with the key.
    Unknown,
}

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
    /// Every record with the task's key, in the order of the log.
    pub events: Vec<EventView>,
    /// Records that retention has deleted from the log; their offsets.
    pub deleted: Vec<u64>,
    /// Where in the log this is read from.
    pub as_of: AsOf,
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
