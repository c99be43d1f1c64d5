//! `docs/events.md`: every kind with its writer, where it is accepted, and its fields, from the
//! published schema and from the rules.

use serde_json::Value;
use task_events::{Kind, SCHEMA_ID, SCHEMA_JSON, writer_of};

use crate::{accepted_in, class_of};

const INTRODUCTION: &str = "\
# The events

Generated from `schemas/task-execution-event.avsc` and from the rules in `task-core` by `make docs`.

Each record of the topic `task-execution-events` is one event: Confluent framing, one Avro datum, headers `kind`,
`rule-version`, `traceparent` and `crc32c`, the task's id as the key ([decoding](../schemas/decoding.md)). Read it with any
Confluent-compatible deserializer and the coordinator's schema registry (`/schemas/ids/{id}`). A record counts only if the
fold accepts it: [what is accepted](acceptance.md), [the matrix](matrix.md).

";

/// The whole document.
///
/// # Panics
/// The compiled-in schema is not what its own tests hold it to.
pub fn event_reference() -> String {
    let schema: Value = serde_json::from_str(SCHEMA_JSON).expect("the published schema is JSON");
    let fields = schema["fields"].as_array().expect("a record");
    let mut out =
        format!("{INTRODUCTION}Schema version {SCHEMA_ID}.\n\n## The envelope\n{}\n", table(fields, Some("body")));
    let bodies = fields.iter().find(|f| f["name"] == "body").map(|f| &f["type"]).and_then(Value::as_array);
    let bodies = bodies.expect("body is a union");
    for &kind in Kind::ALL {
        let name = kind.to_string();
        let body = bodies.iter().find(|body| body["name"] == name.as_str()).expect("a body for every kind");
        let writer = writer_of(kind).as_str().to_lowercase().replace('_', "-");
        let doc = body["doc"].as_str().unwrap_or_default();
        out += &format!("## {name}\n{}. Written by {writer}; {}", sentence(doc), class_of(kind));
        out += &format!(", accepted in: {}.\n", accepted_in(kind));
        match body["fields"].as_array().filter(|fields| !fields.is_empty()) {
            Some(fields) => out += &format!("\n{}\n", table(fields, None)),
            None => out += "\nNo fields of its own.\n\n",
        }
    }
    out.trim_end().to_owned() + "\n"
}

fn table(fields: &[Value], without: Option<&str>) -> String {
    let mut out = String::from("| field | type | what |\n|---|---|---|\n");
    for field in fields.iter().filter(|f| f["name"].as_str() != without) {
        let (name, doc) = (field["name"].as_str().unwrap_or_default(), field["doc"].as_str().unwrap_or_default());
        out += &format!("| `{name}` | {} | {} |\n", shape(&field["type"]), doc.replace('|', "\\|"));
    }
    out
}

// A type as a reader wants it: null as a question mark, ranges, symbols, fields of records inside.
fn shape(of: &Value) -> String {
    match of {
        Value::String(name) => name.clone(),
        Value::Array(union) => {
            let some: Vec<String> = union.iter().filter(|one| *one != "null").map(shape).collect();
            let optional = if some.len() < union.len() { ", optional" } else { "" };
            format!("{}{optional}", some.join(" or "))
        }
        Value::Object(object) => {
            let inner = object.get("type").map(shape).unwrap_or_default();
            let name = object.get("name").and_then(Value::as_str).unwrap_or_default();
            match inner.as_str() {
                "record" => {
                    let fields = object.get("fields").and_then(Value::as_array).into_iter().flatten();
                    let fields: Vec<String> = fields
                        .map(|f| format!("{}: {}", f["name"].as_str().unwrap_or_default(), shape(&f["type"])))
                        .collect();
                    format!("{name} {{{}}}", fields.join(", "))
                }
                "enum" => {
                    let symbols = object.get("symbols").and_then(Value::as_array).into_iter().flatten();
                    let symbols: Vec<&str> = symbols.filter_map(Value::as_str).collect();
                    if symbols.len() > 16 { format!("{name}, one per section below") } else { symbols.join(", ") }
                }
                "array" => format!("list of {}", object.get("items").map(shape).unwrap_or_default()),
                "map" => format!("map to {}", object.get("values").map(shape).unwrap_or_default()),
                "fixed" => format!("{name} ({} bytes)", object.get("size").and_then(Value::as_u64).unwrap_or_default()),
                _ => format!("{inner}{}", range(object.get("minimum"), object.get("maximum"))),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => of.to_string(),
    }
}

fn range(minimum: Option<&Value>, maximum: Option<&Value>) -> String {
    match (minimum, maximum) {
        (Some(least), Some(most)) => format!(" {least} to {most}"),
        (Some(least), None) => format!(" from {least}"),
        (None, Some(most)) => format!(" up to {most}"),
        (None, None) => String::new(),
    }
}

fn sentence(doc: &str) -> String {
    let mut letters = doc.trim_end_matches('.').chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
