//! Owed rows: derived from the log, not yet acknowledged by the store (design.md §4.9).
//!
//! An open task owes only the fact that its row is behind: the row is built from the fold when it
//! is written, so a short task costs one write. A closed task is forgotten by the fold, so what it
//! owes is kept here whole, and is what closed-task commands are answered from first (§4.8).

use std::collections::{BTreeMap, BTreeSet};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use snapshot_store::KeyRow;
use task_core::{Closed, HistoryEntry};
use task_events::{Offset, Sha256Hash, TaskId};

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Owes {
    /// Snapshot of a task, open or closed.
    Task(TaskId),
    /// Idempotency key.
    Key(Sha256Hash),
    /// History entry beyond what a row holds.
    Overflow(TaskId, Offset),
}

#[derive(Clone, Debug)]
struct Entry {
    /// First offset whose effect is not acknowledged.
    since: Offset,
    /// Last offset that changed it; an acknowledgement of less leaves it owed.
    changed: Offset,
    due_ms: u64,
    /// When it was due first; a write that fails is tried later, and is no less late for that.
    first_due_ms: u64,
    bytes: usize,
    writing: Option<Offset>,
}

/// The owed rows of a partition.
#[derive(Debug, Default)]
pub(super) struct Owed {
    entries: HashMap<Owes, Entry, FixedState>,
    by_since: BTreeSet<(Offset, Owes)>,
    due: BTreeSet<(u64, Owes)>,
    closed: HashMap<TaskId, Closed, FixedState>,
    keys: HashMap<Sha256Hash, (i64, KeyRow), FixedState>,
    overflow: BTreeMap<(TaskId, Offset), (i64, HistoryEntry)>,
    bytes: usize,
}

impl Owed {
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How long the one that is owed longest is overdue, ms.
    pub(super) fn overdue_ms(&self, now_ms: u64) -> u64 {
        let oldest = self.by_since.first().and_then(|(_, what)| self.entries.get(what));
        oldest.map_or(0, |entry| now_ms.saturating_sub(entry.first_due_ms))
    }

    /// A closed task that the store may not show yet.
    pub(super) fn closed(&self, task: TaskId) -> Option<&Closed> {
        self.closed.get(&task)
    }

    /// Closed tasks that the store may not show yet, in no order that means anything.
    pub(super) fn closed_ids(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.closed.keys().copied()
    }

    /// Tasks whose row the store may not show yet, in no order that means anything.
    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.entries.keys().filter_map(|what| match what {
            Owes::Task(task) => Some(*task),
            Owes::Key(_) | Owes::Overflow(..) => None,
        })
    }

    /// A key that the store may not show yet.
    pub(super) fn key(&self, key: &Sha256Hash) -> Option<&KeyRow> {
        self.keys.get(key).map(|(_, row)| row)
    }

    pub(super) fn key_with_clock(&self, key: &Sha256Hash) -> Option<&(i64, KeyRow)> {
        self.keys.get(key)
    }

    pub(super) fn overflow_entry(&self, task: TaskId, at: Offset) -> Option<(i64, HistoryEntry)> {
        self.overflow.get(&(task, at)).copied()
    }

    /// Offset below which every row is acknowledged; `next` when nothing is owed.
    pub(super) fn acked_below(&self, next: Offset) -> Offset {
        self.by_since.first().map_or(next, |(since, _)| *since)
    }

    /// An open task's row is behind.
    pub(super) fn open(&mut self, task: TaskId, at: Offset, due_ms: u64, bytes: usize) {
        self.closed.remove(&task);
        self.owe(Owes::Task(task), at, due_ms, bytes);
    }

    /// A task was closed (or reviewed).
    pub(super) fn close(&mut self, closed: Closed, at: Offset, due_ms: u64, bytes: usize) {
        let id = closed.core.id;
        self.closed.insert(id, closed);
        self.owe(Owes::Task(id), at, due_ms, bytes);
    }

    /// A task with a key was created.
    pub(super) fn add_key(&mut self, clock_us: i64, row: KeyRow, at: Offset, due_ms: u64) {
        let key = row.key_hash;
        self.keys.insert(key, (clock_us, row));
        self.owe(Owes::Key(key), at, due_ms, 160);
    }

    /// A record of a closed task, or one too many for its row.
    pub(super) fn add_overflow(&mut self, task: TaskId, clock_us: i64, entry: HistoryEntry, due_ms: u64) {
        self.overflow.insert((task, entry.offset), (clock_us, entry));
        self.owe(Owes::Overflow(task, entry.offset), entry.offset, due_ms, 64);
    }

    fn owe(&mut self, what: Owes, at: Offset, due_ms: u64, bytes: usize) {
        let entry = match self.entries.get_mut(&what) {
            Some(entry) => {
                self.due.remove(&(entry.due_ms, what));
                self.bytes = self.bytes.saturating_sub(entry.bytes);
                // The first change during a write starts a new wait; every other one only shortens it.
                let anew = entry.writing == Some(entry.changed);
                entry.due_ms = if anew { due_ms } else { entry.due_ms.min(due_ms) };
                entry
            }
            None => {
                self.by_since.insert((at, what));
                self.entries.entry(what).or_insert(Entry {
                    since: at,
                    changed: at,
                    due_ms,
                    first_due_ms: due_ms,
                    bytes,
                    writing: None,
                })
            }
        };
        entry.changed = at;
        entry.bytes = bytes;
        self.bytes += bytes;
        if entry.writing.is_none() {
            self.due.insert((entry.due_ms, what));
        }
    }

    /// Takes up to `limit` rows that are due, for writing now.
    pub(super) fn take_due(&mut self, now_ms: u64, limit: usize) -> Vec<Owes> {
        let mut out = Vec::new();
        while out.len() < limit {
            match self.due.first() {
                Some(&(due, what)) if due <= now_ms => {
                    self.due.pop_first();
                    if let Some(entry) = self.entries.get_mut(&what) {
                        entry.writing = Some(entry.changed);
                        out.push(what);
                    }
                }
                Some(_) | None => break,
            }
        }
        out
    }

    /// The rows of one write are acknowledged. What changed meanwhile stays owed.
    pub(super) fn acknowledged(&mut self, rows: &[Owes]) {
        for &what in rows {
            let Some(entry) = self.entries.get_mut(&what) else { continue };
            let written = entry.writing.take();
            if written == Some(entry.changed) {
                self.forget(what);
            } else {
                self.by_since.remove(&(entry.since, what));
                entry.since = written.map_or(entry.since, |w| Offset(w.0 + 1));
                entry.first_due_ms = entry.due_ms;
                self.by_since.insert((entry.since, what));
                self.due.insert((entry.due_ms, what));
            }
        }
    }

    /// A write failed or its outcome is unknown: write again later; the row clock makes that safe.
    pub(super) fn failed(&mut self, rows: &[Owes], retry_ms: u64) {
        for &what in rows {
            if let Some(entry) = self.entries.get_mut(&what) {
                entry.writing = None;
                entry.due_ms = retry_ms;
                self.due.insert((retry_ms, what));
            }
        }
    }

    /// Everything is due now: hand-over.
    pub(super) fn hurry(&mut self, now_ms: u64) {
        let all: Vec<_> = self.due.iter().copied().collect();
        for (due, what) in all {
            if due > now_ms {
                self.due.remove(&(due, what));
                self.due.insert((now_ms, what));
                if let Some(entry) = self.entries.get_mut(&what) {
                    entry.due_ms = now_ms;
                }
            }
        }
    }

    /// When the next row is due.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(due, _)| *due)
    }

    fn forget(&mut self, what: Owes) {
        if let Some(entry) = self.entries.remove(&what) {
            self.by_since.remove(&(entry.since, what));
            self.due.remove(&(entry.due_ms, what));
            self.bytes = self.bytes.saturating_sub(entry.bytes);
        }
        match what {
            Owes::Task(task) => {
                self.closed.remove(&task);
            }
            Owes::Key(key) => {
                self.keys.remove(&key);
            }
            Owes::Overflow(task, at) => {
                self.overflow.remove(&(task, at));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_while_it_is_written_stays_owed() {
        let task = TaskId::from_raw(1).unwrap();
        let mut owed = Owed::default();
        owed.open(task, Offset(5), 100, 10);
        owed.open(task, Offset(7), 300, 20);
        assert_eq!((owed.bytes(), owed.acked_below(Offset(9)), owed.next_due()), (20, Offset(5), Some(100)));
        assert_eq!(owed.take_due(99, 10), []);
        let rows = owed.take_due(100, 10);
        assert_eq!(rows, [Owes::Task(task)]);
        owed.open(task, Offset(8), 400, 20);
        assert_eq!(owed.next_due(), None, "one write of a row at a time");
        owed.open(task, Offset(8), 350, 20);
        owed.acknowledged(&rows);
        assert_eq!((owed.acked_below(Offset(9)), owed.next_due()), (Offset(8), Some(350)));
        let rows = owed.take_due(350, 10);
        owed.failed(&rows, 460);
        assert_eq!((owed.len(), owed.overdue_ms(380), owed.overdue_ms(340)), (1, 30, 0));
        assert_eq!((owed.acked_below(Offset(9)), owed.next_due()), (Offset(8), Some(460)));
        let rows = owed.take_due(460, 10);
        owed.acknowledged(&rows);
        assert!(owed.is_empty());
        assert_eq!((owed.bytes(), owed.acked_below(Offset(9))), (0, Offset(9)));
    }
}
