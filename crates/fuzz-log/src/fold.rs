//! Decoder and fold as one target: whatever lies in the log, every reader goes on and all readers
//! agree.
//!
//! Three readers take the same records: one that keeps rows, one that does not, and one that is
//! put away into a checkpoint and loaded again every few records.

mod checks;
mod ready;
mod twist;
mod writer;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use task_core::{Admission, PartitionState, Record as Folded, Verdict, checkpoint};
use task_events::{Offset, RecordKey, RecordParts, decode, samples};

use crate::{Outcomes, Record, Target};

/// Records between two checkpoints.
const EVERY: u64 = 16;
// Per byte read, for three readers: the dearest honest item is an empty text in a list (48 bytes
// while the list grows), a row may hold it twice (event and history of the steps).
const HELD_PER_BYTE: usize = 3 * 96;
// Per record: an entry in a history and, at worst, a page of the table.
const HELD_PER_RECORD: usize = 3 * 1024;
const HELD_BASE: usize = 256 * 1024;

/// [`decode`] and [`PartitionState`].
pub struct Fold {
    arbitrary: writer::Arbitrary,
    held: Option<fn() -> usize>,
}

impl Fold {
    /// The target; `held` gives the bytes the process holds, if somebody counts them.
    pub fn new(held: Option<fn() -> usize>) -> Self {
        Self { arbitrary: writer::Arbitrary::default(), held }
    }
}

impl Target for Fold {
    fn corpus(&self) -> Vec<Record> {
        crate::decoder::Decoder::default().corpus()
    }

    fn write(&mut self, corpus: &[Record], rng: &mut ChaCha8Rng, records: &mut Vec<Record>) {
        records.clear();
        writer::Writer::new(&self.arbitrary, corpus, rng).write(records);
    }

    fn read(&mut self, records: &[Record], outcomes: &mut Outcomes) -> Result<(), String> {
        let before = self.held.map(|held| held());
        let mut readers = Readers::new();
        let mut size = 0;
        for record in records {
            size += record.size();
            let at = readers.rows.next_offset;
            let outcome = readers.take(record).map_err(|what| format!("at {at}: {what}"))?;
            *outcomes.entry(outcome).or_default() += 1;
            if readers.rows.next_offset.0.is_multiple_of(EVERY) {
                readers.reload().map_err(|what| format!("checkpoint at {at}: {what}"))?;
            }
        }
        readers.reload().map_err(|what| format!("checkpoint at the end: {what}"))?;
        let held = self.held.zip(before).map_or(0, |(held, before)| held().saturating_sub(before));
        if held > HELD_BASE + HELD_PER_BYTE * size + HELD_PER_RECORD * records.len() {
            return Err(format!("{held} bytes held after {size} bytes in {} records", records.len()));
        }
        Ok(())
    }
}

struct Readers {
    rows: PartitionState,
    bare: PartitionState,
    loaded: PartitionState,
}

impl Readers {
    fn new() -> Self {
        let new = |rows| PartitionState::new(samples::PARTITION, rows);
        Self { rows: new(true), bare: new(false), loaded: new(true) }
    }

    fn take(&mut self, record: &Record) -> Result<&'static str, String> {
        match self.rows.admit(Offset(record.offset)) {
            Admission::Next => {}
            Admission::Seen => return Ok("seen"),
            Admission::Gap => return Ok("gap"),
        }
        let parts = RecordParts { headers: record.headers(), value: record.value.as_deref() };
        let outcome = match decode(parts) {
            Err(_) => {
                self.all().into_iter().for_each(|reader| reader.quarantine(record.broker_ms));
                "quarantined"
            }
            Ok(event) => {
                let key = RecordKey::parse(record.key.as_deref());
                self.fold(&Folded { offset: Offset(record.offset), broker_ms: record.broker_ms, key, event })?
            }
        };
        for reader in [&self.rows, &self.bare, &self.loaded] {
            checks::state(reader)?;
        }
        let hashes = [self.rows.hash(), self.bare.hash(), self.loaded.hash()];
        if hashes == [hashes[0]; 3] { Ok(outcome) } else { Err(format!("{outcome}: hashes differ: {hashes:x?}")) }
    }

    fn fold(&mut self, record: &Folded) -> Result<&'static str, String> {
        let before = self.bare.clone();
        let [rows, bare, loaded] = self.all().map(|reader| reader.apply(record));
        if rows != loaded {
            return Err(format!("{rows:?}, but from a checkpoint {loaded:?}"));
        }
        if !checks::same(&rows, &bare) {
            return Err(format!("{rows:?}, but without rows {bare:?}"));
        }
        checks::record(&before, record, &bare, &self.bare)?;
        Ok(match &bare {
            Verdict::Rejected(reason) => reason.as_str(),
            Verdict::Accepted(_) => record.event.kind.as_str(),
        })
    }

    fn all(&mut self) -> [&mut PartitionState; 3] {
        [&mut self.rows, &mut self.bare, &mut self.loaded]
    }

    // The third reader is replaced by what its checkpoint says; what the first one would store must
    // be the very same bytes.
    fn reload(&mut self) -> Result<(), String> {
        let parts = self.loaded.freeze().parts();
        if parts != self.rows.freeze().parts() {
            return Err("two readers at one offset store different bytes".to_owned());
        }
        let chunk = |hash| parts.chunks.iter().find(|(h, _)| *h == hash).map(|(_, bytes)| Bytes::clone(bytes));
        self.loaded =
            checkpoint::load(&parts.manifest, true, &task_core::STANDARD, chunk).map_err(|e| e.to_string())?;
        let bare = checkpoint::load(&parts.manifest, false, &task_core::STANDARD, chunk).map_err(|e| e.to_string())?;
        if bare.hash() != self.bare.hash() {
            return Err("loaded without rows the hash is another".to_owned());
        }
        checks::rows(&self.rows, &self.loaded)?;
        ready::deciders(&self.rows)
    }
}
