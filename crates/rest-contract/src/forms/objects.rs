//! Objects inside bodies: JSON objects and nothing else. Derived code would take an array for one as well,
//! its items for the fields in their order, which nobody means and the document of the API does not allow.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }
        from.deserialize_map(Fields(PhantomData)).map(Object)
    }
}

/// One object.
///
/// # Errors
/// It is none, or does not fit.
pub(crate) fn one<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Object::deserialize(from).map(|Object(object)| object)
}

/// An object, or null.
///
/// # Errors
/// As of [`one`].
pub(crate) fn maybe<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(Option::deserialize(from)?.map(|Object(object)| object))
}

/// A list of objects.
///
/// # Errors
/// As of [`one`], for any of them.
pub(crate) fn all<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    let objects: Vec<Object<T>> = Vec::deserialize(from)?;
    Ok(objects.into_iter().map(|Object(object)| object).collect())
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use crate::{CreateBatch, CreateRequest, HeartbeatRequest, ReportsRequest, ResultRequest};

    fn refused<T: DeserializeOwned>(text: &str) {
        let why = serde_json::from_str::<T>(text).err().unwrap_or_else(|| panic!("{text} is taken"));
        assert!(why.to_string().contains("expected an object"), "{text}: {why}");
    }

    #[test]
    fn an_array_is_no_object_at_any_depth() {
        let attempt = r#""execution_id":"00000000-0000-8000-8000-000000000000","exec_epoch":1,"attempt_token":"t","worker_id":"w""#;
        let step = format!(r#"["s",0,"{}",true]"#, "0".repeat(64));
        refused::<CreateRequest>(r#"{"task_type":"t","timeouts":[1,2]}"#);
        refused::<CreateBatch>(r#"{"tasks":[["t"]]}"#);
        refused::<HeartbeatRequest>(&format!(
            r#"{{{attempt},"incarnation":"7","memory_usage_percent":1,"step_in_progress":["s",true]}}"#
        ));
        refused::<ResultRequest>(&format!(r#"{{"task_id":"1",{attempt},"steps_done":[{step}]}}"#));
        for list in ["payloads", "reports", "heartbeats"] {
            refused::<ReportsRequest>(&format!(r#"{{"{list}":[[]]}}"#));
        }
        for report in [
            r#"["STARTING",1,2]"#.to_owned(),
            format!(r#"{{"kind":"STEP","done":{step}}}"#),
            format!(r#"{{"kind":"SUCCESS","steps_done":[{step}]}}"#),
        ] {
            refused::<ReportsRequest>(&format!(r#"{{"reports":[{{"run_no":1,{attempt},"report":{report}}}]}}"#));
        }
        let none: CreateRequest = serde_json::from_str(r#"{"task_type":"t","timeouts":null}"#).expect("none are given");
        assert!(none.timeouts.is_none());
    }
}
