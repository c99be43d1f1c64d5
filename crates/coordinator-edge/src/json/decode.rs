//! From a checked JSON text to a body of the contract; what does not fit is named by its field.

use rest_contract::{Code, MAX_LIFE_MS, MAX_PRIORITY, MAX_RETRIES, Problem};
use serde::Deserialize;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

/// Decodes a text that [`super::check`] let pass. `below` is the pointer of the text itself, where it
/// is part of a larger one.
///
/// # Errors
/// `unknown_field` or `invalid_field`, with the field's pointer, its value, and the limit if it has one.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8], below: &str) -> Result<T, Problem> {
    object(bytes, below)?;
    let mut from = serde_json::Deserializer::from_slice(bytes);
    serde_path_to_error::deserialize(&mut from).map_err(|why| explain(bytes, below, &why))
}

// What serde derives would take an array for an object, its items for the fields in their order.
fn object(bytes: &[u8], below: &str) -> Result<(), Problem> {
    let found = match bytes.trim_ascii_start().first() {
        Some(b'{') => return Ok(()),
        Some(b'[') => "an array",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        Some(_) | None => "a number",
    };
    let named = if below.is_empty() { "the body" } else { below };
    let text = format!("{named} is {found}, it must be an object");
    Err(Problem::new(Code::InvalidField, text).field(below).limit("an object"))
}

/// A key as it stands in a JSON pointer (RFC 6901).
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn explain(bytes: &[u8], below: &str, why: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let said = why.inner().to_string();
    // The position that serde_json adds is one inside a line nobody wrote by hand.
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
    let inner = pointer_of(why.path());
    if let Some(name) = quoted(said, "unknown field `") {
        // The path ends at the field or at what holds it, depending on who noticed.
        let inner =
            if inner.ends_with(&format!("/{}", escaped(name))) { inner } else { format!("{inner}/{}", escaped(name)) };
        let pointer = format!("{below}{inner}");
        return Problem::new(Code::UnknownField, format!("{pointer} is not known: {said}")).field(pointer);
    }
    let missing = quoted(said, "missing field `");
    let inner = missing.map_or(inner.clone(), |name| format!("{inner}/{}", escaped(name)));
    let pointer = format!("{below}{inner}");
    let value = serde_json::from_slice::<Value>(bytes).ok().and_then(|all| all.pointer(&inner).cloned());
    let named = if pointer.is_empty() { "the body" } else { &pointer };
    let mut problem = Problem::new(Code::InvalidField, format!("{named}: {said}")).field(pointer.clone());
    if let Some(limit) = limit_of(&inner, said) {
        problem.detail = format!("{}; {limit} is what it may be", problem.detail);
        problem = problem.limit(limit);
    }
    match value.filter(|_| missing.is_none()) {
        Some(Value::Object(_) | Value::Array(_)) | None => problem,
        Some(value) => problem.value(value),
    }
}

fn pointer_of(path: &Path) -> String {
    let mut out = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => out.push_str(&format!("/{index}")),
            Segment::Map { key } => out.push_str(&format!("/{}", escaped(key))),
            Segment::Enum { variant } => out.push_str(&format!("/{}", escaped(variant))),
            Segment::Unknown => {}
        }
    }
    out
}

fn quoted<'a>(said: &'a str, before: &str) -> Option<&'a str> {
    let rest = said.strip_prefix(before)?;
    rest.rfind("`, ").or_else(|| rest.rfind('`')).and_then(|_| rest.split('`').next())
}

// A number that does not even fit its type is held against the field's own limit.
fn limit_of(pointer: &str, said: &str) -> Option<String> {
    if !said.starts_with("invalid value: integer") && !said.starts_with("invalid type: floating") {
        return None;
    }
    let (low, high) = match pointer.rsplit('/').next().unwrap_or_default() {
        "priority" => (0, u64::from(MAX_PRIORITY)),
        "max_retries" => (0, u64::from(MAX_RETRIES)),
        "start_to_close_ms" | "schedule_to_start_ms" => (1, MAX_LIFE_MS),
        "memory_usage_percent" => (0, 100),
        _ => return None,
    };
    Some(format!("{low} to {high}"))
}

#[cfg(test)]
mod tests {
    use rest_contract::{CreateRequest, ReplayRequest};

    use super::*;

    fn refused(text: &str) -> Problem {
        decode::<CreateRequest>(text.as_bytes(), "").expect_err("it is refused")
    }

    #[test]
    fn payload_bytes_stay_as_they_are() {
        let text = r#"{"task_type":"t","payload": {"n" : 9223372036854775808, "x":0.10000000000000000555 } }"#;
        let create: CreateRequest = decode(text.as_bytes(), "").expect("it is read");
        let payload = create.payload.expect("a payload");
        assert_eq!(payload.get(), r#"{"n" : 9223372036854775808, "x":0.10000000000000000555 }"#);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let problem = refused(r#"{"task_type":"t","prio":1}"#);
        assert_eq!((problem.code, problem.field.as_deref()), (Code::UnknownField, Some("/prio")));
        let problem = refused(r#"{"task_type":"t","timeouts":{"a/b":1}}"#);
        assert_eq!((problem.code, problem.field.as_deref()), (Code::UnknownField, Some("/timeouts/a~1b")));
        let problem = refused(r#"{"payload":1}"#);
        assert_eq!((problem.code, problem.field.as_deref()), (Code::InvalidField, Some("/task_type")));
        let problem = refused(r#"{"task_type":"t","timeouts":{"start_to_close_ms":-5}}"#);
        assert_eq!(problem.field.as_deref(), Some("/timeouts/start_to_close_ms"));
        assert_eq!((problem.value, problem.limit), (Some((-5).into()), Some("1 to 2592000000".into())));
        let problem = refused(r#"{"task_type":"t","priority":300}"#);
        assert_eq!((problem.field.as_deref(), problem.limit), (Some("/priority"), Some("0 to 9".into())));
        let problem = refused(r#"{"task_type":7}"#);
        assert_eq!((problem.field.as_deref(), problem.value), (Some("/task_type"), Some(7.into())));
        for text in ["[]", r#"["t",{"x":1},null,null,"q"]"#, "null", " 7", "true", r#""t""#] {
            let problem = refused(text);
            assert_eq!((problem.code, problem.field.as_deref()), (Code::InvalidField, Some("")), "{text}");
            assert!(problem.detail.ends_with("it must be an object"), "{text}: {}", problem.detail);
        }
        let problem = decode::<ReplayRequest>(br#"{"run_no":1,"from":"MIDDLE"}"#, "").expect_err("it is refused");
        assert_eq!(problem.field.as_deref(), Some("/from"));
    }
}
