//! What a create request means, as a hash: by it a repeated idempotency key is known to bear the
//! same request again.
//!
//! It covers every field after its default was filled in, and the payload's bytes by their hash. So
//! the order of fields, white space outside the payload, and a default that is spelled out change
//! nothing; a payload that is formatted otherwise is another request, since the handler would see
//! other bytes. It does not cover the trace (each attempt to send may bear its own) nor the key.

use std::collections::BTreeMap;

use serde::Serialize;
use task_events::{Sha256Hash, TaskCreated, TaskId, Text};

#[derive(Serialize)]
struct Meaning<'a> {
    form: &'static str,
    task_type: &'a str,
    payload_hash: String,
    payload_ref: Option<&'a str>,
    queue: &'a str,
    creator: &'a str,
    priority: u8,
    not_before: Option<i64>,
    deadline: Option<i64>,
    start_to_close_ms: u64,
    schedule_to_start_ms: Option<u64>,
    max_retries: u32,
    business_key: Option<&'a str>,
    labels: &'a BTreeMap<Text, Text>,
    concurrency_key: Option<&'a str>,
    same_partition_as: Option<String>,
}

/// SHA-256 over the canonical JSON of it.
pub(super) fn request_hash(created: &TaskCreated, beside: Option<TaskId>) -> Sha256Hash {
    let meaning = Meaning {
        form: "dualtrack.create.1",
        task_type: &created.task_type,
        payload_hash: created.payload_hash.to_string(),
        payload_ref: created.payload_ref.as_deref(),
        queue: &created.queue,
        creator: &created.creator,
        priority: created.priority,
        not_before: created.not_before,
        deadline: created.deadline,
        start_to_close_ms: created.timeouts.start_to_close_ms,
        schedule_to_start_ms: created.timeouts.schedule_to_start_ms,
        max_retries: created.max_retries,
        business_key: created.business_key.as_deref(),
        labels: &created.labels,
        concurrency_key: created.concurrency_key.as_deref(),
        same_partition_as: beside.map(|task| task.to_string()),
    };
    // Texts, numbers and a map with text keys: nothing in it can fail to be written.
    Sha256Hash::of(&serde_json::to_vec(&meaning).unwrap_or_default())
}

/// SHA-256 over client, 0x00 and key.
pub(super) fn key_hash(client: &str, key: &str) -> Sha256Hash {
    Sha256Hash::of(&[client.as_bytes(), b"\0", key.as_bytes()].concat())
}
