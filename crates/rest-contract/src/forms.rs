//! Text forms of what JSON has no type for.

use task_events::Sha256Hash;

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

/// By `Display` and `FromStr`: ids, execution ids.
pub(crate) mod text {
    use std::borrow::Cow;
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<T: Display, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
        Cow::<'de, str>::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

/// Lists of the same.
pub(crate) mod texts {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de::Error, ser::SerializeSeq};

    pub fn serialize<T: Display, S: Serializer>(values: &[T], s: S) -> Result<S::Ok, S::Error> {
        let mut list = s.serialize_seq(Some(values.len()))?;
        values.iter().try_for_each(|value| list.serialize_element(&format_args!("{value}")))?;
        list.end()
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(d: D) -> Result<Vec<T>, D::Error> {
        let texts = Vec::<String>::deserialize(d)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

/// Incarnations, which have no `FromStr` of their own.
pub(crate) mod incarnation {
    use std::borrow::Cow;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use task_events::Incarnation;

    pub fn serialize<S: Serializer>(value: &Incarnation, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Incarnation, D::Error> {
        let text = Cow::<'de, str>::deserialize(d)?;
        let number = text.parse::<i64>().ok().filter(|n| *n >= 0);
        number.map(Incarnation).ok_or_else(|| D::Error::custom(format!("{text:?} is no incarnation: a decimal number")))
    }
}

/// The same where there may be none.
pub(crate) mod incarnation_opt {
    use serde::{Deserialize, Deserializer, Serializer};
    use task_events::Incarnation;

    pub fn serialize<S: Serializer>(value: &Option<Incarnation>, s: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => s.collect_str(value),
            None => s.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Incarnation>, D::Error> {
        #[derive(Deserialize)]
        struct Present(#[serde(with = "super::incarnation")] Incarnation);
        Ok(Option::<Present>::deserialize(d)?.map(|present| present.0))
    }
}

/// Hashes.
pub(crate) mod hash {
    use std::borrow::Cow;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use task_events::Sha256Hash;

    pub fn serialize<S: Serializer>(value: &Sha256Hash, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Sha256Hash, D::Error> {
        super::parse_hash(&Cow::<'de, str>::deserialize(d)?).map_err(D::Error::custom)
    }
}

/// A JSON text that may be `null`, which is a value like any other and not the field's absence.
pub(crate) fn present<'de, D: serde::Deserializer<'de>>(
    d: D,
) -> Result<Option<Box<serde_json::value::RawValue>>, D::Error> {
    serde::Deserialize::deserialize(d).map(Some)
}

/// Bytes as Base64.
pub(crate) mod bytes64 {
    use std::borrow::Cow;

    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &Bytes, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&base64::display::Base64Display::new(value, &BASE64_STANDARD))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
        let text = Cow::<'de, str>::deserialize(d)?;
        let decoded = BASE64_STANDARD.decode(text.as_bytes());
        decoded.map(Bytes::from).map_err(|why| D::Error::custom(format!("is no Base64: {why}")))
    }
}
