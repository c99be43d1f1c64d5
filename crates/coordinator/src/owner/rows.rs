//! Writing owed rows, and remembering how far they are acknowledged.

use snapshot_store::{RowKind, RowWrite, SnapshotRow, StoreError};
use task_core::Row;

use super::asking::Call;
use super::owed::Owes;
use super::{Alarm, Effect, Now, Owner, Ticket};

/// Rows in one write, and writes under way, per partition.
const ROWS_PER_WRITE: usize = 128;
const WRITES: usize = 4;

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
            Ok(()) => self.owed.acknowledged(&rows, now.boot_ms, self.cfg.row_lag_ms),
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
        if due && below > self.acked_sent && self.phase == super::Phase::Owning {
            self.acked = self.acked.max(below);
            self.acked_sent = below;
            self.acked_at_ms = now.boot_ms;
            self.out.push(Effect::PutAcked(below));
            self.publish_checkpoint();
        }
    }
}
