//! Framed Avro bytes ⇄ [`Event`]: read by the strict rules of [`crate::strict`], written by
//! serde_avro_fast and held against the same rules before anything is appended.
//!
//! Every reader of the log uses [`decode`]; what it calls malformed is quarantined by all alike.

mod headers;

use std::sync::LazyLock;

use bytes::Bytes;
use serde_avro_fast::Schema;
use serde_avro_fast::ser::SerializerConfig;

use self::headers::Headers;
use crate::strict::{self, DatumFault, Node, Refused};
use crate::{Event, EventId, PartitionId, RecordKey, RuleVersion, Sampling};

/// The published schema, version [`SCHEMA_ID`].
pub const SCHEMA_JSON: &str = include_str!("../../../schemas/task-execution-event.avsc");
/// Number of the `.avsc` version that this binary writes.
pub const SCHEMA_ID: u32 = 1;
/// Newest acceptance rules this binary knows; it reads 1..=N.
pub const SUPPORTED_RULES: RuleVersion = RuleVersion(if cfg!(feature = "rules-next") { 2 } else { 1 });
/// Largest framed value, bytes (design.md §3: 2 MiB).
pub const MAX_VALUE_BYTES: usize = 2 * 1024 * 1024;

const FRAME: usize = 5;

struct Compiled {
    schema: Schema,
    walk: Node,
}

// Both are built from the compiled-in text, so a failure here is a broken build that the first
// unit test of this file shows.
static V1: LazyLock<Compiled> = LazyLock::new(|| Compiled {
    schema: SCHEMA_JSON.parse().expect("compiled-in schema parses"),
    walk: Node::compile(&serde_json::from_str(SCHEMA_JSON).expect("compiled-in schema is JSON"))
        .expect("compiled-in schema uses known types"),
});

/// Why every reader quarantines a record. Checked in the order of the variants
/// (`schemas/decoding.md` §2), so that all readers name the same reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// No value, or an empty one.
    #[error("no_value")]
    NoValue,
    /// Value above [`MAX_VALUE_BYTES`].
    #[error("too_large")]
    TooLarge,
    /// Header `crc32c` missing, repeated or not 8 lower-case hex digits.
    #[error("crc_missing")]
    CrcMissing,
    /// Header `crc32c` does not match the value.
    #[error("crc_mismatch")]
    CrcMismatch,
    /// Not a Confluent frame: shorter than 5 bytes or first byte not 0.
    #[error("framing")]
    Framing,
    /// Schema id not known or not active.
    #[error("unknown_schema")]
    UnknownSchema(u32),
    /// Not exactly one strict datum.
    #[error("datum_{0}")]
    Datum(DatumFault),
    /// Envelope kind and body differ.
    #[error("kind_mismatch")]
    KindMismatch,
    /// Header `kind` or `rule-version` missing, repeated or different from the envelope.
    #[error("header_mismatch")]
    HeaderMismatch,
}

impl Malformed {
    /// The reason's name, as in `schemas/decoding.md`, in metrics and in the quarantine.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoValue => "no_value",
            Self::TooLarge => "too_large",
            Self::CrcMissing => "crc_missing",
            Self::CrcMismatch => "crc_mismatch",
            Self::Framing => "framing",
            Self::UnknownSchema(_) => "unknown_schema",
            Self::Datum(fault) => fault.reason(),
            Self::KindMismatch => "kind_mismatch",
            Self::HeaderMismatch => "header_mismatch",
        }
    }
}

/// A record's parts as they lie in the log.
#[derive(Debug, Clone, Copy)]
pub struct RecordParts<'a, H> {
    /// Headers in order.
    pub headers: H,
    /// Value; `None` for a tombstone.
    pub value: Option<&'a [u8]>,
}

/// Reads one record. Any byte sequence gives an event or a reason, never a panic, and no length in
/// it is trusted: an honest record allocates less than twice its size, the worst one (a list of
/// empty texts) at most 80 times, for as long as it is read (`fuzz-log` holds it to that).
pub fn decode<'a, H>(parts: RecordParts<'a, H>) -> Result<Event, Malformed>
where
    H: IntoIterator<Item = (&'a str, &'a [u8])>,
{
    let value = parts.value.filter(|v| !v.is_empty()).ok_or(Malformed::NoValue)?;
    if value.len() > MAX_VALUE_BYTES {
        return Err(Malformed::TooLarge);
    }
    let headers = Headers::read(parts.headers);
    let stated = headers.crc().ok_or(Malformed::CrcMissing)?;
    if stated != crc32c::crc32c(value) {
        return Err(Malformed::CrcMismatch);
    }
    let (frame, datum) = value.split_at_checked(FRAME).ok_or(Malformed::Framing)?;
    if frame[0] != 0 {
        return Err(Malformed::Framing);
    }
    let id = u32::from_be_bytes([frame[1], frame[2], frame[3], frame[4]]);
    if id != SCHEMA_ID {
        return Err(Malformed::UnknownSchema(id));
    }
    let event: Event = strict::read(&V1.walk, datum).map_err(|refused| match refused {
        Refused::Fault(fault) => Malformed::Datum(fault),
        Refused::Types => {
            debug_assert!(false, "schema and types disagree");
            Malformed::Datum(DatumFault::Range)
        }
    })?;
    if event.kind != event.body.kind() {
        return Err(Malformed::KindMismatch);
    }
    if headers.fit(&event) { Ok(event) } else { Err(Malformed::HeaderMismatch) }
}

/// A record ready to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Record key.
    pub key: Bytes,
    /// Headers in wire order.
    pub headers: Vec<(&'static str, Bytes)>,
    /// Framed value.
    pub value: Bytes,
    /// Identity by which the writer recognises its record when it is read back.
    pub event_id: EventId,
}

/// Encodes events; keeps its buffers between calls.
pub struct Encoder {
    config: SerializerConfig<'static>,
    capacity: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder of the schema version that this binary writes.
    pub fn new() -> Self {
        Self { config: SerializerConfig::new(&V1.schema), capacity: 256 }
    }

    /// The record for `event` in `partition`. What readers would call malformed is refused here,
    /// before anything is appended: a value above [`MAX_VALUE_BYTES`] (the limits at the edge keep
    /// that from happening), a number outside its range, a kind that isn't the body's. The record of a
    /// task bears its trace context, with what its caller said about `sampling`.
    pub fn encode(
        &mut self,
        event: &Event,
        partition: PartitionId,
        sampling: Sampling,
    ) -> Result<Encoded, EncodeError> {
        if event.kind != event.body.kind() {
            return Err(EncodeError::Schema(format!("kind {} with a body of {}", event.kind, event.body.kind())));
        }
        let mut value = Vec::with_capacity(self.capacity);
        value.push(0);
        value.extend_from_slice(&SCHEMA_ID.to_be_bytes());
        let value = serde_avro_fast::to_datum(event, value, &mut self.config)
            .map_err(|e| EncodeError::Schema(e.to_string()))?;
        if value.len() > MAX_VALUE_BYTES {
            return Err(EncodeError::TooLarge { kind: event.kind.as_str(), size: value.len() });
        }
        // serde_avro_fast knows no `minimum` and `maximum`.
        strict::check(&V1.walk, &value[FRAME..])
            .map_err(|fault| EncodeError::Schema(format!("{}: {fault}", event.kind)))?;
        self.capacity = self.capacity.max(value.len().next_power_of_two().min(4096));
        let headers = headers::write(event, &value, sampling);
        Ok(Encoded {
            key: RecordKey::of(event, partition).to_bytes(),
            headers,
            value: value.into(),
            event_id: event.event_id,
        })
    }
}

/// Encodes one event with fresh buffers, its trace recorded; a writer of many keeps an [`Encoder`].
pub fn encode(event: &Event, partition: PartitionId) -> Result<Encoded, EncodeError> {
    Encoder::new().encode(event, partition, Sampling::Recorded)
}

/// Why an event cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A field outside its type; a defect of the writer.
    #[error("event does not fit the schema: {0}")]
    Schema(String),
    /// Larger than a record may be.
    #[error("{kind} of {size} bytes exceeds the record limit of {} bytes", MAX_VALUE_BYTES)]
    TooLarge {
        /// Kind of the event.
        kind: &'static str,
        /// Size of the framed value.
        size: usize,
    },
}
