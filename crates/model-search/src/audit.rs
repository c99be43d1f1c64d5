//! The auditor: remembers what the fold forgets and says whether a history is one that may be. It
//! reads accepted records only and knows nothing of the rules by which they were accepted.

use task_core::invariants::{self, Before};
use task_core::{CoreState, PartitionState, Record};
use task_events::{Body, KindClass, RecordKey};

use crate::fold::{Fold, Judged};
use crate::subject::{PARTITION, TASKS, index_of};

/// Highest exec_epoch a searched history may reach.
pub const MAX_ATTEMPTS: usize = 8;

/// One task's history, reduced to what a predicate asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskAudit {
    /// Accepted TaskCreated.
    pub births: u8,
    /// event_sequence of the last accepted event.
    pub seq: u32,
    /// Run of the last accepted event.
    pub run: u32,
    /// Run in which each attempt was handed out; 0 = not yet.
    pub runs: [u8; MAX_ATTEMPTS],
    /// Attempts handed out.
    pub attempts: u32,
    /// The last one may be running.
    pub live: bool,
    /// The last one was closed by TaskLost.
    pub lost: bool,
    /// The run is over.
    pub over: bool,
    /// A cancel was requested in this run.
    pub cancel: bool,
    /// Approved retries after failures and after losses, in this run.
    pub retries: (u32, u32),
    /// As TaskCreated said.
    pub max: u32,
    /// Whether the last end of an attempt was a failure or a loss (what a verdict is about).
    pub awaits_verdict: bool,
    /// Accepted terminal reports: bit 2(e−1) success, bit 2(e−1)+1 failure.
    pub reports: u16,
    /// Accepted replays.
    pub replays: u8,
    /// Last judged state once closed; what the fold forgets.
    pub closed: Option<CoreState>,
}

/// The auditor's memory of the partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// By task.
    pub tasks: [TaskAudit; TASKS],
    /// Tasks created with the idempotency key.
    pub keyed: u8,
}

/// The bit of a terminal report.
pub fn report_bit(e: u32, success: bool) -> u16 {
    1u16.checked_shl((e.max(1) - 1) * 2 + u32::from(!success)).unwrap_or(0)
}

impl Audit {
    /// Takes in an accepted record. `Err` says which law it breaks.
    pub fn accept(
        &mut self,
        before: &Fold,
        record: &Record,
        judged: &Judged,
        partition: &PartitionState,
    ) -> Result<(), String> {
        let shared = self.library_invariants(before, record, judged, partition);
        shared.and(self.own(record, judged))
    }

    // The auditor's own account. It is kept up also where a law breaks, for searches that forgive one.
    fn own(&mut self, record: &Record, judged: &Judged) -> Result<(), String> {
        let event = &record.event;
        if record.key != RecordKey::of(event, PARTITION) {
            return Err(format!("{} accepted under a foreign key", event.kind));
        }
        let Some(id) = event.task_id else { return Ok(()) };
        let n = index_of(id).ok_or_else(|| format!("{} of a task of another partition accepted", event.kind))?;
        if let Body::TaskCreated(b) = &event.body
            && b.key_hash.is_some()
        {
            self.keyed += 1;
            if self.keyed > 1 {
                return Err("one idempotency key created two tasks".into());
            }
        }
        let task = &mut self.tasks[n];
        let told = if event.kind.class() == KindClass::TaskEvent { task.event(event) } else { Ok(()) };
        if let Some(closed) = &judged.closed {
            task.closed = Some(closed.core);
        } else if judged.fold.core(n).is_some() {
            task.closed = None;
        }
        if task.over && judged.fold.core(n).is_some() {
            return told.and(Err(format!("{} leaves a closed task open", event.kind)));
        }
        told
    }

    /// Bytes that tell two memories apart.
    pub fn fingerprint(&self) -> u128 {
        let mut bytes = Vec::with_capacity(256);
        bytes.push(self.keyed);
        for t in &self.tasks {
            let flags = [t.live, t.lost, t.over, t.cancel, t.awaits_verdict].map(u8::from);
            bytes.extend_from_slice(&flags);
            bytes.extend_from_slice(&[t.births, t.replays]);
            bytes.extend_from_slice(&t.runs);
            bytes.extend_from_slice(&t.reports.to_le_bytes());
            for number in [t.seq, t.run, t.attempts, t.retries.0, t.retries.1, t.max] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.push(u8::from(t.closed.is_some()));
            if let Some(closed) = &t.closed {
                bytes.extend_from_slice(&closed.canonical());
            }
        }
        xxhash_rust::xxh3::xxh3_128(&bytes)
    }

    // invariants.rs, the one definition every other checker uses too.
    fn library_invariants(
        &self,
        before: &Fold,
        record: &Record,
        judged: &Judged,
        partition: &PartitionState,
    ) -> Result<(), String> {
        if let Some(broken) = &judged.broken {
            return Err(format!("invariant {}: {}", broken.invariant, broken.what));
        }
        let known = record.event.task_id.and_then(index_of);
        let state = match known {
            None => Before::Unborn,
            Some(n) => match (before.core(n), self.tasks[n].closed) {
                (Some(core), _) => Before::Open(*core),
                (None, Some(core)) => Before::Closed(core),
                (None, None) => Before::Unborn,
            },
        };
        let after = known.and_then(|n| judged.fold.core(n));
        invariants::accepted_step(state, &record.event, after, partition)
            .map_err(|broken| format!("invariant {}: {}", broken.invariant, broken.what))
    }
}
