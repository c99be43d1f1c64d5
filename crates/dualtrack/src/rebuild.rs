//! Rows anew from the log: folds a partition as its owner did and writes whatever the owner owed the
//! store, at the same timestamps. Rows that are there and right stay as they are, a newer one wins; so it
//! may run beside owners. Payloads are no rows: the log has only their hashes.
//!
//! An open task's row is written once, when the end is reached; a closed one's at its close.

use std::future::Future;

use coordinator::derived::{Changed, Derived, beside_row, closed_row, derive, key_row, open_row};
use event_log::{EventLog, LogError, RawRecord, Tail as _};
use fold_start::{LoadError, Origin, load_before, patient};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use service_kit::{Clock, Metrics};
use snapshot_store::{RowWrite, SnapshotStore, StoreError};
use task_core::{Admission, Change, ControlChange, PartitionState, Record, Verdict};
use task_events::{Offset, PartitionId, RuleVersion};

/// Rows of one write, and writes under way.
const ROWS_PER_WRITE: usize = 128;
const WRITES: usize = 8;

/// How long a write is repeated while the store is away, ms.
const PATIENCE_MS: u64 = 60_000;

/// Pause before it is repeated, ms.
const PAUSE_MS: u64 = 250;

/// Whatever a rebuild needs.
#[derive(Clone)]
pub struct Rebuild<L, S, C> {
    /// Topic.
    pub log: L,
    /// Where the rows go, and checkpoints come from if the log has lost its start.
    pub store: S,
    /// Clocks.
    pub clock: C,
    /// For alarms about checkpoints that cannot be used.
    pub metrics: Metrics,
}

/// How far a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Records folded.
    pub folded: u64,
    /// Records there were at the start.
    pub of: u64,
}

/// What became of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// Offset it was folded from: above 0, tasks that ended before are not in the log any more, and
    /// neither are their rows in here.
    pub from: Offset,
    /// Offset it was folded to: the end of the log when it began.
    pub to: Offset,
    /// Rows that were written: one for each time a task was closed or reviewed, and for each that is
    /// open.
    pub rows: u64,
    /// Other writes: history beside rows, idempotency keys.
    pub others: u64,
    /// Records that are none.
    pub quarantined: u64,
}

/// Why a partition cannot be rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// The log, or the state it is folded from.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The log, while it was read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The store did not take a row.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Records are missing in the middle.
    #[error("partition {partition}: record {expected} is missing, the next one is {found}")]
    Gap {
        /// Partition.
        partition: PartitionId,
        /// The record that would be next.
        expected: Offset,
        /// The one that came.
        found: Offset,
    },
    /// The log goes on by rules that this program does not know.
    #[error(
        "partition {partition}: rules {version} are active from offset {offset} on, which this program does not know"
    )]
    UnknownRules {
        /// Partition.
        partition: PartitionId,
        /// The rules.
        version: RuleVersion,
        /// Where they were activated.
        offset: Offset,
    },
}

impl<L: EventLog, S: SnapshotStore, C: Clock> Rebuild<L, S, C> {
    /// Rebuilds the rows of a partition up to its end as of now; all of them are acknowledged then.
    ///
    /// # Errors
    /// The log cannot be read to its end, or the store is away for a minute.
    pub async fn partition(
        &self,
        partition: PartitionId,
        mut tell: impl FnMut(Progress),
    ) -> Result<Rebuilt, RebuildError> {
        let end = patient(&self.clock, || self.log.range(partition)).await?.end;
        let mut fold = self.start(partition).await?;
        let (from, mut out) = (fold.next_offset, Out::new(self, partition));
        let of = end.0.saturating_sub(from.0);
        if fold.next_offset < end {
            let mut tail = patient(&self.clock, || self.log.tail(partition, from)).await?;
            while fold.next_offset < end {
                for raw in tail.next().await?.iter().filter(|raw| raw.offset < end) {
                    out.add(step(&mut fold, raw)?).await?;
                }
                tell(Progress { folded: fold.next_offset.0.saturating_sub(from.0), of });
            }
        }
        for slot in fold.tasks.iter() {
            out.add(Step { row: open_row(slot), others: Vec::new() }).await?;
        }
        let (rows, others) = out.finish().await?;
        // True of all rows below, whoever wrote them.
        self.away(|| self.store.put_acked(partition, fold.next_offset)).await?;
        Ok(Rebuilt { from, to: fold.next_offset, rows, others, quarantined: fold.counters.quarantined })
    }

    // The state before offset 0, else that of the oldest checkpoint which the log still reaches.
    async fn start(&self, partition: PartitionId) -> Result<PartitionState, RebuildError> {
        let start = patient(&self.clock, || self.log.range(partition)).await?.start;
        if start == Offset(0) {
            return Ok(PartitionState::new(partition, true));
        }
        let published = patient(&self.clock, || self.store.checkpoints(partition)).await?;
        let origin = Origin {
            log: &self.log,
            store: &self.store,
            clock: &self.clock,
            partition,
            rules: &task_core::STANDARD,
            metrics: &self.metrics,
        };
        let mut why = LoadError::Unreadable(format!(
            "partition {partition} starts at offset {start} and the store has no checkpoint: rows can only be rebuilt \
             into the store that has them"
        ));
        for (name, _) in published.iter().rev().filter(|(name, _)| name.offset >= start) {
            match load_before(&origin, name.offset).await {
                Ok(fold) => return Ok(fold),
                // A newer one may do.
                Err(unusable) => why = unusable,
            }
        }
        Err(why.into())
    }

    async fn away<F: Future<Output = Result<(), StoreError>>>(&self, call: impl Fn() -> F) -> Result<(), StoreError> {
        let until = self.clock.boot_ms().saturating_add(PATIENCE_MS);
        loop {
            match call().await {
                Err(why) if why.is_retryable() && self.clock.boot_ms() < until => {
                    self.clock.sleep_until(self.clock.boot_ms().saturating_add(PAUSE_MS)).await;
                }
                ended => return ended,
            }
        }
    }
}

/// What a record leaves to be written now.
#[derive(Default)]
struct Step {
    row: Option<RowWrite>,
    others: Vec<RowWrite>,
}

fn step(fold: &mut PartitionState, raw: &RawRecord) -> Result<Step, RebuildError> {
    let (partition, offset) = (fold.partition, raw.offset);
    match fold.admit(offset) {
        Admission::Next => {}
        Admission::Seen => return Ok(Step::default()),
        Admission::Gap => return Err(RebuildError::Gap { partition, expected: fold.next_offset, found: offset }),
    }
    let Ok(event) = raw.event() else {
        fold.quarantine(raw.broker_ms);
        return Ok(Step::default());
    };
    let record = Record { offset, broker_ms: raw.broker_ms, key: raw.record_key(), event };
    let verdict = fold.apply(&record);
    if let Verdict::Accepted(Change::Opened(id)) = &verdict {
        fold.note_trace(*id, raw.trace_parent());
    }
    if let Verdict::Accepted(Change::Control(ControlChange::RulesActivated { version, known: false })) = verdict {
        return Err(RebuildError::UnknownRules { partition, version, offset });
    }
    let Derived { clock_us, task, beside, key } = derive(fold, &record, &verdict);
    let row = match task {
        Changed::Closed(closed) => Some(closed_row(closed)),
        Changed::Open(_) | Changed::Nothing => None,
    };
    let beside = beside.map(|(task, entry)| beside_row(clock_us, task, entry));
    let key = key.map(|row| key_row(clock_us, row));
    Ok(Step { row, others: beside.into_iter().chain(key).collect() })
}

/// Writes on their way, a bounded number of them.
struct Out<'a, L, S, C> {
    of: &'a Rebuild<L, S, C>,
    partition: PartitionId,
    gathered: Vec<RowWrite>,
    under_way: FuturesUnordered<futures::future::BoxFuture<'a, Result<(), StoreError>>>,
    rows: u64,
    others: u64,
}

impl<'a, L: EventLog, S: SnapshotStore, C: Clock> Out<'a, L, S, C> {
    fn new(of: &'a Rebuild<L, S, C>, partition: PartitionId) -> Self {
        Self { of, partition, gathered: Vec::new(), under_way: FuturesUnordered::new(), rows: 0, others: 0 }
    }

    async fn add(&mut self, step: Step) -> Result<(), StoreError> {
        self.rows += u64::from(step.row.is_some());
        self.others += step.others.len() as u64;
        self.gathered.extend(step.row.into_iter().chain(step.others));
        if self.gathered.len() >= ROWS_PER_WRITE {
            self.send();
        }
        while self.under_way.len() >= WRITES {
            self.under_way.next().await.transpose()?;
        }
        Ok(())
    }

    fn send(&mut self) {
        let rows = std::mem::take(&mut self.gathered);
        let (of, partition) = (self.of, self.partition);
        self.under_way.push(Box::pin(async move { of.away(|| of.store.write(partition, rows.clone())).await }));
    }

    async fn finish(mut self) -> Result<(u64, u64), StoreError> {
        self.send();
        while let Some(written) = self.under_way.next().await {
            written?;
        }
        Ok((self.rows, self.others))
    }
}
