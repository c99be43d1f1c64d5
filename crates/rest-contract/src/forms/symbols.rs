//! Symbols of the log's schema, whose crate knows no JSON schema: their lists are taken from it.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use task_events::{ErrorCategory, Kind, ReplayFrom, ReviewOutcome, TaskState, Text};

macro_rules! symbols {
    ($($(#[$doc:meta])* $name:ident = $symbols:ident, $says:literal;)*) => {$(
        $(#[$doc])*
        pub enum $name {}

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($symbols).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let all: Vec<&str> = $symbols::ALL.iter().map(|symbol| symbol.as_str()).collect();
                json_schema!({ "type": "string", "enum": all, "description": $says })
            }
        }
    )*};
}

symbols! {
    /// [`TaskState`].
    State = TaskState, "State of a task; SUCCESS, FAILED_PERMANENTLY and CANCELLED are terminal.";
    /// [`ErrorCategory`].
    Category = ErrorCategory, "What kind of failure; NON_RETRYABLE is never retried.";
    /// [`ReplayFrom`].
    ResumeFrom = ReplayFrom, "Where a replay resumes.";
    /// [`ReviewOutcome`].
    Decision = ReviewOutcome, "What was decided about a task.";
    /// [`Kind`].
    KindName = Kind, "Kind of a record of the log.";
}

/// [`task_events::SkippedStep`].
#[derive(JsonSchema)]
#[schemars(rename = "SkippedStep")]
#[expect(dead_code, reason = "only its schema is used")]
pub struct Skipped {
    /// Name of the step.
    step: Text,
    /// Policy rule that allows it.
    rule: Text,
    /// Event_sequences of this task that prove it.
    evidence: Vec<u32>,
}
