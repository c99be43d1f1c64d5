//! Columns of a CSV file as fields of a task.

use rest_client::contract::{Code, Problem};
use serde_json::{Map, Value, value::RawValue};
use std::collections::BTreeMap;

use super::super::times::instant_ms;

/// Columns by the name of a field.
const FIELDS: [(&str, Kind); 16] = [
    ("task_type", Kind::Text),
    ("payload", Kind::Json),
    ("payload_ref", Kind::Text),
    ("payload_hash", Kind::Text),
    ("queue", Kind::Text),
    ("creator", Kind::Text),
    ("priority", Kind::Number),
    ("not_before", Kind::Time),
    ("deadline", Kind::Time),
    ("start_to_close_ms", Kind::Timeout),
    ("schedule_to_start_ms", Kind::Timeout),
    ("max_retries", Kind::Number),
    ("business_key", Kind::Text),
    ("concurrency_key", Kind::Text),
    ("same_partition_as", Kind::Text),
    ("trace_id", Kind::Text),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    /// Unix ms, or RFC 3339.
    Time,
    /// A number below `timeouts`.
    Timeout,
    /// A JSON text, kept as it is.
    Json,
}

/// What a column says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Column {
    Field(&'static str, Kind),
    Label(String),
    /// A text below `payload`.
    Payload(String),
}

/// The columns of a file.
#[derive(Clone, Debug)]
pub struct Columns {
    columns: Vec<Column>,
}

/// Whether a header's cell names a column.
pub fn is_known(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| column(name.trim()).is_some())
}

fn column(name: &str) -> Option<Column> {
    if let Some(label) = name.strip_prefix("label.").filter(|label| !label.is_empty()) {
        return Some(Column::Label(label.to_owned()));
    }
    if let Some(field) = name.strip_prefix("payload.").filter(|field| !field.is_empty()) {
        return Some(Column::Payload(field.to_owned()));
    }
    FIELDS.iter().find(|(field, _)| *field == name).map(|(field, kind)| Column::Field(field, *kind))
}

impl Columns {
    /// Those of a header; with `others` whatever is no field of a task becomes a field of its payload.
    ///
    /// # Errors
    /// A name that is none, twice, or unknown; in words.
    pub fn of(header: &[Vec<u8>], others: bool) -> Result<Self, String> {
        let mut columns: Vec<Column> = Vec::new();
        for (position, name) in (1..).zip(header) {
            let name =
                std::str::from_utf8(name).map_err(|_| format!("has a column ({position}) whose name is not UTF-8"))?;
            let name = name.trim();
            if name.is_empty() {
                return Err(format!("has a column ({position}) without a name"));
            }
            let unknown = || {
                let known: Vec<_> = FIELDS.iter().map(|(name, _)| *name).collect();
                format!(
                    "has the column {name:?}, which is no field of a task. There are: {}, label.NAME, payload.NAME. \
                     With --payload-columns the others become fields of the payload",
                    known.join(", ")
                )
            };
            let column =
                column(name).or_else(|| others.then(|| Column::Payload(name.to_owned()))).ok_or_else(unknown)?;
            if columns.contains(&column) {
                return Err(format!("has the column {name:?} twice"));
            }
            columns.push(column);
        }
        let whole = columns.contains(&Column::Field("payload", Kind::Json));
        if whole && columns.iter().any(|column| matches!(column, Column::Payload(_))) {
            return Err("has the column \"payload\" beside columns that make up the payload: one of the two".to_owned());
        }
        Ok(Self { columns })
    }

    /// How many.
    pub const fn count(&self) -> usize {
        self.columns.len()
    }

    /// A record's task as a JSON object. An empty cell says nothing, except in the payload, where it is
    /// an empty text.
    ///
    /// # Errors
    /// Names the column.
    pub fn task(&self, values: &[Vec<u8>]) -> Result<Vec<u8>, Box<Problem>> {
        let mut task: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
        let (mut labels, mut timeouts, mut payload) = (Map::new(), Map::new(), Map::new());
        for (column, value) in self.columns.iter().zip(values) {
            let text = std::str::from_utf8(value).map_err(|_| {
                Box::new(
                    Problem::new(Code::MalformedJson, format!("{} is not UTF-8", pointer(column)))
                        .field(pointer(column)),
                )
            })?;
            match column {
                Column::Payload(name) => drop(payload.insert(name.clone(), text.into())),
                Column::Field(..) | Column::Label(_) if text.is_empty() => {}
                Column::Label(name) => drop(labels.insert(name.clone(), text.into())),
                Column::Field(name, Kind::Timeout) => drop(timeouts.insert((*name).to_owned(), number(text))),
                Column::Field(name, Kind::Json) => drop(task.insert(name, json(name, text)?)),
                Column::Field(name, Kind::Text) => drop(task.insert(name, raw(&text)?)),
                Column::Field(name, Kind::Number) => drop(task.insert(name, raw(&number(text))?)),
                Column::Field(name, Kind::Time) => {
                    let time = instant_ms(text.trim()).map_or_else(|| text.into(), Value::from);
                    task.insert(name, raw(&time)?);
                }
            }
        }
        for (name, fields) in [("labels", labels), ("timeouts", timeouts), ("payload", payload)] {
            if !fields.is_empty() {
                task.insert(name, raw(&fields)?);
            }
        }
        serde_json::to_vec(&task).map_err(|why| Box::new(Problem::new(Code::MalformedJson, why.to_string())))
    }
}

fn pointer(column: &Column) -> String {
    match column {
        Column::Field(name, _) => format!("/{name}"),
        Column::Label(name) => format!("/labels/{name}"),
        Column::Payload(name) => format!("/payload/{name}"),
    }
}

// What is no number stays a text, and is refused by name and value where the task is read.
fn number(text: &str) -> Value {
    text.trim().parse::<i64>().map_or_else(|_| text.into(), Value::from)
}

fn raw(value: &impl serde::Serialize) -> Result<Box<RawValue>, Box<Problem>> {
    let raw = serde_json::value::to_raw_value(value);
    raw.map_err(|why| Box::new(Problem::new(Code::MalformedJson, why.to_string())))
}

fn json(name: &str, text: &str) -> Result<Box<RawValue>, Box<Problem>> {
    let named = |mut problem: Problem| {
        problem.detail = format!("the cell of column {name:?}: {}", problem.detail);
        problem.field = Some(format!("/{name}{}", problem.field.unwrap_or_default()));
        Box::new(problem)
    };
    coordinator_edge::json::check(text.as_bytes()).map_err(named)?;
    RawValue::from_string(text.to_owned()).map_err(|why| named(Problem::new(Code::MalformedJson, why.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(texts: &[&str]) -> Vec<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    }

    fn task(header: &[&str], values: &[&str], others: bool) -> Result<String, Box<Problem>> {
        let columns = Columns::of(&cells(header), others).expect("columns");
        columns.task(&cells(values)).map(|task| String::from_utf8(task).expect("UTF-8"))
    }

    #[test]
    fn columns_become_fields() {
        let header = ["task_type", "priority", "deadline", "label.国", "start_to_close_ms", "payload"];
        let values = ["t", "7", "1970-01-01T00:00:01Z", "中", "5", r#"{"n" : 9223372036854775808}"#];
        let text = task(&header, &values, false).expect("a task");
        assert_eq!(
            text,
            r#"{"deadline":1000,"labels":{"国":"中"},"payload":{"n" : 9223372036854775808},"priority":7,"task_type":"t","timeouts":{"start_to_close_ms":5}}"#
        );
        assert_eq!(task(&header, &["t", "", "", "", "", ""], false).expect("a task"), r#"{"task_type":"t"}"#);
        let text = task(&["task_type", "payload.a", "order"], &["t", "", "007"], true).expect("a task");
        assert_eq!(text, r#"{"payload":{"a":"","order":"007"},"task_type":"t"}"#);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let of = |header: &[&str]| Columns::of(&cells(header), false).expect_err("refused");
        assert!(of(&["task_type", "prio"]).contains("\"prio\"") && of(&["prio"]).contains("priority"));
        assert!(of(&["queue", "queue"]).contains("twice"));
        assert!(of(&["queue", " "]).contains("(2) without a name"));
        assert!(of(&["payload", "payload.a"]).contains("one of the two"));
        let problem = task(&["payload"], &[r#"{"a":1,"a":2}"#], false).expect_err("twice");
        assert_eq!((problem.code, problem.field.as_deref()), (Code::DuplicateField, Some("/payload/a")));
        let problem = task(&["payload"], &["{"], false).expect_err("cut");
        assert_eq!((problem.code, problem.field.as_deref()), (Code::MalformedJson, Some("/payload")));
        // Left to the reader of tasks, who knows the limits.
        assert_eq!(task(&["priority"], &["high"], false).expect("a task"), r#"{"priority":"high"}"#);
    }
}
