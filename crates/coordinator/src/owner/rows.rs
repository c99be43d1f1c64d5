//! Writing owed rows, and remembering how far they are acknowledged.

use snapshot_store::{RowWrite, StoreError};
use task_core::{Pen, Record, Row, Verdict, pen_of};
use task_events::Kind;

use super::asking::Call;
use super::owed::Owes;
use super::{Alarm, Effect, Now, Owner, Phase, Ticket};
use crate::derived::{Changed, Derived, beside_row, closed_row, derive, key_row, open_row};

/// Rows in one write; a partition has one under way. What waits meanwhile may change again, which is one write
/// less: the slower the store, the fewer rows it is given.
const ROWS_PER_WRITE: usize = 128;

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
        let due = if self.rows_writing { Vec::new() } else { self.owed.take_due(now.boot_ms, ROWS_PER_WRITE) };
        if !due.is_empty() {
            let rows = due.iter().filter_map(|what| self.row_of(*what)).collect();
            let ticket = self.ticket(Call::Rows(due));
            self.rows_writing = true;
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
        // A hand-over waits for its rows, so they wait for nothing.
        let wait = |ms: u64| now.boot_ms.saturating_add(if self.draining.is_some() { 0 } else { ms });
        let (lag, handed_on) = (wait(self.cfg.row_lag_ms), wait(self.cfg.pen_lag_ms));
        let Derived { clock_us, task, beside, key } = derive(&self.fold, record, verdict);
        if let Some((task, entry)) = beside {
            self.owed.add_overflow(task, clock_us, entry, lag);
        }
        match task {
            Changed::Closed(closed) => {
                let bytes = self.row_bytes(&closed.row);
                self.owed.close(closed.clone(), record.offset, handed_on, bytes);
            }
            Changed::Open(id) => {
                let hands_on = verdict.rejected().is_none()
                    && self.fold.tasks.get(id).is_some_and(|slot| {
                        pen_of(&slot.core) != Pen::Owner || record.event.kind == Kind::TaskReplayPlanned
                    });
                self.owed.open(id, record.offset, if hands_on { handed_on } else { lag }, OPEN_BYTES);
            }
            Changed::Nothing => {}
        }
        if let Some(row) = key {
            self.owed.add_key(clock_us, row, record.offset, lag);
        }
    }

    fn row_of(&self, what: Owes) -> Option<RowWrite> {
        match what {
            Owes::Task(id) => match (self.fold.tasks.get(id), self.owed.closed(id)) {
                (Some(slot), _) => open_row(slot),
                (None, Some(closed)) => Some(closed_row(closed)),
                (None, None) => None,
            },
            Owes::Key(key) => {
                let (clock_us, row) = self.owed.key_with_clock(&key)?.clone();
                Some(key_row(clock_us, row))
            }
            Owes::Overflow(task, at) => {
                let (clock_us, entry) = self.owed.overflow_entry(task, at)?;
                Some(beside_row(clock_us, task, entry))
            }
        }
    }

    /// Rows were written, or not: the row clock makes writing them again harmless.
    pub(super) fn rows_written(&mut self, now: Now, ticket: Ticket, answer: Result<(), StoreError>) {
        let Some(Call::Rows(rows)) = self.calls.remove(&ticket) else { return };
        self.rows_writing = false;
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
