//! The OpenAPI 3.1 document of the table. OpenAPI 3.1 takes JSON Schema as it is (draft 2020-12), so a
//! document is a frame of paths around the schemas that the bodies say of themselves.

use std::collections::BTreeMap;

use rest_contract::{Code, Problem, StreamRecord};
use serde_json::{Map, Value, json};

use super::Described;
use super::operation::{Body, Content, Operation};
use super::schemas::Schemas;

/// What stands before all operations.
const ABOUT: &str = include_str!("about.md");

/// Groups, in the order they are shown.
const TAGS: &[(&str, &str)] = &[
    ("tasks", "Create tasks and read what became of them."),
    ("operation", "What operators see and do: workers and queues."),
    ("events", "The log as it grows, and the schema of its records."),
    ("workers", "Run tasks: register, poll, report."),
    ("server", "Health, metrics, this document."),
];

/// The document as it is committed and served: its keys sorted, one line each.
pub(crate) fn text(described: &[Described]) -> String {
    let mut document = made(described);
    document.sort_all_objects();
    // Texts, numbers and maps with text keys: nothing in it can fail to be written.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn made(described: &[Described]) -> Value {
    let mut schemas = Schemas::new();
    let mut bodies: Vec<Value> = Vec::new();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for row in described {
        bodies.push(row.operation.body.as_ref().map_or(Value::Null, |body| request(body, &mut schemas)));
        let operation = operation(row.tag, &row.operation, &mut schemas);
        paths.entry(row.path).or_default().insert(row.method.as_str().to_lowercase(), operation);
    }
    let problem = schemas.answer(|generator| generator.subschema_for::<Problem>());
    debug_assert_eq!(problem["$ref"], PROBLEM);
    // It stands in messages, which no schema of an operation reaches.
    schemas.answer(|generator| generator.subschema_for::<StreamRecord>());
    let all = schemas.all(&mut bodies);
    for (row, body) in described.iter().zip(bodies).filter(|(_, body)| !body.is_null()) {
        let method = row.method.as_str().to_lowercase();
        if let Some(operation) = paths.get_mut(row.path).and_then(|item| item.get_mut(&method)) {
            operation["requestBody"] = body;
        }
    }
    let tags: Vec<_> = TAGS.iter().map(|(name, about)| json!({ "name": name, "description": about })).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Dualtrack",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "Apache License 2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:7420", "description": "`dualtrack dev`" }],
        "tags": tags,
        "paths": paths,
        "components": { "schemas": all },
    })
}

const PROBLEM: &str = "#/components/schemas/Problem";

fn request(body: &Body, schemas: &mut Schemas) -> Value {
    json!({
        "required": body.is_required,
        "description": format!("At most {} bytes.", body.limit),
        "content": { "application/json": { "schema": schemas.request(body.schema), "example": body.example } },
    })
}

fn operation(tag: &str, operation: &Operation, schemas: &mut Schemas) -> Value {
    let mut answers: BTreeMap<String, Value> = BTreeMap::new();
    for answer in &operation.answers {
        let schema = match &answer.content {
            Content::Json(of) => schemas.answer(*of),
            Content::Other(schema) => schema.clone(),
        };
        let content = json!({ answer.kind: { "schema": schema } });
        answers.insert(answer.status.to_string(), json!({ "description": answer.about, "content": content }));
    }
    let mut problems: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in &operation.codes {
        problems.entry(code.status()).or_default().push(*code);
    }
    for (status, codes) in problems {
        add_problems(answers.entry(status.to_string()).or_insert_with(|| json!({ "description": "" })), &codes);
    }
    let mut out = json!({
        "operationId": operation.id,
        "tags": [tag],
        "summary": operation.summary,
        "responses": answers,
    });
    if !operation.about.is_empty() {
        out["description"] = operation.about.into();
    }
    if !operation.parameters.is_empty() {
        out["parameters"] = operation.parameters.iter().map(|parameter| parameter.0.clone()).collect();
    }
    out
}

// The codes of a status, for people and (`x-codes`) for programs.
fn add_problems(answer: &mut Value, codes: &[Code]) {
    let list: String = codes.iter().map(|code| format!("\n- `{code}`: {}", code.title())).collect();
    let before = answer["description"].as_str().unwrap_or_default();
    let before = if before.is_empty() { "A problem:".to_owned() } else { format!("{before} Or a problem:") };
    answer["description"] = format!("{before}\n{list}").into();
    answer["content"]["application/problem+json"] = json!({ "schema": { "$ref": PROBLEM } });
    answer["x-codes"] = codes.iter().map(|code| code.as_str()).collect();
    if codes.iter().any(|code| matches!(code.status(), 429 | 503)) {
        let about = "When to ask again, s; `retry_after_ms` of the problem says the same.";
        let schema = json!({ "type": "integer", "minimum": 1 });
        answer["headers"]["Retry-After"] = json!({ "description": about, "schema": schema });
    }
}
