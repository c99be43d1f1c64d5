//! What the document says of the schema registry. Its errors are those of the registry's protocol.

use serde_json::{Value, json};

use super::KIND;
use crate::api::{Operation, Parameter};

fn number() -> Value {
    json!({ "type": "integer", "minimum": 1 })
}

fn found(fields: &[(&str, Value)]) -> Value {
    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<_, _> =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "required": names, "properties": properties })
}

fn errors() -> Value {
    found(&[("error_code", number()), ("message", json!({ "type": "string" }))])
}

fn asks(id: &'static str, summary: &'static str, answer: Value, about: &'static str) -> Operation {
    Operation::new(id, summary).answers_with(200, KIND, answer, about)
}

fn subject() -> Parameter {
    Parameter::path("subject", json!({ "type": "string" }), "Subject.")
}

const NOT_FOUND: &str = "There is none.";

pub(super) fn schema() -> Operation {
    let text = json!({ "type": "string", "description": "The Avro schema, as a JSON text." });
    asks("getSchema", "Reads a schema of the topic by its id", found(&[("schema", text)]), "The schema.")
        .takes(Parameter::path("id", json!({ "type": "string" }), "Id, as it stands in each record."))
        .answers_with(404, KIND, errors(), NOT_FOUND)
}

pub(super) fn subjects() -> Operation {
    let names = json!({ "type": "array", "items": { "type": "string" } });
    asks("listSubjects", "Lists the subjects of the schema registry", names, "Names.")
}

pub(super) fn versions() -> Operation {
    let versions = json!({ "type": "array", "items": number() });
    asks("listSubjectVersions", "Lists the versions of a subject", versions, "Versions.").takes(subject()).answers_with(
        404,
        KIND,
        errors(),
        NOT_FOUND,
    )
}

pub(super) fn version() -> Operation {
    let text = || json!({ "type": "string" });
    let one = found(&[("subject", text()), ("version", number()), ("id", number()), ("schema", text())]);
    asks("getSubjectVersion", "Reads a version of a subject", one, "The version and its schema.")
        .takes(subject())
        .takes(Parameter::path("version", text(), "Number of the version, or `latest`."))
        .answers_with(404, KIND, errors(), NOT_FOUND)
        .answers_with(422, KIND, errors(), "The version is neither a number nor `latest`.")
}
