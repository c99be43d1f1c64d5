//! How values that JSON has no type for stand in it. Each form is a type of its own: `#[serde(with = "…")]`
//! writes and reads a field by it, and the document of the API takes the field's schema from it, so that
//! the two cannot differ.

mod limited;
pub(crate) mod objects;
mod symbols;

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Deserializer, Serializer};
use task_events::{ExecutionId, Incarnation, Sha256Hash, TaskId};

use crate::limits::MAX_PAYLOAD_BYTES;

pub use limited::{Label, Name, Note, Trace};
pub use symbols::{Category, Decision, KindName, ResumeFrom, Skipped, State};

/// Why a text is no hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not 64 hexadecimal digits")]
pub struct BadHash(pub String);

/// Reads 64 hexadecimal digits.
///
/// # Errors
/// Names the text, cut to 80 characters.
pub fn parse_hash(text: &str) -> Result<Sha256Hash, BadHash> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).map_err(|_| BadHash(text.chars().take(80).collect()))?;
    Ok(Sha256Hash(bytes))
}

/// A form whose schema stands where it is used.
macro_rules! form {
    ($(#[$doc:meta])* $name:ident, $schema:expr) => {
        $(#[$doc])*
        pub enum $name {}

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let schema: fn(&mut SchemaGenerator) -> Schema = $schema;
                schema(generator)
            }
        }
    };
}
pub(crate) use form;

form!(
    /// The id of a task: a decimal number as a string, since JavaScript rounds beyond 2^53.
    TaskIdText,
    |_| json_schema!({ "type": "string", "pattern": "^[1-9][0-9]{0,18}$", "examples": ["7286041358598144"] })
);
form!(
    /// The identity of an attempt: a UUID.
    ExecutionText,
    |_| json_schema!({ "type": "string", "format": "uuid" })
);
form!(
    /// A list of the same.
    ExecutionTexts,
    |g| json_schema!({ "type": "array", "items": ExecutionText::json_schema(g) })
);
form!(
    /// A process of a worker: a decimal number as a string.
    IncarnationText,
    |_| json_schema!({ "type": "string", "pattern": "^[0-9]{1,19}$", "examples": ["1764479000123"] })
);
form!(
    /// The same where there may be none.
    IncarnationOpt,
    |g| g.subschema_for::<Option<IncarnationText>>()
);
form!(
    /// SHA-256: 64 hexadecimal digits, in answers in lower case.
    HashText,
    |_| json_schema!({ "type": "string", "pattern": "^[0-9a-fA-F]{64}$" })
);
form!(
    /// The same where there may be none.
    HashOpt,
    |g| g.subschema_for::<Option<HashText>>()
);
form!(
    /// Bytes as Base64 (RFC 4648, with padding), at most as many as a payload may have.
    Base64,
    |_| json_schema!({
        "type": "string", "contentEncoding": "base64", "maxLength": MAX_PAYLOAD_BYTES.div_ceil(3) * 4,
    })
);

fn show<T: Display, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(value)
}

fn read<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
    Cow::<'de, str>::deserialize(d)?.parse().map_err(D::Error::custom)
}

fn show_some<T: Display, S: Serializer>(value: Option<&T>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.collect_str(value),
        None => s.serialize_none(),
    }
}

impl TaskIdText {
    pub(crate) fn serialize<S: Serializer>(value: &TaskId, s: S) -> Result<S::Ok, S::Error> {
        show(value, s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<TaskId, D::Error> {
        read(d)
    }
}

impl ExecutionText {
    pub(crate) fn serialize<S: Serializer>(value: &ExecutionId, s: S) -> Result<S::Ok, S::Error> {
        show(value, s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<ExecutionId, D::Error> {
        read(d)
    }
}

impl ExecutionTexts {
    pub(crate) fn serialize<S: Serializer>(values: &[ExecutionId], s: S) -> Result<S::Ok, S::Error> {
        let mut list = s.serialize_seq(Some(values.len()))?;
        values.iter().try_for_each(|value| list.serialize_element(&format_args!("{value}")))?;
        list.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<ExecutionId>, D::Error> {
        let texts = Vec::<String>::deserialize(d)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

// Incarnations have no `FromStr` of their own.
impl IncarnationText {
    pub(crate) fn serialize<S: Serializer>(value: &Incarnation, s: S) -> Result<S::Ok, S::Error> {
        show(value, s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Incarnation, D::Error> {
        let text = Cow::<'de, str>::deserialize(d)?;
        let number = text.parse::<i64>().ok().filter(|n| *n >= 0);
        number.map(Incarnation).ok_or_else(|| D::Error::custom(format!("{text:?} is no incarnation: a decimal number")))
    }
}

impl IncarnationOpt {
    pub(crate) fn serialize<S: Serializer>(value: &Option<Incarnation>, s: S) -> Result<S::Ok, S::Error> {
        show_some(value.as_ref(), s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Incarnation>, D::Error> {
        #[derive(Deserialize)]
        struct Present(#[serde(with = "IncarnationText")] Incarnation);
        Ok(Option::<Present>::deserialize(d)?.map(|present| present.0))
    }
}

impl HashText {
    pub(crate) fn serialize<S: Serializer>(value: &Sha256Hash, s: S) -> Result<S::Ok, S::Error> {
        show(value, s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Sha256Hash, D::Error> {
        parse_hash(&Cow::<'de, str>::deserialize(d)?).map_err(D::Error::custom)
    }
}

impl HashOpt {
    pub(crate) fn serialize<S: Serializer>(value: &Option<Sha256Hash>, s: S) -> Result<S::Ok, S::Error> {
        show_some(value.as_ref(), s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Sha256Hash>, D::Error> {
        let text = Option::<String>::deserialize(d)?;
        text.map(|text| parse_hash(&text).map_err(D::Error::custom)).transpose()
    }
}

impl Base64 {
    pub(crate) fn serialize<S: Serializer>(value: &Bytes, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&base64::display::Base64Display::new(value, &BASE64_STANDARD))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
        let text = Cow::<'de, str>::deserialize(d)?;
        let decoded = BASE64_STANDARD.decode(text.as_bytes());
        decoded.map(Bytes::from).map_err(|why| D::Error::custom(format!("is no Base64: {why}")))
    }
}

/// A JSON text that may be `null`, which is a value like any other and not the field's absence.
pub(crate) fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Box<serde_json::value::RawValue>>, D::Error> {
    Deserialize::deserialize(d).map(Some)
}
