//! Schemas of bodies, in both directions. A request is held to its schema to the letter; an answer may
//! say more than its schema, since a newer server does. So a body that goes both ways has two schemas,
//! and the one of requests is called `…Input` where they differ.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, transform_subschemas};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::operation::SchemaOf;

/// Where the document keeps them.
const AT: &str = "#/components/schemas/";

/// Schemas that were asked for so far.
pub(super) struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.meta_schema = None;
                settings.definitions_path = "/components/schemas".into();
            })
        };
        let requests = settings().for_deserialize().with_transform(RecursiveTransform(plain_enums));
        let answers = settings().for_serialize().with_transform(RecursiveTransform(plain_enums)).with_transform(open);
        Self { requests: requests.into_generator(), answers: answers.into_generator() }
    }

    /// The schema of a request's body.
    pub(super) fn request(&mut self, of: SchemaOf) -> Value {
        of(&mut self.requests).to_value()
    }

    /// The schema of an answer's body.
    pub(super) fn answer(&mut self, of: SchemaOf) -> Value {
        let mut schema = of(&mut self.answers);
        open(&mut schema);
        schema.to_value()
    }

    /// All of them, by name. What `requests` (the rest of the document) names in requests is renamed
    /// where it has to be.
    pub(super) fn all(mut self, requests: &mut [Value]) -> Map<String, Value> {
        let mut asked = self.requests.take_definitions(true);
        let mut all = self.answers.take_definitions(true);
        let renamed = differing(&asked, &all);
        for schema in asked.values_mut().chain(requests.iter_mut()) {
            rename(schema, &renamed);
        }
        for (name, schema) in asked {
            let name = if renamed.contains(&name) { format!("{name}Input") } else { name };
            all.insert(name, schema);
        }
        all
    }
}

// Names of both directions whose schemas differ, or name one that does.
fn differing(requests: &Map<String, Value>, answers: &Map<String, Value>) -> BTreeSet<String> {
    let shared: Vec<_> = requests.iter().filter_map(|(name, asked)| Some((name, asked, answers.get(name)?))).collect();
    let mut found: BTreeSet<String> =
        shared.iter().filter(|(_, asked, told)| asked != told).map(|(name, ..)| (*name).clone()).collect();
    loop {
        let more: Vec<String> = shared
            .iter()
            .filter(|(name, asked, _)| !found.contains(*name) && names_any(asked, &found))
            .map(|(name, ..)| (*name).clone())
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

fn names_any(schema: &Value, names: &BTreeSet<String>) -> bool {
    match schema {
        Value::Object(fields) => {
            let named = fields.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix(AT));
            named.is_some_and(|name| names.contains(name)) || fields.values().any(|inner| names_any(inner, names))
        }
        Value::Array(items) => items.iter().any(|inner| names_any(inner, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn rename(schema: &mut Value, names: &BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            let named = fields.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix(AT));
            if let Some(name) = named.filter(|name| names.contains(*name)) {
                let renamed = format!("{AT}{name}Input");
                fields.insert("$ref".to_owned(), renamed.into());
            }
            fields.values_mut().for_each(|inner| rename(inner, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| rename(inner, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

// One of several constants, each with its meaning, as an enumeration with a list of meanings: clients
// are generated with an enumeration then instead of a union of constants.
fn plain_enums(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.get("oneOf") else { return };
    let constants: Option<Vec<(&str, &str)>> = variants
        .iter()
        .map(|variant| {
            let says = variant.get("description").and_then(Value::as_str).unwrap_or_default();
            Some((variant.get("const").and_then(Value::as_str)?, says))
        })
        .collect();
    let Some(constants) = constants else { return };
    let names: Vec<&str> = constants.iter().map(|(name, _)| *name).collect();
    let list: String =
        constants.iter().map(|(name, says)| format!("\n- `{name}`: {}", says.replace('\n', " "))).collect();
    let before = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let (description, names) = (format!("{before}\n{list}"), json!(names));
    schema.remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), names);
    schema.insert("description".to_owned(), description.into());
}

// Whoever reads an answer passes over fields that it does not know. Defaults belong to requests. A
// field that may be absent is absent, never `null`.
fn open(schema: &mut Schema) {
    schema.remove("default");
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    let required: BTreeSet<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.iter_mut().filter(|(name, _)| !required.contains(*name)).for_each(|(_, field)| not_null(field));
    }
    transform_subschemas(&mut open, schema);
}

fn not_null(field: &mut Value) {
    let Value::Object(field) = field else { return };
    if let Some(Value::Array(types)) = field.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            field.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(variants)) = field.get_mut("anyOf") {
        variants.retain(|variant| variant.get("type") != Some(&Value::from("null")));
        if let [Value::Object(only)] = &variants[..] {
            let only = only.clone();
            field.remove("anyOf");
            field.extend(only);
        }
    }
}
