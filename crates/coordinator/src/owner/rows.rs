//! Writing owed rows, and remembering how far they are acknowledged.

use snapshot_store::{KeyRow, RowKind, RowWrite, SnapshotRow, StoreError};
use task_core::{Change, HistoryEntry, Pen, Record, Row, Verdict, pen_of};
use task_events::{Body, Kind, RecordKey};

use super::asking::Call;
use super::owed::Owes;
use super::{Alarm, Effect, Now, Owner, Phase, Ticket};

/// Rows in one write, and writes under way, per partition.
const ROWS_PER_WRITE: usize = 128;
pub(super) const WRITES: usize = 4;

/// What an open task's owed row holds in memory: the fact alone, the row is the fold's.
const OPEN_BYTES: usize = 256;

/// Pause after a failed write, ms.
const RETRY_MS: u64 = 250;

/// Pause between notes of the acknowledged offset, ms (design.md §4.9: each second).
const ACKED_EVERY_MS: u64 = 1_000;

impl Owner {
    /// Estimate of what an owed row holds in memory.
    pub(super) fn row_bytes(&self, row: &Row) -> usize {
        let texts = row.created.labels.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>();
        1024 + texts + row.history.coded_len() + row.steps.len() * 96
    }

    /// Writes what is due.
    pub(super) fn flush_rows(&mut self, now: Now) {
        while self.rows_writing < WRITES {
            let due = self.owed.take_due(now.boot_ms, ROWS_PER_WRITE);
            if due.is_empty() {
                break;
            }
            let rows = due.iter().filter_map(|what| self.row_of(*what)).collect();
            let ticket = self.ticket(Call::Rows(due));
            self.rows_writing += 1;
            self.out.push(Effect::WriteRows(ticket, rows));
        }
        self.note_acked(now);
    }

    /// Derives what the record makes the store owe: also while folding, since a successor owes what
    /// its predecessor did not get acknowledged.
    pub(super) fn owe(&mut self, now: Now, record: &Record, verdict: &Verdict) {
        let again = self.rules.owed_again || self.phase == Phase::Owning;
        if record.offset < self.acked || !again {
            return;
        }
        let clock = self.fold.row_clock_us;
        let entry = HistoryEntry { offset: record.offset, rejected: verdict.rejected() };
        // A hand-over waits for its rows, so they wait for nothing.
        let wait = |ms: u64| now.boot_ms.saturating_add(if self.draining.is_some() { 0 } else { ms });
        let (lag, handed_on) = (wait(self.cfg.row_lag_ms), wait(self.cfg.pen_lag_ms));
        match (verdict, record.key) {
            (Verdict::Accepted(Change::Closed(closed) | Change::Reviewed(closed)), _) => {
                let bytes = self.row_bytes(&closed.row);
                if closed.row.history_overflow > 0 {
                    self.owed.add_overflow(closed.core.id, clock, entry, lag);
                }
                self.owed.close((**closed).clone(), record.offset, handed_on, bytes);
            }
            (_, RecordKey::Task(id)) => match self.fold.tasks.get(id) {
                Some(slot) => {
                    let hands_on = verdict.rejected().is_none()
                        && (pen_of(&slot.core) != Pen::Owner || record.event.kind == Kind::TaskReplayPlanned);
                    // What does not fit into the row's history gets a row of its own.
                    if slot.row.as_ref().is_some_and(|row| row.history_overflow > 0) {
                        self.owed.add_overflow(id, clock, entry, lag);
                    }
                    self.owed.open(id, record.offset, if hands_on { handed_on } else { lag }, OPEN_BYTES);
                }
                // Written without reading: whether there is such a task is not known here.
                None if id.partition() == self.partition() => self.owed.add_overflow(id, clock, entry, lag),
                None => {}
            },
            (_, RecordKey::Control(_) | RecordKey::Other) => {}
        }
        if let (Body::TaskCreated(created), Verdict::Accepted(_), Some(task_id)) =
            (&record.event.body, verdict, record.event.task_id)
            && let Some(key_hash) = created.key_hash
        {
            let created_at = record.event.event_time;
            let row = KeyRow { key_hash, request_hash: created.request_hash, task_id, created_at };
            self.owed.add_key(clock, row, record.offset, lag);
        }
    }

    fn row_of(&self, what: Owes) -> Option<RowWrite> {
        match what {
            Owes::Task(id) => {
                let (core, row, closed_at) = match (self.fold.tasks.get(id), self.owed.closed(id)) {
                    (Some(slot), _) => (slot.core, slot.row.clone()?, None),
                    (None, Some(closed)) => (closed.core, closed.row.clone(), Some(closed.closed_at_offset)),
                    (None, None) => return None,
                };
                let timestamp_us = row.row_clock_us;
                Some(RowWrite { timestamp_us, row: RowKind::Snapshot(SnapshotRow { core, row, closed_at }) })
            }
            Owes::Key(key) => {
                let (timestamp_us, row) = self.owed.key_with_clock(&key)?.clone();
                Some(RowWrite { timestamp_us, row: RowKind::Key(row) })
            }
            Owes::Overflow(task_id, at) => {
                let (timestamp_us, entry) = self.owed.overflow_entry(task_id, at)?;
                Some(RowWrite { timestamp_us, row: RowKind::HistoryOverflow { task_id, entry } })
            }
        }
    }

    /// Rows were written, or not: the row clock makes writing them again harmless.
    pub(super) fn rows_written(&mut self, now: Now, ticket: Ticket, answer: Result<(), StoreError>) {
        let Some(Call::Rows(rows)) = self.calls.remove(&ticket) else { return };
        self.rows_writing = self.rows_writing.saturating_sub(1);
        match answer {
            Ok(()) => self.owed.acknowledged(&rows),
            Err(_) => {
                self.alarm(Alarm::StoreUnavailable);
                self.owed.failed(&rows, now.boot_ms + RETRY_MS);
            }
        }
        self.acked = self.acked.max(self.owed.acked_below(self.fold.next_offset));
        self.publish_checkpoint();
    }

    // Only an owner may speak for the partition: a reader that merely folds owes nothing yet.
    fn note_acked(&mut self, now: Now) {
        let below = self.owed.acked_below(self.fold.next_offset);
        let due = now.boot_ms >= self.acked_at_ms + ACKED_EVERY_MS;
        if due && below > self.acked_sent && self.phase == Phase::Owning {
            self.acked = self.acked.max(below);
            self.acked_sent = below;
            self.acked_at_ms = now.boot_ms;
            self.out.push(Effect::PutAcked(below));
            self.publish_checkpoint();
        }
    }
}
