//! What a record makes the store owe: pure, and one rule for whoever writes rows. The owner writes what
//! it has just read back; a rebuild writes the same from the log alone.

use snapshot_store::{KeyRow, RowKind, RowWrite, SnapshotRow};
use task_core::{Change, Closed, HistoryEntry, PartitionState, Record, Slot, Verdict};
use task_events::{Body, RecordKey, TaskId};

/// What a record leaves to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived<'a> {
    /// Row clock at the record, µs: the timestamp of what is written of it alone.
    pub clock_us: i64,
    /// The task whose row changed.
    pub task: Changed<'a>,
    /// A history entry of its own, beside the row.
    pub beside: Option<(TaskId, HistoryEntry)>,
    /// The row of an idempotency key.
    pub key: Option<KeyRow>,
}

/// A task whose row changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed<'a> {
    /// None did.
    Nothing,
    /// An open one: its row is the fold's.
    Open(TaskId),
    /// One that was closed, or reviewed: the fold has forgotten it.
    Closed(&'a Closed),
}

/// What a record leaves to be written; `fold` has just applied it with this verdict, and keeps rows.
pub fn derive<'a>(fold: &PartitionState, record: &Record, verdict: &'a Verdict) -> Derived<'a> {
    let entry = HistoryEntry { offset: record.offset, rejected: verdict.rejected() };
    let (task, beside) = match (verdict, record.key) {
        (Verdict::Accepted(Change::Closed(closed) | Change::Reviewed(closed)), _) => {
            (Changed::Closed(closed), (closed.row.history_overflow > 0).then_some((closed.core.id, entry)))
        }
        (_, RecordKey::Task(id)) => match fold.tasks.get(id) {
            Some(slot) => {
                // What does not fit into the row's history gets a row of its own.
                let beyond = slot.row.as_ref().is_some_and(|row| row.history_overflow > 0);
                (Changed::Open(id), beyond.then_some((id, entry)))
            }
            // Written without reading: whether there is such a task is not known here.
            None => (Changed::Nothing, (id.partition() == fold.partition).then_some((id, entry))),
        },
        (_, RecordKey::Control(_) | RecordKey::Other) => (Changed::Nothing, None),
    };
    Derived { clock_us: fold.row_clock_us, task, beside, key: key_of(record, verdict) }
}

fn key_of(record: &Record, verdict: &Verdict) -> Option<KeyRow> {
    let (Body::TaskCreated(created), Verdict::Accepted(_)) = (&record.event.body, verdict) else { return None };
    let (task_id, key_hash) = (record.event.task_id?, created.key_hash?);
    Some(KeyRow { key_hash, request_hash: created.request_hash, task_id, created_at: record.event.event_time })
}

/// The write of an open task's row; `None` of a fold that keeps no rows.
pub fn open_row(slot: &Slot) -> Option<RowWrite> {
    let row = slot.row.clone()?;
    let timestamp_us = row.row_clock_us;
    Some(RowWrite { timestamp_us, row: RowKind::Snapshot(SnapshotRow { core: slot.core, row, closed_at: None }) })
}

/// The write of a closed task's row.
pub fn closed_row(closed: &Closed) -> RowWrite {
    let (core, row, closed_at) = (closed.core, closed.row.clone(), Some(closed.closed_at_offset));
    RowWrite { timestamp_us: row.row_clock_us, row: RowKind::Snapshot(SnapshotRow { core, row, closed_at }) }
}

/// The write of a history entry beside a row.
pub const fn beside_row(clock_us: i64, task_id: TaskId, entry: HistoryEntry) -> RowWrite {
    RowWrite { timestamp_us: clock_us, row: RowKind::HistoryOverflow { task_id, entry } }
}

/// The write of a key's row.
pub const fn key_row(clock_us: i64, row: KeyRow) -> RowWrite {
    RowWrite { timestamp_us: clock_us, row: RowKind::Key(row) }
}
