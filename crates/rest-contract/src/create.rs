//! Creating tasks, one or many.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use task_events::{TaskId, Text};

use crate::forms;
use crate::limits::{
    DEFAULT_MAX_RETRIES, DEFAULT_PRIORITY, DEFAULT_START_TO_CLOSE_MS, MAX_BATCH_ITEMS, MAX_LABELS, MAX_LIFE_MS,
    MAX_PRIORITY, MAX_RETRIES,
};
use crate::problem::Problem;

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
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "forms::objects::maybe")]
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
    #[serde(deserialize_with = "forms::objects::all")]
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
