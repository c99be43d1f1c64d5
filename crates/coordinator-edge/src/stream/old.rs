//! Verdicts of records that the owner no longer remembers: the partition is folded anew, from the newest
//! checkpoint before them on.
//!
//! A fold holds a partition's open tasks and there are only so many at a time, so it is over as soon as
//! its verdicts are known: they are kept, a byte each, and it is not. It runs by itself and never waits
//! for a reader of the stream, nor for records that nobody has written yet.

use coordinator::surface::Peers;
use event_log::{EventLog, RawRecord, Tail as _};
use fold_start::{LoadError, Origin, load_before};
use rest_contract::{Code, Problem};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_core::{PartitionState, Record, STANDARD};
use task_events::{Offset, PartitionId};
use tokio::task::JoinSet;

use super::position::unreadable;
use crate::Edge;
use crate::problems::{Failure, defect};

/// Records that one fold judges, and so bytes that a partition of a stream keeps.
const AHEAD: u64 = 65_536;

/// What became of the records from an offset on.
pub(super) struct Verdicts {
    from: Offset,
    bytes: Vec<u8>,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self { from: Offset(0), bytes: Vec::new() }
    }
}

impl Verdicts {
    /// The verdict of this record, if it was judged.
    pub fn of(&self, offset: Offset) -> Option<u8> {
        let at = usize::try_from(offset.0.checked_sub(self.from.0)?).ok()?;
        self.bytes.get(at).copied()
    }

    /// Judges the records from this one on, up to one that the owner has folded, or as many as are kept.
    pub async fn anew<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(
        edge: &Edge<L, S, C, P>,
        partition: PartitionId,
        from: Offset,
        remembered: Offset,
    ) -> Result<Self, Failure> {
        let until = remembered.min(Offset(from.0.saturating_add(AHEAD)));
        // A task of its own: this stream may wait for its reader meanwhile, and others for the permit.
        let (mut fold, edge) = (JoinSet::new(), edge.clone());
        fold.spawn(async move { judged(&edge, partition, from, until).await });
        match fold.join_next().await {
            Some(Ok(verdicts)) => verdicts,
            Some(Err(why)) => Err(defect(why.to_string())),
            None => Err(defect("a fold was never begun")),
        }
    }

    fn put(&mut self, offset: Offset, verdict: u8) {
        let at = usize::try_from(offset.0.saturating_sub(self.from.0)).unwrap_or(usize::MAX);
        // Where the log has no record nobody asks for its verdict.
        self.bytes.resize(at, coordinator::owner::QUARANTINED);
        self.bytes.push(verdict);
    }
}

async fn judged<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(
    edge: &Edge<L, S, C, P>,
    partition: PartitionId,
    from: Offset,
    until: Offset,
) -> Result<Verdicts, Failure> {
    let permit = edge.streams().folds.clone().acquire_owned().await;
    let _permit = permit.map_err(|why| defect(why.to_string()))?;
    let origin = Origin {
        log: &edge.log,
        store: &edge.store,
        clock: &edge.clock,
        partition,
        rules: &STANDARD,
        metrics: &edge.metrics,
    };
    let mut fold = load_before(&origin, from).await.map_err(|why| lost(partition, from, &why))?;
    let mut verdicts = Verdicts { from, bytes: Vec::new() };
    let mut next = fold.next_offset;
    let mut tail = edge.log.tail(partition, next).await.map_err(|why| unreadable(&why))?;
    // The owner folded what lies before `until`, so all of it is there to be read.
    while next < until {
        for raw in tail.next().await.map_err(|why| unreadable(&why))? {
            next = Offset(raw.offset.0.saturating_add(1));
            if raw.offset >= until {
                break;
            }
            let verdict = judge(&mut fold, &raw);
            if raw.offset >= from {
                verdicts.put(raw.offset, verdict);
            }
        }
    }
    Ok(verdicts)
}

// Folds the next record; its verdict as an owner tells it.
fn judge(fold: &mut PartitionState, raw: &RawRecord) -> u8 {
    match raw.event() {
        Err(_) => {
            fold.quarantine(raw.broker_ms);
            coordinator::owner::QUARANTINED
        }
        Ok(event) => {
            let key = raw.record_key();
            let record = Record { offset: raw.offset, broker_ms: raw.broker_ms, key, event };
            coordinator::owner::verdict_byte(fold.apply(&record).rejected())
        }
    }
}

fn lost(partition: PartitionId, at: Offset, why: &LoadError) -> Failure {
    match why {
        LoadError::Unreadable(why) => {
            let text = format!("what lies at offset {at} of partition {partition} cannot be judged any more: {why}");
            Problem::new(Code::PositionGone, text).field("offset").value(at.0).into()
        }
        LoadError::UnknownRules { .. } | LoadError::StateDiffers(_) => defect(why.to_string()),
    }
}
