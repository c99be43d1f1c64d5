//! Payloads, read and written. Writes are bounded in time: a worker sends again what was not stored.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::response::Response;
use bytes::Bytes;
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{Code, MAX_PAYLOAD_BYTES, PayloadBody, PayloadName, Problem, parse_hash};
use service_kit::{Clock, within};
use snapshot_store::{PayloadItem, SnapshotStore, StoreError};
use task_events::{Sha256Hash, TaskId, Text};

use super::fields;
use crate::Edge;
use crate::problems::Answered;

/// Longest wait for the store, ms.
const STORE_MS: u64 = 2_000;

/// `GET …/payload?item=…`: the bytes as they were stored. All but the texts of errors are named by their
/// hash, as the log has it.
pub(super) async fn read<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(
    State(edge): State<Edge<L, S, C, P>>,
    path: fields::PathText,
    uri: Uri,
) -> Answered {
    let task = fields::task(path)?;
    let [item, step, hash] = fields::query(&uri, ["item", "step", "hash"])?;
    let item = item.unwrap_or_default();
    let unknown = || {
        let all = PayloadName::ALL.map(|name| name.as_str()).join(", ");
        fields::parameter("item", &item, &format!("is none of {all}"))
    };
    let name = PayloadName::named(&item).ok_or_else(unknown)?;
    let hash = hash.map(|text| parse_hash(&text).map_err(|why| fields::parameter("hash", &text, &why.to_string())));
    let as_parameter =
        |p: Problem| Problem { code: Code::InvalidParameter, status: Code::InvalidParameter.status(), ..p };
    let item = item_of("", &name, step.map(Text::from), hash.transpose()?).map_err(as_parameter)?;
    match bounded(&edge, edge.store.payload(task, item)).await? {
        Some(bytes) => {
            let mut response = Response::new(Body::from(bytes));
            let kind = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            Ok(response)
        }
        None => {
            let text = format!("task {task} has no such payload in the store");
            edge.metrics.alarm("payload_missing", text.clone());
            Err(Problem::new(Code::PayloadMissing, text).fact("task_id", task.to_string()).into())
        }
    }
}

/// A payload of a batch, checked.
pub(super) fn checked(below: &str, body: PayloadBody) -> Result<(TaskId, PayloadItem, Bytes), Problem> {
    if body.item == PayloadName::Parameters {
        return Err(fields::invalid(format!("{below}/item"), "is the creator's, workers do not write it"));
    }
    let made = match body.item {
        PayloadName::Step | PayloadName::Result => Some(Sha256Hash::of(&body.data)),
        PayloadName::Parameters | PayloadName::ErrorText => None,
    };
    let item = item_of(below, &body.item, body.step, made)?;
    if body.data.len() > MAX_PAYLOAD_BYTES {
        return Err(too_large(format!("{below}/data"), body.data.len()));
    }
    Ok((body.task_id, item, body.data))
}

/// A payload that is too large.
pub(super) fn too_large(pointer: String, size: usize) -> Problem {
    let text = format!("{pointer} has {size} bytes, the limit is {MAX_PAYLOAD_BYTES}");
    Problem::new(Code::PayloadTooLarge, text).field(pointer).value(size).limit(MAX_PAYLOAD_BYTES)
}

fn item_of(
    below: &str,
    name: &PayloadName,
    step: Option<Text>,
    hash: Option<Sha256Hash>,
) -> Result<PayloadItem, Problem> {
    let (of_step, of_hash) = (format!("{below}/step"), format!("{below}/hash"));
    let missing = |pointer, item| fields::invalid(pointer, &format!("is missing beside the item {item}"));
    match (name, step, hash) {
        (PayloadName::Step, Some(step), Some(output_hash)) => {
            fields::name(&of_step, &step)?;
            Ok(PayloadItem::StepOutput { step, output_hash })
        }
        (PayloadName::Step, None, _) => Err(missing(of_step, "step")),
        (PayloadName::Step, Some(_), None) => Err(missing(of_hash, "step")),
        (PayloadName::Parameters | PayloadName::Result | PayloadName::ErrorText, Some(step), _) => {
            Err(fields::invalid(of_step, "stands only beside the item step").value(step.as_str()))
        }
        (PayloadName::Parameters, None, Some(payload_hash)) => Ok(PayloadItem::Parameters { payload_hash }),
        (PayloadName::Result, None, Some(result_data_hash)) => Ok(PayloadItem::Result { result_data_hash }),
        (PayloadName::Parameters | PayloadName::Result, None, None) => Err(missing(of_hash, name.as_str())),
        (PayloadName::ErrorText, None, Some(hash)) => {
            let why = "does not stand beside the item error_text";
            Err(fields::invalid(of_hash, why).value(hash.to_string()))
        }
        (PayloadName::ErrorText, None, None) => Ok(PayloadItem::ErrorText),
    }
}

/// Stores payloads, all in one write.
///
/// # Errors
/// The store did not acknowledge them in time; any of them may be stored all the same.
pub(super) async fn store<L, S: SnapshotStore, C: Clock, P>(
    edge: &Edge<L, S, C, P>,
    items: Vec<(TaskId, PayloadItem, Bytes)>,
) -> Result<(), Problem> {
    if items.is_empty() {
        return Ok(());
    }
    bounded(edge, edge.store.put_payloads(items)).await
}

async fn bounded<L, S, C: Clock, P, T>(
    edge: &Edge<L, S, C, P>,
    asking: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Problem> {
    match within(&edge.clock, STORE_MS, asking).await {
        Some(Ok(done)) => Ok(done),
        Some(Err(why)) => Err(Problem::new(Code::StoreUnavailable, why.to_string())),
        None => {
            let text = format!("the store did not answer within {STORE_MS} ms");
            Err(Problem::new(Code::StoreUnavailable, text).limit(STORE_MS))
        }
    }
}
