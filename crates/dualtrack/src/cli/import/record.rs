//! A line of a file as a task: what both forms come down to.

use rest_client::contract::{Code, CreateRequest, Problem};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// Longest record, bytes of UTF-8 (1 MiB): more than any task may have (320 KiB), so that what is
/// refused is refused by name, and little enough that memory stays flat.
pub const MAX_RECORD_BYTES: usize = 1024 * 1024;

/// The first so many records of a file, and one in 64 of the others, are marked: their traces can be
/// looked for when their keys have expired.
const MARKED_FIRST: u64 = 8;
const MARKED_ONE_IN: u8 = 64;

// Of a file it is a line that stands where the body of a request does.
fn of_line(mut problem: Problem) -> Problem {
    if let Some(said) = problem.detail.strip_prefix("the body: ") {
        problem.detail = format!("the line: {said}");
    }
    problem
}

/// A record as it was read.
#[derive(Debug)]
pub struct Record {
    /// Physical line where it begins, from 1.
    pub line: u64,
    /// Its text in a form that encodings and line ends do not change: what its key is made of.
    pub text: Vec<u8>,
    /// The task as a JSON object.
    pub body: Result<Vec<u8>, Box<Problem>>,
}

/// Where a file cannot be read any further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Physical line, from 1; 0: the file as a whole.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

/// Records one after the other.
pub trait Records: Send {
    /// The next one; `None` at the end.
    ///
    /// # Errors
    /// Nothing after that place can be told apart.
    fn next(&mut self) -> Result<Option<Record>, Broken>;

    /// What stands above the records in a file of rejected ones.
    fn header(&self) -> Option<&[u8]> {
        None
    }
}

/// A line: a task that can be sent, or why it cannot be.
#[derive(Debug)]
pub struct Line {
    /// Physical line.
    pub line: u64,
    /// As it goes into a file of rejected ones.
    pub text: Vec<u8>,
    /// The task, with its key.
    pub task: Result<Box<CreateRequest>, Box<Problem>>,
}

/// From records to tasks.
#[derive(Debug)]
pub struct Maker {
    /// Stands for the file in every key.
    pub name: String,
    /// What a line has unless it says otherwise.
    pub defaults: CreateRequest,
    /// What was no text in the file's own encoding shows as U+FFFD.
    pub is_translated: bool,
    made: u64,
}

impl Maker {
    /// For the records of one file, from the first.
    pub const fn new(name: String, defaults: CreateRequest, is_translated: bool) -> Self {
        Self { name, defaults, is_translated, made: 0 }
    }

    /// Makes the next record's task.
    pub fn make(&mut self, record: Record) -> Line {
        let Record { line, text, body } = record;
        let key = key(&self.name, line, &text);
        self.made += 1;
        let marked = self.made <= MARKED_FIRST || key[31].is_multiple_of(MARKED_ONE_IN);
        let body = if self.is_translated && text.windows(3).any(|c| c == "\u{fffd}".as_bytes()) {
            let what = "the line has bytes that are no text in the file's encoding (they show as U+FFFD)";
            Err(Box::new(Problem::new(Code::MalformedJson, what)))
        } else {
            body
        };
        let task = body.and_then(|body| self.task(&body, &key, marked).map_err(Box::new));
        Line { line, text, task: task.map(Box::new) }
    }

    #[expect(clippy::result_large_err, reason = "a problem is made once for a line that is refused")]
    fn task(&self, body: &[u8], key: &[u8; 32], marked: bool) -> Result<CreateRequest, Problem> {
        coordinator_edge::json::check(body)?;
        let body = self.with_type(body);
        let mut task: CreateRequest = coordinator_edge::json::decode(&body, "").map_err(of_line)?;
        if let Some(own) = &task.idempotency_key {
            let text = "/idempotency_key cannot be given in a file: it is made of the file's name, the line's number and the line";
            return Err(Problem::new(Code::InvalidField, text).field("/idempotency_key").value(own.as_str()));
        }
        self.complete(&mut task);
        let key = hex::encode(key);
        // So that a trace tells whether this line was sent, longer than its key does.
        if marked && task.trace_id.is_none() {
            task.trace_id = Some(key[..32].into());
        }
        task.idempotency_key = Some(key.into());
        Ok(task)
    }

    // The type is the one field a task must name, so its default must be there before it is read.
    fn with_type<'a>(&self, body: &'a [u8]) -> std::borrow::Cow<'a, [u8]> {
        if self.defaults.task_type.is_empty() {
            return body.into();
        }
        let Ok(mut fields) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(body) else { return body.into() };
        let default = serde_json::value::to_raw_value(&self.defaults.task_type);
        let Ok(default) = default else { return body.into() };
        if fields.contains_key("task_type") {
            return body.into();
        }
        fields.insert("task_type".to_owned(), &default);
        serde_json::to_vec(&fields).map_or(body.into(), Into::into)
    }

    fn complete(&self, task: &mut CreateRequest) {
        let other = self.defaults.clone();
        if task.payload.is_none() && task.payload_ref.is_none() {
            task.payload = other.payload;
        }
        task.queue = task.queue.take().or(other.queue);
        task.creator = task.creator.take().or(other.creator);
        task.priority = task.priority.or(other.priority);
        task.not_before = task.not_before.or(other.not_before);
        task.deadline = task.deadline.or(other.deadline);
        task.timeouts = task.timeouts.or(other.timeouts);
        task.max_retries = task.max_retries.or(other.max_retries);
        task.business_key = task.business_key.take().or(other.business_key);
        task.concurrency_key = task.concurrency_key.take().or(other.concurrency_key);
        for (label, value) in other.labels {
            task.labels.entry(label).or_insert(value);
        }
    }
}

/// Trace of a line that was marked and names none of its own.
pub fn mark(task: &CreateRequest) -> Option<&str> {
    let (trace, key) = (task.trace_id.as_ref()?, task.idempotency_key.as_ref()?);
    key.starts_with(trace.as_str()).then_some(trace.as_str())
}

// The file's name without its folders, so that it is the same on every machine; not its content,
// so that a repaired line leaves the others as they are.
fn key(name: &str, line: u64, text: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"dualtrack.import.1\0");
    hash.update(name.as_bytes());
    hash.update(b"\0");
    hash.update(line.to_string().as_bytes());
    hash.update(b"\0");
    hash.update(text);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(line: u64, body: &str) -> Record {
        Record { line, text: body.as_bytes().to_vec(), body: Ok(body.as_bytes().to_vec()) }
    }

    fn maker() -> Maker {
        let payload = serde_json::value::to_raw_value(&serde_json::json!({})).expect("JSON");
        let labels = [("a".into(), "1".into()), ("b".into(), "2".into())].into();
        let task_type = "default-type".into();
        Maker::new("f".into(), CreateRequest { task_type, payload: Some(payload), labels, ..Default::default() }, false)
    }

    #[test]
    fn a_line_keeps_what_it_says_and_gets_the_rest() {
        let line = maker().make(record(3, r#"{"payload":{"n" : 9223372036854775808},"labels":{"b":"9"}}"#));
        let task = line.task.expect("a task");
        assert_eq!(task.task_type, "default-type");
        assert_eq!(task.payload.as_ref().expect("a payload").get(), r#"{"n" : 9223372036854775808}"#);
        assert_eq!((task.labels["a"].as_str(), task.labels["b"].as_str()), ("1", "9"));
        let own = maker().make(record(3, r#"{"task_type":"own"}"#)).task.expect("a task");
        assert_eq!((own.task_type.as_str(), own.payload.expect("the default").get()), ("own", "{}"));
    }

    #[test]
    fn keys_tell_lines_files_and_texts_apart_and_nothing_else() {
        let of = |name: &str, line, body: &str| {
            let mut maker = maker();
            maker.name = name.into();
            maker.make(record(line, body)).task.expect("a task").idempotency_key.expect("a key")
        };
        let body = r#"{"task_type":"t"}"#;
        let keys = [of("f", 1, body), of("f", 2, body), of("g", 1, body), of("f", 1, r#"{"task_type": "t"}"#)];
        let all: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(all.len(), keys.len());
        assert_eq!(of("f", 1, body), keys[0]);
        // Published: a repetition by a newer program must find the same.
        assert_eq!(keys[0], "40a65223b6d9d3ae18e2e26ca5dcfe046219dae090775baa14b78bf84bb868a0");
    }

    #[test]
    fn what_cannot_be_sent_names_its_field() {
        let refused = |body: &str| *maker().make(record(1, body)).task.expect_err("refused");
        assert_eq!(refused(r#"{"prio":1}"#).code, Code::UnknownField);
        assert_eq!(refused(r#"{"priority":0,"\u0070riority":9}"#).code, Code::DuplicateField);
        assert_eq!(refused(r#"{"labels":{"a":"1","a":"2"}}"#).field.as_deref(), Some("/labels/a"));
        assert_eq!(refused(r#"{"payload":"#).code, Code::MalformedJson);
        assert_eq!(refused(r#"{"idempotency_key":"x"}"#).field.as_deref(), Some("/idempotency_key"));
        let problem = refused(r#"{"priority":300}"#);
        assert_eq!((problem.value, problem.limit), (Some(300.into()), Some("0 to 9".into())));
    }

    #[test]
    fn marks_are_there_for_short_files_and_few_for_long_ones() {
        let mut maker = maker();
        let mut marked = 0;
        for line in 1..=1_000 {
            let task = maker.make(record(line, "{}")).task.expect("a task");
            marked += u64::from(mark(&task).is_some());
            assert!(line > MARKED_FIRST || mark(&task).is_some());
        }
        assert!((MARKED_FIRST + 5..60).contains(&marked), "{marked}");
        let own = maker.make(record(1, r#"{"trace_id":"0af7651916cd43dd8448eb211c80319c"}"#)).task.expect("a task");
        assert_eq!((mark(&own), own.trace_id.as_deref()), (None, Some("0af7651916cd43dd8448eb211c80319c")));
    }
}
