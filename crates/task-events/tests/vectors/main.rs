//! The shared decoding vectors: expectations stand here as literals and are built byte by byte;
//! `schemas/fixtures/decoding-vectors.json` is written from them, never from what the decoder says.

mod bad;
mod good;
mod wire;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use task_events::{DatumFault, Malformed, RecordParts, decode, to_json};

use wire::Record;

/// One vector.
pub struct Case {
    name: &'static str,
    record: Record,
    expect: &'static str,
    event: Option<Value>,
}

impl Case {
    fn ok(name: &'static str, record: Record, event: Option<Value>) -> Self {
        Self { name, record, expect: "ok", event }
    }
    fn bad(name: &'static str, reason: &'static str, record: Record) -> Self {
        Self { name, record, expect: reason, event: None }
    }
    fn to_json(&self) -> Value {
        let mut vector = self.record.to_json();
        vector["name"] = json!(self.name);
        vector["expect"] = json!(self.expect);
        if let Some(event) = &self.event {
            vector["event"] = event.clone();
        }
        vector
    }
}

fn cases() -> Vec<Case> {
    [good::cases(), bad::record_cases(), bad::datum_cases()].into_iter().flatten().collect()
}

#[test]
fn every_vector_is_read_as_expected() {
    let mut wrong = Vec::new();
    for case in cases() {
        let value = case.record.bytes();
        let headers = case.record.headers.iter().map(|(n, c)| (n.as_str(), c.as_slice()));
        let (found, event) = match decode(RecordParts { headers, value: value.as_deref() }) {
            Ok(event) => ("ok".to_owned(), Some(to_json(&event))),
            Err(reason) => {
                assert_eq!(reason.to_string(), reason.as_str());
                (reason.to_string(), None)
            }
        };
        let as_expected = found == case.expect && (case.event.is_none() || event == case.event);
        if !as_expected {
            let event = event.map(|e| e.to_string()).unwrap_or_default();
            wrong.push(format!("{}: expected {}, found {found} {event:.2000}", case.name, case.expect));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_reason_has_a_vector_and_names_are_unique() {
    use DatumFault as F;
    let outside = [
        Malformed::NoValue,
        Malformed::TooLarge,
        Malformed::CrcMissing,
        Malformed::CrcMismatch,
        Malformed::Framing,
        Malformed::UnknownSchema(7),
        Malformed::KindMismatch,
        Malformed::HeaderMismatch,
    ];
    let faults = [
        F::Truncated,
        F::Varint,
        F::Range,
        F::Length,
        F::Block,
        F::Boolean,
        F::Utf8,
        F::Index,
        F::MapOrder,
        F::Trailing,
    ];
    let closed: BTreeSet<String> =
        outside.into_iter().chain(faults.map(Malformed::Datum)).map(|m| m.to_string()).collect();
    let cases = cases();
    let seen: BTreeSet<String> = cases.iter().map(|c| c.expect.to_owned()).filter(|e| e != "ok").collect();
    assert_eq!(seen, closed);
    let names: BTreeSet<_> = cases.iter().map(|c| c.name).collect();
    assert_eq!(names.len(), cases.len(), "two vectors with one name");
}

#[test]
fn the_committed_file_is_this_table() {
    let vectors: Vec<String> = cases().iter().map(|c| format!("  {}", c.to_json())).collect();
    let text = format!("{{\"format\": 1, \"vectors\": [\n{}\n]}}\n", vectors.join(",\n"));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas/fixtures/decoding-vectors.json");
    if rewrite_asked_for() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(committed == text, "decoding-vectors.json differs; DUALTRACK_WRITE_FIXTURES=1 writes it anew");
}

#[test]
fn the_checksum_is_castagnoli() {
    assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
}

#[expect(clippy::disallowed_methods, reason = "fixtures are rewritten only when the person at the terminal says so")]
fn rewrite_asked_for() -> bool {
    std::env::var_os("DUALTRACK_WRITE_FIXTURES").is_some()
}
