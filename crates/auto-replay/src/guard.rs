//! The consistency guard: does the snapshot row say what the fold says?
//!
//! Pure bookkeeping per task: when to read the row, for how long to wait, what the rows read so far
//! mean. A row is good once it holds the event that gave the pen. One that is behind is read again, less
//! and less often, for 5 s at most; then the log alone is the witness.

use std::collections::{BTreeMap, BTreeSet};

use snapshot_store::SnapshotRow;
use task_core::decide::View;
use task_events::{EventSequence, Offset, TaskId, Witness};

use crate::ReplayConfig;

/// Longest wait before a row that is behind is read again, ms.
const PAUSE_MAX_MS: u64 = 1_000;

/// What the guard says about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// Plan, with this witness.
    Plan(Witness),
    /// Look again at this boot time, or when a row was read.
    Wait(u64),
    /// Snapshot and log differ: no plan. Look again at this boot time.
    Differs(u64),
}

/// Snapshot and log differ about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub task: TaskId,
    /// How.
    pub detail: String,
}

#[derive(Debug)]
struct Entry {
    version: EventSequence,
    give_up_at: u64,
    read_at: u64,
    /// Wait before the next look, ms.
    pause: u64,
    reading: bool,
    found: Found,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Agrees,
    Differs,
}

impl Entry {
    // A row that is behind is late because the store is: looking more often makes it later.
    fn read_ended(&mut self, now: u64) {
        (self.reading, self.read_at) = (false, now.saturating_add(self.pause));
        self.pause = (self.pause * 2).min(PAUSE_MAX_MS);
    }
}

/// The guard of one partition.
#[derive(Debug)]
pub struct Guard {
    wait_ms: u64,
    reread_ms: u64,
    batch: usize,
    parallel: usize,
    entries: BTreeMap<TaskId, Entry>,
    to_read: BTreeSet<TaskId>,
    reads: usize,
}

impl Guard {
    /// A guard that knows no task yet.
    pub fn new(config: &ReplayConfig) -> Self {
        Self {
            wait_ms: config.guard_wait_ms,
            reread_ms: config.guard_reread_ms,
            batch: config.batch,
            parallel: config.parallel,
            entries: BTreeMap::new(),
            to_read: BTreeSet::new(),
            reads: 0,
        }
    }

    /// What is known about a task whose pen is ours at `version`; asks for its row if need be.
    pub fn opinion(&mut self, task: TaskId, version: EventSequence, now: u64) -> Opinion {
        let fresh = || Entry {
            version,
            give_up_at: now.saturating_add(self.wait_ms),
            read_at: now,
            pause: self.reread_ms,
            reading: false,
            found: Found::Nothing,
        };
        let entry = self.entries.entry(task).or_insert_with(fresh);
        if entry.version != version {
            *entry = fresh();
        }
        if entry.found == Found::Agrees {
            return Opinion::Plan(Witness::SnapshotAndLog);
        }
        if entry.found == Found::Nothing && now >= entry.give_up_at {
            return Opinion::Plan(Witness::LogOnly);
        }
        if !entry.reading && now >= entry.read_at {
            entry.reading = true;
            self.to_read.insert(task);
        }
        // While a read is out its end brings the task back; until then only the end of the wait.
        let next = if entry.reading { entry.give_up_at.max(now + 1) } else { entry.read_at };
        match entry.found {
            Found::Differs => Opinion::Differs(next),
            Found::Nothing | Found::Agrees => Opinion::Wait(next.min(entry.give_up_at)),
        }
    }

    /// The next batch of rows to read, as long as not too many reads are out.
    pub fn next_batch(&mut self) -> Option<Vec<TaskId>> {
        if self.to_read.is_empty() || self.reads >= self.parallel {
            return None;
        }
        let batch: Vec<_> = self.to_read.iter().take(self.batch).copied().collect();
        batch.iter().for_each(|task| {
            self.to_read.remove(task);
        });
        self.reads += 1;
        Some(batch)
    }

    /// A batched read has ended, whatever it brought.
    pub fn read_ended(&mut self) {
        self.reads = self.reads.saturating_sub(1);
    }

    /// Takes in what the store has for a task whose pen is ours since the event at `since`.
    pub fn row(
        &mut self,
        task: TaskId,
        (view, since): (View<'_>, Offset),
        row: Option<&SnapshotRow>,
        now: u64,
    ) -> Option<Finding> {
        let entry = self.entries.get_mut(&task).filter(|entry| entry.version == view.core.version)?;
        entry.read_ended(now);
        let row = row?;
        let at = row.row.applied_offset;
        // A row ahead of our fold is judged once the fold has caught up with it.
        if at < since || at > view.row.applied_offset {
            return None;
        }
        match difference(view, row) {
            None => {
                entry.found = Found::Agrees;
                None
            }
            Some(detail) => {
                let news = entry.found != Found::Differs;
                // People must look; a row that is repaired is seen at the next look.
                (entry.found, entry.read_at) = (Found::Differs, now.saturating_add(self.wait_ms));
                news.then_some(Finding { task, detail })
            }
        }
    }

    /// The store could not answer for a task.
    pub fn unread(&mut self, task: TaskId, now: u64) {
        if let Some(entry) = self.entries.get_mut(&task) {
            entry.read_ended(now);
        }
    }

    /// The pen is no longer ours.
    pub fn forget(&mut self, task: TaskId) {
        self.entries.remove(&task);
        self.to_read.remove(&task);
    }
}

// Between the event that gave the pen and the last annotation nothing changes the judged state, so
// every row of that stretch must hold exactly the fold's.
fn difference(view: View<'_>, row: &SnapshotRow) -> Option<String> {
    if row.core != *view.core {
        return Some(format!("snapshot says {:?}, log says {:?}", row.core, view.core));
    }
    if row.row.steps != view.row.steps {
        return Some(format!("snapshot has steps {:?}, log has {:?}", row.row.steps, view.row.steps));
    }
    None
}
