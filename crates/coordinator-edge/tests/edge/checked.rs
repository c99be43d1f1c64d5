//! Every answer that a test gets is held against the OpenAPI document: its status, its type and its
//! problem code are named there, its body is as the schema says, and so is the body of a request that
//! was taken.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use coordinator::surface::NoPeers;
use event_log::EmbeddedLog;
use jsonschema::Validator;
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use service_kit::SystemClock;
use snapshot_store::MemoryStore;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&text()).expect("the document is a JSON text"));

static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

/// The document, as it is served.
pub fn text() -> String {
    coordinator_edge::openapi::<EmbeddedLog, MemoryStore, SystemClock, NoPeers>()
}

/// The same, read.
pub fn document() -> &'static Value {
    &DOCUMENT
}

/// A request that was answered.
pub struct Exchange<'a> {
    pub method: &'a str,
    /// Path and query.
    pub uri: &'a str,
    pub sent: &'a [u8],
    pub status: u16,
    /// Content type of the answer.
    pub kind: &'a str,
    pub body: &'a [u8],
}

impl Exchange<'_> {
    /// Holds it against the document.
    pub fn check(&self) {
        let path = self.uri.split('?').next().expect("a path");
        let of = format!("{} {path}: {}", self.method, self.status);
        if path.starts_with("/internal/") {
            return;
        }
        let Some((template, item)) = find(path) else { return self.is_problem(&of, &["no_such_path"]) };
        let method = self.method.to_lowercase();
        let Some(operation) = item.get(&method) else { return self.is_problem(&of, &["method_not_allowed"]) };
        let answer = operation["responses"].get(self.status.to_string());
        let answer = answer.unwrap_or_else(|| panic!("{of}: the document does not name this status"));
        let kind = self.kind.split(';').next().expect("a type");
        let content = answer["content"].get(kind);
        let schema = &content.unwrap_or_else(|| panic!("{of}: the document does not name {kind}"))["schema"];
        if kind == PROBLEM {
            let codes = answer["x-codes"].as_array().expect("codes");
            return self.is_problem(&of, &codes.iter().filter_map(Value::as_str).collect::<Vec<_>>());
        }
        let key = format!("{method} {template}");
        // Payloads may hold numbers that no `Value` can.
        if kind.ends_with("json") {
            serde_json::from_slice::<IgnoredAny>(self.body).expect("JSON");
            if let Ok(body) = serde_json::from_slice(self.body) {
                conforms(&format!("{key} {}", self.status), schema, &body, &of);
            }
        }
        // Of 207, parts may have been refused.
        let Ok(sent) = serde_json::from_slice(self.sent) else { return };
        if self.status < 207 {
            let body = &operation["requestBody"]["content"][JSON]["schema"];
            assert!(body.is_object(), "{of}: the document does not name a body");
            conforms(&key, body, &sent, &format!("{of}, the request"));
        }
    }

    fn is_problem(&self, of: &str, codes: &[&str]) {
        assert_eq!(self.kind, PROBLEM, "{of}");
        let problem: Value = serde_json::from_slice(self.body).expect("JSON");
        let code = problem["code"].as_str().expect("a code");
        assert!(codes.contains(&code), "{of}: the document names {codes:?}, not {code}: {problem}");
        conforms("problem", &json!({ "$ref": "#/components/schemas/Problem" }), &problem, of);
    }
}

/// The path of the document that a path is one of; one without parameters is meant before one with.
fn find(path: &str) -> Option<(&'static String, &'static Value)> {
    let is_one = |template: &&String| {
        let (mut parts, mut names) = (path.split('/'), template.split('/'));
        loop {
            match (parts.next(), names.next()) {
                (None, None) => return true,
                (Some(part), Some(name)) if part == name || name.starts_with('{') && !part.is_empty() => {}
                (Some(_) | None, Some(_) | None) => return false,
            }
        }
    };
    let paths = document()["paths"].as_object().expect("paths");
    let template = paths.keys().filter(is_one).min_by_key(|template| template.matches('{').count())?;
    Some((template, &paths[template]))
}

/// Whether a value is as a schema of the document says. `key` names the schema.
pub fn conforms(key: &str, schema: &Value, value: &Value, of: &str) {
    let made = || {
        let whole = json!({ "allOf": [schema], "components": document()["components"] });
        Arc::new(jsonschema::options().should_validate_formats(true).build(&whole).expect("a schema"))
    };
    let validator = VALIDATORS.lock().entry(key.to_owned()).or_insert_with(made).clone();
    let wrong: Vec<String> =
        validator.iter_errors(value).map(|why| format!("{}: {why}", why.instance_path())).collect();
    assert!(wrong.is_empty(), "{of}: not as the document says:\n{}\n{value}", wrong.join("\n"));
}
