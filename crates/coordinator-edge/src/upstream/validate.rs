//! From a create request to what the owner takes: every field is held against its limit, and what is
//! beyond it is named with field, value and limit.

use bytes::Bytes;
use coordinator::owner::{CreateTask, Key};
use coordinator::surface::Placement;
use rest_contract::{
    Code, CreateRequest, DEFAULT_MAX_RETRIES, DEFAULT_PRIORITY, DEFAULT_START_TO_CLOSE_MS, MAX_LABELS, MAX_LIFE_MS,
    MAX_NAME_BYTES, MAX_PAYLOAD_BYTES, MAX_PRIORITY, MAX_RETRIES, MAX_TEXT_BYTES, Problem, parse_hash,
};
use task_core::decide::NewTask;
use task_events::{HashForm, PartitionId, Sampling, Sha256Hash, TaskCreated, TaskId, Text, Timeouts, TraceParent};

use super::meaning::{key_hash, request_hash};
use super::parameters::is_trace;
use crate::problems::bad_field;

/// Client and creator of whoever names none.
pub(crate) const DEFAULT_CLIENT: &str = "default";

/// What a request is read beside.
pub(super) struct Around<'a> {
    /// Wall clock, Unix ms.
    pub now: i64,
    /// Partitions of the topic.
    pub partitions: u16,
    /// Idempotency key.
    pub key: Option<Text>,
    /// Span of whoever asks, by the request's headers.
    pub caller: Option<TraceParent>,
    /// Span that what is created is part of.
    pub parent: Option<TraceParent>,
    /// Makes the trace to use if there is none.
    pub mint: &'a dyn Fn() -> Text,
    /// Pointer of the request inside the body.
    pub below: &'a str,
}

/// Checks a request and completes it.
pub(super) fn validate(request: CreateRequest, around: Around<'_>) -> Result<(CreateTask, Placement), Problem> {
    let field = |name: &str| format!("{}/{name}", around.below);
    let named = |name: &str, text: &Text| name_of(&field(name), text);
    named("task_type", &request.task_type)?;
    let queue = request.queue.unwrap_or_else(|| request.task_type.clone());
    named("queue", &queue)?;
    let creator = request.creator.unwrap_or_else(|| DEFAULT_CLIENT.into());
    named("creator", &creator)?;
    for (name, text) in [("business_key", &request.business_key), ("concurrency_key", &request.concurrency_key)] {
        text.as_ref().map_or(Ok(()), |text| named(name, text))?;
    }
    if request.labels.len() > MAX_LABELS {
        return Err(bad_field(&field("labels"), request.labels.len(), &format!("at most {MAX_LABELS} labels")));
    }
    for (label, value) in &request.labels {
        name_of(&field(&format!("labels/{}", crate::json::escaped(label))), label)?;
        text_within(&field(&format!("labels/{}", crate::json::escaped(label))), value, MAX_NAME_BYTES)?;
    }
    let priority = request.priority.unwrap_or(DEFAULT_PRIORITY);
    if priority > MAX_PRIORITY {
        return Err(bad_field(&field("priority"), priority, &format!("0 to {MAX_PRIORITY}")));
    }
    let max_retries = request.max_retries.unwrap_or(DEFAULT_MAX_RETRIES);
    if max_retries > MAX_RETRIES {
        return Err(bad_field(&field("max_retries"), max_retries, &format!("0 to {MAX_RETRIES}")));
    }
    let asked = request.timeouts.unwrap_or_default();
    let timeouts = Timeouts {
        start_to_close_ms: asked.start_to_close_ms.unwrap_or(DEFAULT_START_TO_CLOSE_MS),
        schedule_to_start_ms: asked.schedule_to_start_ms,
    };
    lasts(&field("timeouts/start_to_close_ms"), timeouts.start_to_close_ms)?;
    timeouts.schedule_to_start_ms.map_or(Ok(()), |ms| lasts(&field("timeouts/schedule_to_start_ms"), ms))?;
    times(&field, request.not_before, request.deadline, around.now, around.key.is_some())?;

    let beside = request.same_partition_as.as_ref().map(|text| beside(&field, text, around.partitions)).transpose()?;
    let of_caller = around.caller.map(|caller| Text::from(caller.trace_id.to_string()));
    let given = request.trace_id.clone().or_else(|| of_caller.clone());
    if let Some(trace) = request.trace_id.as_ref().filter(|trace| !is_trace(trace)) {
        return Err(bad_field(&field("trace_id"), trace.as_str(), "32 lower-case hexadecimal digits, not all 0"));
    }
    let declared = request.payload_hash.as_ref().map(|text| {
        parse_hash(text).map_err(|_| bad_field(&field("payload_hash"), text.as_str(), "64 hexadecimal digits"))
    });
    let (payload, payload_hash) = match (&request.payload, &request.payload_ref) {
        (Some(payload), None) => {
            let bytes = Bytes::copy_from_slice(payload.get().as_bytes());
            payload_within(&field("payload"), bytes.len())?;
            let hash = Sha256Hash::of(&bytes);
            if let Some(declared) = declared.transpose()?.filter(|declared| *declared != hash) {
                let must = format!("the SHA-256 of the payload as sent, {hash}");
                return Err(bad_field(&field("payload_hash"), declared.to_string(), &must));
            }
            (Some(bytes), hash)
        }
        (None, Some(place)) => {
            text_within(&field("payload_ref"), place, MAX_TEXT_BYTES)?;
            if place.is_empty() {
                return Err(bad_field(&field("payload_ref"), "", &format!("1 to {MAX_TEXT_BYTES} bytes")));
            }
            let missing = || missing(&field("payload_hash"), "payload_ref needs the payload_hash of what lies there");
            (None, declared.transpose()?.ok_or_else(missing)?)
        }
        (Some(_), Some(place)) => {
            return Err(bad_field(&field("payload_ref"), place.as_str(), "absent beside payload: one of the two"));
        }
        (None, None) => return Err(missing(&field("payload"), "one of payload and payload_ref is required")),
    };
    let mut created = TaskCreated {
        task_type: request.task_type,
        queue,
        creator,
        priority,
        deadline: request.deadline,
        not_before: request.not_before,
        payload_hash,
        hash_form: HashForm::PlainSha256,
        payload_ref: request.payload_ref,
        business_key: request.business_key,
        labels: request.labels,
        concurrency_key: request.concurrency_key,
        timeouts,
        max_retries,
        trace_given: given.is_some(),
        key_hash: None,
        request_hash: None,
    };
    let key = around
        .key
        .as_ref()
        .map(|key| Key { key_hash: key_hash(&created.creator, key), request_hash: request_hash(&created, beside) });
    created.key_hash = key.map(|key| key.key_hash);
    created.request_hash = key.map(|key| key.request_hash);
    let placement = Placement { same_partition_as: beside, key_hash: created.key_hash };
    // A caller that does not record its trace says nothing of another one.
    let sampling = around.caller.filter(|_| given == of_caller).map_or(Sampling::default(), |caller| caller.sampling);
    let trace_id = given.unwrap_or_else(around.mint);
    let task = NewTask { created, trace_id, sampling };
    Ok((CreateTask { task, key, payload, parent: around.parent }, placement))
}

/// A name: not empty, not too long, without control characters (names stand in logs and tables).
pub(crate) fn name_of(field: &str, text: &Text) -> Result<(), Problem> {
    if text.is_empty() {
        return Err(bad_field(field, "", &format!("1 to {MAX_NAME_BYTES} bytes")));
    }
    text_within(field, text, MAX_NAME_BYTES)?;
    if text.chars().any(char::is_control) {
        return Err(bad_field(field, text.as_str(), "without control characters"));
    }
    Ok(())
}

/// A text of at most so many bytes.
pub(crate) fn text_within(field: &str, text: &str, limit: usize) -> Result<(), Problem> {
    if text.len() <= limit {
        return Ok(());
    }
    let problem = bad_field(field, text, &format!("at most {limit} bytes"));
    Err(Problem { detail: format!("{field} has {} bytes, the limit is {limit}", text.len()), ..problem })
}

fn payload_within(field: &str, size: usize) -> Result<(), Problem> {
    if size <= MAX_PAYLOAD_BYTES {
        return Ok(());
    }
    let text = format!(
        "{field} has {size} bytes, the limit is {MAX_PAYLOAD_BYTES}; store it elsewhere and name it by payload_ref"
    );
    Err(Problem::new(Code::PayloadTooLarge, text).field(field).value(size).limit(MAX_PAYLOAD_BYTES))
}

fn missing(field: &str, why: &str) -> Problem {
    Problem::new(Code::InvalidField, format!("{field} is missing: {why}")).field(field)
}

fn lasts(field: &str, ms: u64) -> Result<(), Problem> {
    if (1..=MAX_LIFE_MS).contains(&ms) { Ok(()) } else { Err(bad_field(field, ms, &format!("1 to {MAX_LIFE_MS} ms"))) }
}

// A task lives 30 days at most: what lies beyond could never happen.
fn times(
    field: &impl Fn(&str) -> String,
    not_before: Option<i64>,
    deadline: Option<i64>,
    now: i64,
    keyed: bool,
) -> Result<(), Problem> {
    let last = now.saturating_add_unsigned(MAX_LIFE_MS);
    if let Some(at) = not_before.filter(|at| *at < 0 || *at > last) {
        let must = format!("0 to {last}, at most 30 days ahead (Unix ms)");
        return Err(bad_field(&field("not_before"), at, &must));
    }
    let Some(at) = deadline else { return Ok(()) };
    // What a key was given for may exist since before the deadline: the owner looks it up first.
    if at <= now && !keyed || at > last {
        return Err(late(&field("deadline"), at, now));
    }
    match not_before.filter(|begin| *begin >= at) {
        Some(begin) => Err(bad_field(&field("deadline"), at, &format!("after not_before, {begin}"))),
        None => Ok(()),
    }
}

/// A deadline that is none.
pub(super) fn late(field: &str, at: i64, now: i64) -> Problem {
    let last = now.saturating_add_unsigned(MAX_LIFE_MS);
    bad_field(field, at, &format!("after now, {now}, and at most 30 days ahead, {last} (Unix ms)"))
}

fn beside(field: &impl Fn(&str) -> String, text: &Text, partitions: u16) -> Result<TaskId, Problem> {
    let task: Option<TaskId> = text.parse().ok();
    let last = partitions.saturating_sub(1);
    task.filter(|task| task.partition() <= PartitionId(last)).ok_or_else(|| {
        bad_field(&field("same_partition_as"), text.as_str(), &format!("the id of a task of partitions 0 to {last}"))
    })
}
