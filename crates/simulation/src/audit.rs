//! The auditor: sees every record as it lands, every answer as it is given, every row as it is
//! written and every handler as it acts, and remembers what the fold forgets.
//!
//! It folds with the production fold, so a wrong rule shows in what follows from it: every
//! invariant of design.md §5 is asked after every record.

mod answers;
mod content;
mod handlers;
mod rows;

use std::sync::Arc;

use event_log::{OutRecord, RawRecord};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use task_core::invariants::{self, Before, Violation};
use task_core::{Change, ControlChange, CoreState, LastRecord, PartitionState, Reason, Record, Row, Rules, Verdict};
use task_events::{
    Body, Event, Incarnation, KindClass, Malformed, Offset, PartitionEpoch, PartitionId, RecordKey, Sha256Hash, TaskId,
};

use crate::exec::ProcId;

pub use answers::{Asked, OpId};
pub use handlers::Handlers;

pub(crate) type Map<K, V> = HashMap<K, V, FixedState>;
pub(crate) type Set<K> = HashSet<K, FixedState>;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Accepted.
    Accepted,
    /// Rejected.
    Rejected(Reason),
    /// Malformed.
    Quarantined(Malformed),
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Number of the invariant in design.md §5; 0 = another duty of the contract.
    pub invariant: u8,
    /// What was seen.
    pub what: String,
    /// When, true µs.
    pub at_us: u64,
    /// Partition and task concerned, if any.
    pub task: Option<TaskId>,
    /// Partition and offset of the record at which it showed, if at one.
    pub record: Option<(PartitionId, Offset)>,
}

/// What the store owes of one offset.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owes {
    Nothing,
    Row(TaskId),
    RowAndKey(TaskId, Sha256Hash),
    Overflow(TaskId),
}

/// A row as the reference fold had it.
#[derive(Clone, Debug)]
pub(crate) struct RowAt {
    pub offset: Offset,
    pub clock_us: i64,
    pub core: CoreState,
    pub row: Arc<Row>,
}

/// One partition.
pub struct PartAudit {
    /// The reference fold.
    pub fold: PartitionState,
    head: PartitionState,
    hashes: Vec<u128>,
    clocks: Vec<i64>,
    landed_us: Vec<u64>,
    owes: Vec<Owes>,
    /// Verdicts by offset.
    pub judged: Vec<Judged>,
    closed: Map<TaskId, CoreState>,
    rows: Map<TaskId, Vec<RowAt>>,
    keys: Map<Sha256Hash, content::KeyOf>,
    owner: Option<Incarnation>,
    acked_checked: u64,
    /// Tasks in the order of their birth.
    pub born: Vec<TaskId>,
}

/// The auditor.
pub struct Audit {
    /// Partitions.
    pub parts: Vec<PartAudit>,
    /// Handlers of all workers.
    pub handlers: Handlers,
    /// First broken promise.
    pub finding: Option<Finding>,
    /// Tasks born.
    pub tasks: u64,
    /// Claims accepted that came from another process than the one before.
    pub takeovers: u64,
    pub(crate) facts: answers::Facts,
    pub(crate) told: content::Told,
    expected: Option<Reason>,
    /// Epochs that each process had and has read.
    read: Map<(ProcId, PartitionId), (PartitionEpoch, PartitionEpoch)>,
    /// Records by their bytes, with the epoch their writer had read.
    sent: Map<u64, PartitionEpoch>,
    /// A task that just used up its retries.
    pub spent: Option<TaskId>,
    /// Longest that an answer from memory may be behind, µs.
    pub stale_us: u64,
    /// Tolerance of timers against the broker's clock, ms.
    pub early_ms: i64,
    /// Number of coordinator processes, which come first in the list of processes.
    pub coordinators: usize,
    now: u64,
}

impl Audit {
    /// An auditor of these partitions.
    pub fn new(partitions: u16, rules: &'static Rules) -> Self {
        let part = |p| PartAudit {
            fold: PartitionState::with_rules(PartitionId(p), true, rules),
            head: PartitionState::new(PartitionId(p), false),
            hashes: vec![PartitionState::new(PartitionId(p), true).hash()],
            clocks: Vec::new(),
            landed_us: Vec::new(),
            owes: Vec::new(),
            judged: Vec::new(),
            closed: Map::default(),
            rows: Map::default(),
            keys: Map::default(),
            owner: None,
            acked_checked: 0,
            born: Vec::new(),
        };
        Self {
            parts: (0..partitions).map(part).collect(),
            handlers: Handlers::default(),
            finding: None,
            tasks: 0,
            takeovers: 0,
            facts: answers::Facts::default(),
            told: content::Told::default(),
            expected: None,
            read: Map::default(),
            sent: Map::default(),
            spent: None,
            stale_us: 0,
            early_ms: 0,
            coordinators: 1,
            now: 0,
        }
    }

    /// Notes a broken promise; the first one counts.
    pub fn find(&mut self, invariant: u8, what: String, task: Option<TaskId>, record: Option<(PartitionId, Offset)>) {
        if self.finding.is_none() {
            self.finding = Some(Finding { invariant, what, at_us: self.now, task, record });
        }
    }

    /// The next record is a rogue's, and this must be the answer to it.
    pub fn expect(&mut self, reason: Option<Reason>) {
        self.expected = reason;
    }

    /// A process appends. Nothing is ever sent again (design.md §4.5).
    pub fn appended(&mut self, now: u64, proc: ProcId, partition: PartitionId, batch: &[OutRecord]) {
        self.now = now;
        // What it decided while it took in the very records that hold the claim is already on its way.
        let knew = self.read.get(&(proc, partition)).map_or(PartitionEpoch(0), |(before, _)| *before);
        for record in batch {
            let print = fingerprint(&record.value);
            if self.sent.insert(print, knew).is_some() {
                let what = format!("process {proc} sent a record of partition {partition} again");
                self.find(0, what, None, None);
            }
        }
    }

    // An owner that has read another's claim writes nothing more in its own epoch (§4.1), and no
    // owner mints an id that is not above the highest (§3).
    fn duties(&mut self, raw: &RawRecord, event: &Event, judged: Judged) {
        let Judged::Rejected(reason) = judged else { return };
        if event.producer.instance == "rogue" {
            return;
        }
        let at = Some((raw.partition, raw.offset));
        if reason == Reason::IdOrder {
            self.find(2, "an owner minted an id that is not above the highest".to_owned(), event.task_id, at);
        }
        if reason == Reason::StaleEpoch {
            let knew = raw.value.as_deref().and_then(|v| self.sent.get(&fingerprint(v)).copied());
            if knew.is_some_and(|knew| event.partition_epoch.is_some_and(|epoch| epoch < knew)) {
                let what = format!("{} was written although its owner had read a later claim", event.kind);
                self.find(5, what, event.task_id, at);
            }
        }
    }

    /// A record landed.
    pub fn landed(&mut self, now: u64, raw: &RawRecord) {
        self.now = now;
        let p = usize::from(raw.partition.0);
        let decoded = raw.event();
        let event_id = decoded.as_ref().ok().map(|event| event.event_id);
        let judged = match decoded {
            Err(why) => {
                self.parts[p].fold.quarantine(raw.broker_ms);
                self.parts[p].owes.push(Owes::Nothing);
                Judged::Quarantined(why)
            }
            Ok(event) => {
                let key = raw.record_key();
                let record = Record { offset: raw.offset, broker_ms: raw.broker_ms, key, event };
                let judged = self.judge(p, &record);
                self.duties(raw, &record.event, judged);
                judged
            }
        };
        let part = &mut self.parts[p];
        part.fold.last = Some(LastRecord { offset: raw.offset, event_id, crc32c: raw.value_crc32c() });
        part.hashes.push(part.fold.hash());
        part.clocks.push(part.fold.row_clock_us);
        part.landed_us.push(now);
        part.judged.push(judged);
        if let Err(broken) = invariants::adds_up(&part.fold) {
            self.broken(broken, None, (raw.partition, raw.offset));
        }
        if let Some(expected) = self.expected.take()
            && judged != Judged::Rejected(expected)
        {
            let what = format!("a rogue record that must be {expected} is {judged:?}");
            self.find(5, what, None, Some((raw.partition, raw.offset)));
        }
    }

    fn judge(&mut self, p: usize, record: &Record) -> Judged {
        let part = &mut self.parts[p];
        let event = &record.event;
        let at = (part.fold.partition, record.offset);
        let slot = event.task_id.and_then(|id| part.fold.tasks.get(id));
        let row_before = slot.and_then(|s| s.row.clone());
        let before = match (slot, event.task_id) {
            (Some(slot), _) => Before::Open(slot.core),
            (None, Some(id)) => part.closed.get(&id).map_or(Before::Unborn, |core| Before::Closed(*core)),
            (None, None) => Before::Unborn,
        };
        let sum = part.fold.tasks.hash_sum();
        let verdict = part.fold.apply(record);
        let after = event.task_id.and_then(|id| part.fold.tasks.get(id)).map(|s| s.core);
        let mut broken = invariants::ownership(&part.head, event, &verdict).err();
        broken = broken.or_else(|| match &verdict {
            Verdict::Accepted(_) => invariants::accepted_step(before, event, after.as_ref(), &part.fold).err(),
            Verdict::Rejected(_) => part.unchanged(sum, record).err(),
        });
        part.remember(record, &verdict);
        if let Verdict::Accepted(Change::Control(ControlChange::Claimed)) = &verdict {
            let who = Some(event.producer.incarnation);
            self.takeovers += u64::from(part.owner.is_some() && part.owner != who);
            part.owner = who;
        }
        if let Verdict::Accepted(Change::Opened(id)) = &verdict
            && event.run_no.0 == 1
        {
            self.tasks += 1;
            part.born.push(*id);
            if let Body::TaskCreated(created) = &event.body {
                self.note_key(*id, created);
            }
        }
        if let Some(broken) = broken {
            self.broken(broken, event.task_id, at);
        }
        match &verdict {
            Verdict::Accepted(_) => {
                self.accepted(p, record, before, row_before.as_deref());
                Judged::Accepted
            }
            Verdict::Rejected(reason) => Judged::Rejected(*reason),
        }
    }

    fn broken(&mut self, broken: Violation, task: Option<TaskId>, at: (PartitionId, Offset)) {
        self.find(broken.invariant, broken.what, task, Some(at));
    }

    /// A reader shows what it folded: it must be what everybody folds (invariant 19).
    pub fn shown(&mut self, (proc, who): (ProcId, &str), fold: &PartitionState) {
        let (before, newest) = self.read.entry((proc, fold.partition)).or_default();
        (*before, *newest) = (*newest, fold.epoch);
        let part = &self.parts[usize::from(fold.partition.0)];
        let at = fold.next_offset;
        if part.hashes.get(at.0 as usize) != Some(&fold.hash()) {
            let what = format!("{who} folded partition {} to another state at offset {at}", fold.partition);
            self.find(19, what, None, Some((fold.partition, Offset(at.0.saturating_sub(1)))));
        }
    }

    /// Open tasks of all partitions.
    pub fn open(&self) -> usize {
        self.parts.iter().map(|p| p.fold.tasks.len()).sum()
    }

    /// Whether the task was born, and whether it is open.
    pub fn task(&self, id: TaskId) -> Option<(CoreState, bool)> {
        let part = self.parts.get(usize::from(id.partition().0))?;
        let open = part.fold.tasks.get(id).map(|s| (s.core, true));
        open.or_else(|| part.closed.get(&id).map(|core| (*core, false)))
    }

    /// Hash over all verdicts and states: two runs of one seed give the same.
    pub fn fingerprint(&self) -> u128 {
        self.parts
            .iter()
            .fold(0, |sum, p| p.hashes.iter().fold(sum, |sum: u128, hash| sum.rotate_left(7).wrapping_add(*hash)))
    }
}

impl PartAudit {
    /// State hash before the record at `offset`.
    pub fn hash_at(&self, offset: Offset) -> Option<u128> {
        self.hashes.get(offset.0 as usize).copied()
    }

    /// The newest row of a task.
    pub fn last_row(&self, id: TaskId) -> Option<(CoreState, Arc<Row>)> {
        self.rows.get(&id)?.last().map(|r| (r.core, r.row.clone()))
    }

    fn unchanged(&self, sum: u128, record: &Record) -> Result<(), Violation> {
        let own = |s: &PartitionState| (s.epoch, s.owner_seq, s.highest, s.active_rules);
        if own(&self.head) == own(&self.fold) && sum == self.fold.tasks.hash_sum() {
            return Ok(());
        }
        let what = format!("rejected {} at {} changed the state", record.event.kind, record.offset);
        Err(Violation { invariant: 11, what })
    }

    fn remember(&mut self, record: &Record, verdict: &Verdict) {
        (self.head.epoch, self.head.owner_seq) = (self.fold.epoch, self.fold.owner_seq);
        (self.head.highest, self.head.active_rules) = (self.fold.highest, self.fold.active_rules);
        if let Some(core) = invariants::closed_state(verdict) {
            self.closed.insert(core.id, core);
        }
        let entry = |id: TaskId, core: CoreState, row: &Arc<Row>| {
            (id, RowAt { offset: record.offset, clock_us: row.row_clock_us, core, row: row.clone() })
        };
        let open = |id: TaskId| self.fold.tasks.get(id).and_then(|s| Some(entry(id, s.core, s.row.as_ref()?)));
        let (owes, row) = match (verdict, record.key) {
            (Verdict::Accepted(Change::Closed(c) | Change::Reviewed(c)), _) => {
                (Owes::Row(c.core.id), Some(entry(c.core.id, c.core, &c.row)))
            }
            (Verdict::Accepted(Change::Opened(id)), _) => (owes_of_birth(&record.event, *id), open(*id)),
            (Verdict::Accepted(Change::Control(_) | Change::Sealed), _) => (Owes::Nothing, None),
            (_, RecordKey::Task(id)) => match open(id) {
                Some(row) => (Owes::Row(id), Some(row)),
                None => (Owes::Overflow(id), None),
            },
            (_, RecordKey::Control(_) | RecordKey::Other) => (Owes::Nothing, None),
        };
        self.owes.push(owes);
        if let Some((id, row)) = row {
            self.rows.entry(id).or_default().push(row);
        }
    }
}

fn owes_of_birth(event: &Event, id: TaskId) -> Owes {
    debug_assert_eq!(event.kind.class(), KindClass::TaskEvent);
    match &event.body {
        task_events::Body::TaskCreated(b) => b.key_hash.map_or(Owes::Row(id), |key| Owes::RowAndKey(id, key)),
        _ => Owes::Row(id),
    }
}

fn fingerprint(bytes: &[u8]) -> u64 {
    use std::hash::BuildHasher as _;
    FixedState::default().hash_one(bytes)
}
