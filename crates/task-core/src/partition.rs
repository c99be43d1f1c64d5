//! A partition's state: what every reader of the partition folds alike.

use std::collections::BTreeSet;
use std::ops::AddAssign;

use task_events::{EventId, Incarnation, Offset, OwnerSeq, PartitionEpoch, PartitionId, RuleVersion, TaskId, Text};

use crate::rules::{self, Rules};
use crate::{NotedReports, Reason, TaskTable};

/// Entity tag of the partition's own fields in canonical bytes.
pub const ENTITY_PARTITION: u8 = 0;

/// Who claimed the partition last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Instance name.
    pub instance: Text,
    /// Process.
    pub incarnation: Incarnation,
    /// Where its edge answers.
    pub url: Text,
    /// Its claim.
    pub claim: EventId,
}

/// What became of the records, for invariant 19: accepted + rejected + quarantined = end − start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accepted task events, annotations, reports and seals.
    pub applied: u64,
    /// Accepted control records.
    pub control: u64,
    /// Rejected records, by [`Reason`].
    pub rejected: [u64; Reason::ALL.len()],
    /// Malformed records.
    pub quarantined: u64,
}

impl Counters {
    /// All rejected records.
    pub fn rejected_total(&self) -> u64 {
        self.rejected.iter().sum()
    }

    /// All records.
    pub fn total(&self) -> u64 {
        self.applied + self.control + self.rejected_total() + self.quarantined
    }
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, other: &Counters) {
        self.applied += other.applied;
        self.control += other.control;
        self.quarantined += other.quarantined;
        self.rejected.iter_mut().zip(other.rejected).for_each(|(a, b)| *a += b);
    }
}

/// Identity of the record before a position: a checkpoint names it, so that a reader notices that
/// it was given another log (design.md §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRecord {
    /// Its offset.
    pub offset: Offset,
    /// Its event id; `None` when it was malformed.
    pub event_id: Option<EventId>,
    /// CRC32C of its value as computed by the reader.
    pub crc32c: u32,
}

/// Whether a record is the next one to fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Fold it.
    Next,
    /// Already folded: a reader may deliver an offset twice; ignore and count it.
    Seen,
    /// Offsets are missing before it: the log or the reader is broken, stop with an alarm.
    Gap,
}

/// State of one partition at [`PartitionState::next_offset`].
#[derive(Clone, Debug)]
pub struct PartitionState {
    pub(crate) rules: &'static Rules,
    pub(crate) keep_rows: bool,
    /// Which partition.
    pub partition: PartitionId,
    /// Offset of the next record to fold.
    pub next_offset: Offset,
    /// Current ownership; 0 = never owned.
    pub epoch: PartitionEpoch,
    /// Highest owner_seq accepted in it.
    pub owner_seq: OwnerSeq,
    /// Highest id accepted in a TaskCreated.
    pub highest: TaskId,
    /// Row clock, µs: rises with every offset, for row timestamps only (design.md §4.11).
    pub row_clock_us: i64,
    /// Active acceptance rules.
    pub active_rules: RuleVersion,
    /// Paused queues.
    pub paused_queues: BTreeSet<Text>,
    /// Last claimant; not hashed.
    pub owner: Option<Owner>,
    /// What became of the records since offset 0; not hashed.
    pub counters: Counters,
    /// Executions with a RejectedReport, where rows are kept; not hashed.
    pub noted: NotedReports,
    /// Last record folded, as its reader noted it; not hashed.
    pub last: Option<LastRecord>,
    /// Open tasks.
    pub tasks: TaskTable,
}

impl PartitionState {
    /// The state before offset 0. `keep_rows` for readers that need more than the judged state.
    pub fn new(partition: PartitionId, keep_rows: bool) -> Self {
        Self::with_rules(partition, keep_rows, &rules::STANDARD)
    }

    /// As [`PartitionState::new`], under other rules: for mutation searches only.
    pub fn with_rules(partition: PartitionId, keep_rows: bool, rules: &'static Rules) -> Self {
        Self {
            rules,
            keep_rows,
            partition,
            next_offset: Offset(0),
            epoch: PartitionEpoch(0),
            owner_seq: OwnerSeq(0),
            highest: TaskId::ZERO,
            row_clock_us: 0,
            active_rules: RuleVersion(1),
            paused_queues: BTreeSet::new(),
            owner: None,
            counters: Counters::default(),
            noted: NotedReports::default(),
            last: None,
            tasks: TaskTable::default(),
        }
    }

    /// Whether the record at `offset` is the next one.
    pub fn admit(&self, offset: Offset) -> Admission {
        match offset.cmp(&self.next_offset) {
            std::cmp::Ordering::Equal => Admission::Next,
            std::cmp::Ordering::Less => Admission::Seen,
            std::cmp::Ordering::Greater => Admission::Gap,
        }
    }

    /// Passes over a malformed record: nothing changes but the row clock and the counter.
    pub fn quarantine(&mut self, broker_ms: i64) {
        self.step(broker_ms);
        self.counters.quarantined += 1;
    }

    /// State hash: sum mod 2^128 over open tasks and own fields (`schemas/state.md`).
    pub fn hash(&self) -> u128 {
        self.tasks.hash_sum().wrapping_add(xxhash_rust::xxh3::xxh3_128(&self.canonical()))
    }

    /// Canonical bytes of the partition's own fields (`schemas/state.md`).
    pub fn canonical(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.push(ENTITY_PARTITION);
        out.extend_from_slice(&self.partition.0.to_be_bytes());
        out.extend_from_slice(&self.epoch.0.to_be_bytes());
        out.extend_from_slice(&self.owner_seq.0.to_be_bytes());
        out.extend_from_slice(&self.highest.raw().to_be_bytes());
        out.extend_from_slice(&self.row_clock_us.to_be_bytes());
        out.extend_from_slice(&self.active_rules.0.to_be_bytes());
        out.extend_from_slice(&(self.paused_queues.len() as u32).to_be_bytes());
        for queue in &self.paused_queues {
            out.extend_from_slice(&(queue.len() as u32).to_be_bytes());
            out.extend_from_slice(queue.as_bytes());
        }
        out
    }

    // Once per offset, whatever the verdict: two rows of one partition never share a timestamp.
    pub(crate) fn step(&mut self, broker_ms: i64) {
        self.next_offset.0 += 1;
        self.row_clock_us = self.row_clock_us.saturating_add(1).max(broker_ms.saturating_mul(1000));
    }
}
