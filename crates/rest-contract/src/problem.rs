//! Errors as RFC 9457 problem+json: one closed list of codes, each with its status, its title, what
//! a caller may do next, and a page in `docs/errors`.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a caller may do after a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same request again, later: nothing was written.
    Later,
    /// Ask what became of it before sending it again: whether it was written is not known.
    AskFirst,
    /// Never as it is: it must be changed first.
    Never,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal, $retry:ident, $title:literal;)*) => {
        /// Code of a problem.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// As it stands in `code`, and the name of its page.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status),* }
            }

            /// What it means, in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title),* }
            }

            /// What a caller may do next.
            pub const fn retry(self) -> Retry {
                match self { $(Self::$name => Retry::$retry),* }
            }
        }
    };
}

codes! {
    /// No JSON, not UTF-8, cut off, nested too deep, an empty body: with line and column.
    MalformedJson = "malformed_json", 400, Never, "the body is no JSON text";
    /// A parameter of the path or the query cannot be read.
    InvalidParameter = "invalid_parameter", 400, Never, "a parameter cannot be read";
    /// A cursor that was edited, or that belongs to another list.
    InvalidCursor = "invalid_cursor", 400, Never, "the cursor does not belong to this list";
    /// A key stands twice in one JSON object.
    DuplicateField = "duplicate_field", 422, Never, "a field is given twice";
    /// A field that this request does not have.
    UnknownField = "unknown_field", 422, Never, "a field is not known";
    /// A field is missing, of another type, or beyond its limit.
    InvalidField = "invalid_field", 422, Never, "a field is not valid";
    /// A body or a payload is too long.
    PayloadTooLarge = "payload_too_large", 413, Never, "the payload is too large";
    /// The body is not of the type it must be.
    UnsupportedMediaType = "unsupported_media_type", 415, Never, "the body must be application/json";
    /// No such path.
    NoSuchPath = "no_such_path", 404, Never, "there is nothing at this path";
    /// The path takes other methods.
    MethodNotAllowed = "method_not_allowed", 405, Never, "the path does not take this method";
    /// The request did not arrive in time.
    RequestTimeout = "request_timeout", 408, Later, "the request did not arrive in time";
    /// Too many connections or requests at once.
    Overloaded = "overloaded", 503, Later, "too many requests at once";
    /// The idempotency key is another request's.
    IdempotencyConflict = "idempotency_conflict", 409, Never, "the idempotency key was used for another request";
    /// A creator has too many open tasks.
    BacklogFull = "backlog_full", 429, Later, "too many open tasks";
    /// The two placements name different partitions.
    PlacementConflict = "placement_conflict", 422, Never, "the task cannot be placed";
    /// No task has this id.
    TaskUnknown = "task_unknown", 404, Never, "there is no such task";
    /// The task is older than its rows are kept.
    ReplayWindowOver = "replay_window_over", 410, Never, "the task is too old";
    /// Nobody has heard of the worker.
    WorkerUnknown = "worker_unknown", 404, Never, "there is no such worker";
    /// The log no longer has, or does not have yet, what lies at this position.
    PositionGone = "position_gone", 410, Never, "the log has nothing at this position";
    /// A stream of events was ended because its reader did not keep up.
    ReaderTooSlow = "reader_too_slow", 503, Later, "the stream's reader is too slow";
    /// The task has no result (yet).
    NoResult = "no_result", 404, Later, "the task has no result";
    /// What is stored is not what the log names.
    PayloadMissing = "payload_missing", 404, Later, "the payload is not in the store";
    /// The task is closed.
    TaskClosed = "task_closed", 409, Never, "the task is closed";
    /// The task is open.
    TaskOpen = "task_open", 409, Never, "the task is open";
    /// A replay or review names another run than the last one.
    RunMismatch = "run_mismatch", 409, Never, "the task's last run is another one";
    /// The task's state does not allow it.
    StateConflict = "state_conflict", 409, Never, "the task's state does not allow it";
    /// The step to resume from is not on record.
    UnknownStep = "unknown_step", 422, Never, "the step is not on record";
    /// A live reader of the log does not know the rules.
    RulesUnsupported = "rules_unsupported", 409, Never, "somebody does not know these rules";
    /// Newer rules are active.
    RulesNotForward = "rules_not_forward", 409, Never, "newer rules are active";
    /// The attempt is over.
    Fenced = "fenced", 409, Never, "the attempt is over";
    /// A newer process of the worker has polled.
    Superseded = "superseded", 409, Never, "a newer process of this worker is active";
    /// The report rests on one that is not on record yet.
    TooEarly = "too_early", 425, Later, "an earlier report is not on record yet";
    /// Whether it was written is not known.
    OutcomeUnknown = "outcome_unknown", 504, AskFirst, "the outcome is not known";
    /// The task's partition has no owner now.
    OwnerUnavailable = "owner_unavailable", 503, Later, "the partition has no owner now";
    /// The instance hands over.
    Draining = "draining", 503, Later, "the instance is handing over";
    /// Rows owed to the store are half of their limit.
    StoreBehind = "store_behind", 503, Later, "the store is behind";
    /// The store does not answer.
    StoreUnavailable = "store_unavailable", 503, Later, "the store does not answer";
    /// Clocks disagree.
    ClockUnsettled = "clock_unsettled", 503, Later, "clocks disagree";
    /// Too many records in flight.
    InFlightFull = "in_flight_full", 503, Later, "too many records in flight";
    /// The log takes no records.
    LogUnavailable = "log_unavailable", 503, Later, "the log takes no records";
    /// A defect of the server.
    Internal = "internal", 500, AskFirst, "the server has a defect";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Body of every answer that is no success (`application/problem+json`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Where the code is explained: `/docs/errors/CODE`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the code means.
    pub title: String,
    /// HTTP status.
    #[schemars(range(min = 400, max = 599))]
    pub status: u16,
    /// Code of the closed list.
    pub code: Code,
    /// What happened here: names the field, the value and the limit.
    pub detail: String,
    /// Field or parameter meant, as a JSON pointer below the body or the parameter's name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub field: Option<String>,
    /// The offending value, cut to 256 characters.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<Value>,
    /// The limit it is held against.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<Value>,
    /// Further facts, each under its own name: `task_id`, `run_no`, `state`, `retry_after_ms` …
    #[serde(flatten)]
    pub facts: BTreeMap<String, Value>,
}

impl Problem {
    /// A problem of this code; the rest is added by the methods below.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("/docs/errors/{code}"),
            title: code.title().to_owned(),
            status: code.status(),
            code,
            detail: detail.into(),
            field: None,
            value: None,
            limit: None,
            facts: BTreeMap::new(),
        }
    }

    /// Names the field.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Names the value; a long text is cut.
    #[must_use]
    pub fn value(mut self, value: impl Into<Value>) -> Self {
        let value = value.into();
        let cut = value.as_str().filter(|text| text.chars().count() > 256).map(|text| text.chars().take(256).collect());
        self.value = Some(cut.map_or(value, Value::String));
        self
    }

    /// Names the limit.
    #[must_use]
    pub fn limit(mut self, limit: impl Into<Value>) -> Self {
        self.limit = Some(limit.into());
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.title, self.code, self.detail)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_as_it_was_written() {
        let problem = Problem::new(Code::PayloadTooLarge, "payload has 300000 bytes, the limit is 262144")
            .field("/payload")
            .value(300_000)
            .limit(262_144)
            .fact("task_id", "42");
        let text = serde_json::to_string(&problem).expect("a problem is JSON");
        assert!(text.contains(r#""type":"/docs/errors/payload_too_large""#), "{text}");
        assert_eq!(serde_json::from_str::<Problem>(&text).expect("and back"), problem);
    }

    #[test]
    fn codes_are_told_apart() {
        let texts: std::collections::BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|c| (400..600).contains(&c.status())));
    }
}
