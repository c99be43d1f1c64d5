//! Proofs around the codec: golden records, the second opinion of apache-avro, evolution of the
//! schema, arbitrary events, mutations.

mod golden;
mod kinds;
mod properties;
mod schema;
mod second_opinion;

use std::path::PathBuf;
use std::sync::Once;

use task_events::{Encoded, Event, Malformed, RecordParts, decode};

/// Reads a record as it was encoded.
fn read_back(record: &Encoded) -> Result<Event, Malformed> {
    read(&record.headers.iter().map(|(n, c)| (*n, &c[..])).collect::<Vec<_>>(), &record.value)
}

fn read(headers: &[(&str, &[u8])], value: &[u8]) -> Result<Event, Malformed> {
    decode(RecordParts { headers: headers.iter().copied(), value: Some(value) })
}

/// Folder of the fixtures of all versions; `DUALTRACK_WRITE_FIXTURES=1` writes the current one first.
fn fixtures() -> PathBuf {
    static WRITTEN: Once = Once::new();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas/fixtures");
    WRITTEN.call_once(|| {
        if rewrite_asked_for() {
            golden::write(&folder.join(format!("v{}", task_events::SCHEMA_ID)));
        }
    });
    folder
}

#[expect(clippy::disallowed_methods, reason = "fixtures are rewritten only when the person at the terminal says so")]
fn rewrite_asked_for() -> bool {
    std::env::var_os("DUALTRACK_WRITE_FIXTURES").is_some()
}
