//! One record on one state, judged by production code: load, apply, compare with the invariants.

use std::sync::Arc;

use task_core::invariants::{self, Violation};
use task_core::{Change, Closed, CoreState, History, PartitionState, Reason, Record, Row, Rules, Slot, Verdict};
use task_events::{OwnerSeq, PartitionEpoch, RuleVersion, TaskId};

use crate::subject::{PARTITION, QUEUE, TASKS, task_id};

/// Everything of a partition's state that a verdict or a decision can depend on. Offsets, row
/// clock and counters are left out: no rule reads them, and [`Bench`] checks what they promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// Current ownership.
    pub epoch: PartitionEpoch,
    /// Highest owner_seq accepted in it.
    pub owner_seq: OwnerSeq,
    /// Highest id created.
    pub highest: TaskId,
    /// Active rules.
    pub rules: RuleVersion,
    /// Whether the queue is paused.
    pub paused: bool,
    /// The open tasks, each with the number of its row in [`Rows`].
    pub tasks: [Option<(CoreState, u32)>; TASKS],
}

impl Default for Fold {
    fn default() -> Self {
        Self {
            epoch: PartitionEpoch(0),
            owner_seq: OwnerSeq(0),
            highest: TaskId::ZERO,
            rules: RuleVersion(1),
            paused: false,
            tasks: [None; TASKS],
        }
    }
}

impl Fold {
    /// An open task's judged state.
    pub fn core(&self, task: usize) -> Option<&CoreState> {
        self.tasks.get(task)?.as_ref().map(|(core, _)| core)
    }

    /// Bytes that tell two folds apart: the production's canonical bytes and the rows' numbers.
    pub fn fingerprint(&self) -> u128 {
        let mut bytes = Vec::with_capacity(192);
        bytes.extend_from_slice(&self.epoch.0.to_le_bytes());
        bytes.extend_from_slice(&self.owner_seq.0.to_le_bytes());
        bytes.extend_from_slice(&self.highest.raw().to_le_bytes());
        bytes.extend_from_slice(&self.rules.0.to_le_bytes());
        bytes.push(u8::from(self.paused));
        for (core, row) in self.tasks.iter().flatten() {
            bytes.extend_from_slice(&core.canonical());
            bytes.extend_from_slice(&row.to_le_bytes());
        }
        xxhash_rust::xxh3::xxh3_128(&bytes)
    }
}

/// Rows of open tasks, each kept once.
#[derive(Default)]
pub struct Rows {
    rows: Vec<Arc<Row>>,
    by_print: hashbrown::HashMap<u128, u32, foldhash::fast::FixedState>,
}

impl Rows {
    /// The row with this number.
    pub fn get(&self, row: u32) -> &Arc<Row> {
        &self.rows[row as usize]
    }

    // The number of a row, without what depends on offsets: it explains, nothing is decided by it.
    fn number(&mut self, row: &Row) -> u32 {
        let row = plain(row);
        let print = print_of(&row);
        let next = self.rows.len() as u32;
        *self.by_print.entry(print).or_insert_with(|| {
            self.rows.push(Arc::new(row));
            next
        })
    }
}

/// A row without what only tells when it was last written: history, clock, active rules.
pub fn plain(row: &Row) -> Row {
    let mut row = row.clone();
    row.history = History::default();
    row.history_overflow = 0;
    row.row_clock_us = 0;
    row.rule_version = RuleVersion::default();
    row
}

/// Hash of anything by its debug text: for values without `Hash`, of which there are few.
pub fn print_of(value: &impl std::fmt::Debug) -> u128 {
    use std::fmt::Write as _;
    struct Hashed(xxhash_rust::xxh3::Xxh3);
    impl std::fmt::Write for Hashed {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut out = Hashed(xxhash_rust::xxh3::Xxh3::new());
    let _ = write!(out, "{value:?}");
    out.0.digest128()
}

/// What one record did.
#[derive(Clone, Debug)]
pub struct Judged {
    /// State after it.
    pub fold: Fold,
    /// Reason, if it was rejected.
    pub rejected: Option<Reason>,
    /// The task it closed, or the closed task it reviewed.
    pub closed: Option<Closed>,
    /// An invariant it broke, as far as one record and the state before tell.
    pub broken: Option<Violation>,
}

/// Two production states to work on: before and after the record.
pub struct Bench {
    before: PartitionState,
    after: PartitionState,
    loaded: Option<Fold>,
}

impl Bench {
    /// A bench under these rules.
    pub fn new(rules: &'static Rules) -> Self {
        let fresh = || PartitionState::with_rules(PARTITION, true, rules);
        Self { before: fresh(), after: fresh(), loaded: None }
    }

    /// The state before the last record, for predicates that want a whole partition.
    pub fn partition(&self) -> &PartitionState {
        &self.before
    }

    /// Judges one record.
    pub fn judge(&mut self, fold: &Fold, rows: &mut Rows, record: &Record) -> Judged {
        if self.loaded.as_ref() != Some(fold) {
            load(&mut self.before, fold, rows);
            load(&mut self.after, fold, rows);
        }
        let verdict = self.after.apply(record);
        let broken = invariants::ownership(&self.before, &record.event, &verdict)
            .and_then(|()| invariants::adds_up(&self.after))
            .err();
        let closed = match verdict {
            Verdict::Rejected(reason) => {
                self.loaded = Some(*fold);
                let same = invariants::unchanged(&self.before, &self.after, record).err();
                return Judged { fold: *fold, rejected: Some(reason), closed: None, broken: broken.or(same) };
            }
            Verdict::Accepted(Change::Closed(closed) | Change::Reviewed(closed)) => Some(*closed),
            Verdict::Accepted(_) => None,
        };
        self.loaded = None;
        let mut tasks = [None; TASKS];
        for (n, task) in tasks.iter_mut().enumerate() {
            if let Some(Slot { core, row: Some(row) }) = self.after.tasks.get(task_id(n)) {
                // Most records leave one of the two tasks alone.
                let old = fold.tasks[n].filter(|(_, old)| Arc::ptr_eq(rows.get(*old), row));
                *task = Some((*core, old.map_or_else(|| rows.number(row), |(_, number)| number)));
            }
        }
        let fold = Fold {
            epoch: self.after.epoch,
            owner_seq: self.after.owner_seq,
            highest: self.after.highest,
            rules: self.after.active_rules,
            paused: !self.after.paused_queues.is_empty(),
            tasks,
        };
        Judged { fold, rejected: None, closed, broken }
    }
}

fn load(state: &mut PartitionState, fold: &Fold, rows: &Rows) {
    (state.epoch, state.owner_seq, state.highest) = (fold.epoch, fold.owner_seq, fold.highest);
    (state.active_rules, state.row_clock_us) = (fold.rules, 0);
    state.paused_queues.clear();
    if fold.paused {
        state.paused_queues.insert(QUEUE);
    }
    let strangers: Vec<TaskId> = state.tasks.iter().map(|slot| slot.core.id).collect();
    for id in strangers {
        state.tasks.remove(id);
    }
    for (core, row) in fold.tasks.iter().flatten() {
        state.tasks.insert(Slot { core: *core, row: Some(Arc::clone(rows.get(*row))) });
    }
}
