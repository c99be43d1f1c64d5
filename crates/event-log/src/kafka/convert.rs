//! Between librdkafka's messages and the port's records.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use rdkafka::Message;
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Header, Headers, OwnedHeaders};
use rdkafka::types::RDKafkaErrorCode;
use task_events::{Offset, PartitionId};

use crate::{LogError, OutRecord, RawRecord};

pub(super) fn headers_of(record: &OutRecord) -> OwnedHeaders {
    let empty = OwnedHeaders::new_with_capacity(record.headers.len());
    record
        .headers
        .iter()
        .fold(empty, |headers, (key, value)| headers.insert(Header { key, value: Some(value.as_ref()) }))
}

/// Copies a message out of the client's memory. `None` when it has no offset or partition of ours.
pub(super) fn record_of(message: &BorrowedMessage<'_>) -> Option<RawRecord> {
    let partition = PartitionId(u16::try_from(message.partition()).ok()?);
    let offset = Offset(u64::try_from(message.offset()).ok()?);
    let headers = match message.headers() {
        Some(headers) => (0..headers.count()).map(|at| header_of(headers, at)).collect(),
        None => Vec::new(),
    };
    Some(RawRecord {
        partition,
        offset,
        broker_ms: message.timestamp().to_millis().unwrap_or(0),
        key: message.key().map(Bytes::copy_from_slice),
        headers,
        value: message.payload().map(Bytes::copy_from_slice),
    })
}

/// The binding panics on a header name that isn't UTF-8, which any foreign writer can send; such
/// a header becomes a nameless one, so that the record is judged like any other.
fn header_of<H: Headers>(headers: &H, at: usize) -> (String, Bytes) {
    let read = || {
        headers
            .try_get(at)
            .map(|header| (header.key.to_owned(), Bytes::copy_from_slice(header.value.unwrap_or_default())))
    };
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Some(header)) => header,
        Ok(None) | Err(_) => ("\u{fffd}".to_owned(), Bytes::new()),
    }
}

/// An error of a request that changes nothing: it may pass unless access is denied.
///
/// An unknown topic or partition may pass too: the topic was proved when the log was opened, and
/// the client says so of partitions it has when its broker was away for longer than its metadata
/// lives.
pub(super) fn error_of(what: &str, error: &KafkaError) -> LogError {
    let code = error.rdkafka_error_code();
    let denied = [
        RDKafkaErrorCode::TopicAuthorizationFailed,
        RDKafkaErrorCode::GroupAuthorizationFailed,
        RDKafkaErrorCode::ClusterAuthorizationFailed,
    ];
    if code.is_some_and(|code| denied.contains(&code)) {
        LogError::Refused(format!("{what}: {error}"))
    } else {
        LogError::Unavailable(format!("{what}: {error}"))
    }
}
