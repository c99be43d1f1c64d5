//! What the document says of one operation.

use std::collections::BTreeSet;

use rest_contract::Code;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use super::codes::ALWAYS;

/// Makes the schema of a body.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The schema of a value that stands in a path, a query or a header.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    T::json_schema(&mut SchemaSettings::draft2020_12().into_generator()).to_value()
}

/// One operation.
pub(crate) struct Operation {
    /// Verb and noun; clients name their functions after it.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) about: &'static str,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) answers: Vec<Answer>,
    pub(super) codes: BTreeSet<Code>,
}

/// The body of a request.
pub(super) struct Body {
    pub schema: SchemaOf,
    pub is_required: bool,
    pub limit: usize,
    pub example: Value,
}

/// An answer that is no problem.
pub(super) struct Answer {
    pub status: u16,
    pub about: &'static str,
    pub kind: &'static str,
    pub content: Content,
}

/// What stands in an answer.
pub(super) enum Content {
    /// A body of the contract.
    Json(SchemaOf),
    /// Something else, with its schema.
    Other(Value),
}

impl Operation {
    /// An operation with its id (verb and noun) and what it does, in one line.
    pub(crate) fn new(id: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            about: "",
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            codes: ALWAYS.iter().copied().collect(),
        }
    }

    /// What else there is to know.
    pub(crate) fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// Takes a parameter.
    pub(crate) fn takes(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Takes a JSON body of at most `limit` bytes, such as this one.
    pub(crate) fn body<T: JsonSchema + Serialize>(mut self, limit: usize, example: &T) -> Self {
        // An example that cannot be written would show as `null`, which a test refuses.
        let example = serde_json::to_value(example).unwrap_or_default();
        self.body = Some(Body { schema: schema_of::<T>, is_required: true, limit, example });
        self
    }

    /// The body may be absent.
    pub(crate) fn or_no_body(mut self) -> Self {
        if let Some(body) = &mut self.body {
            body.is_required = false;
        }
        self
    }

    /// Answers with a JSON body.
    pub(crate) fn answers<T: JsonSchema>(mut self, status: u16, about: &'static str) -> Self {
        let content = Content::Json(schema_of::<T>);
        self.answers.push(Answer { status, about, kind: "application/json", content });
        self
    }

    /// Answers with something that is no body of the contract.
    pub(crate) fn answers_with(mut self, status: u16, kind: &'static str, schema: Value, about: &'static str) -> Self {
        self.answers.push(Answer { status, about, kind, content: Content::Other(schema) });
        self
    }

    /// Problems it can answer with.
    pub(crate) fn refuses(mut self, codes: &[Code]) -> Self {
        self.codes.extend(codes);
        self
    }
}

/// A parameter of an operation.
pub(crate) struct Parameter(pub(super) Value);

impl Parameter {
    /// A part of the path.
    pub(crate) fn path(name: &str, schema: Value, about: &str) -> Self {
        Self(json!({ "name": name, "in": "path", "required": true, "schema": schema, "description": about }))
    }

    /// A parameter of the query, which may be absent.
    pub(crate) fn query(name: &str, schema: Value, about: &str) -> Self {
        Self(json!({ "name": name, "in": "query", "required": false, "schema": schema, "description": about }))
    }

    /// A header, which may be absent.
    pub(crate) fn header(name: &str, schema: Value, about: &str) -> Self {
        Self(json!({ "name": name, "in": "header", "required": false, "schema": schema, "description": about }))
    }

    /// It must be there.
    pub(crate) fn required(mut self) -> Self {
        self.0["required"] = true.into();
        self
    }

    /// What stands for it where it is absent.
    pub(crate) fn default(mut self, value: impl Into<Value>) -> Self {
        self.0["schema"]["default"] = value.into();
        self
    }
}
