//! The contract of the topic `task-execution-events`: ids, envelope, kinds, codec and who may
//! write what. No I/O, no async, no clock; services and checkers alike build on it.

#[cfg(feature = "arbitrary-events")]
pub mod arbitrary;
mod bodies;
mod codec;
mod event;
mod ids;
mod json;
#[cfg(feature = "arbitrary-events")]
pub mod samples;
mod strict;
mod trace;

pub use bodies::*;
pub use codec::{
    EncodeError, Encoded, Encoder, MAX_VALUE_BYTES, Malformed, RecordParts, SCHEMA_ID, SCHEMA_JSON, SUPPORTED_RULES,
    decode, encode,
};
pub use event::*;
pub use ids::*;
pub use json::to_json;
pub use strict::DatumFault;
pub use trace::{MAX_TRACEPARENT_BYTES, Sampling, SpanId, TraceId, TraceParent};

/// Short text of a record: up to 24 bytes without an allocation.
pub type Text = compact_str::CompactString;
