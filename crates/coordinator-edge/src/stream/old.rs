//! Records that the owner no longer remembers the verdicts of: the partition is folded anew, from the
//! newest checkpoint before them on.

use coordinator::surface::Peers;
use event_log::{EventLog, RawRecord, Tail as _};
use fold_start::{LoadError, Origin, load_before};
use rest_contract::{Code, Problem};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_core::{PartitionState, Record, STANDARD};
use task_events::{Offset, PartitionId};
use tokio::sync::OwnedSemaphorePermit;

use super::position::unreadable;
use crate::Edge;
use crate::problems::{Failure, defect};

/// A fold of a stream's own; the permit bounds how many there are.
pub(super) struct OldFold {
    fold: PartitionState,
    _permit: OwnedSemaphorePermit,
}

impl OldFold {
    /// The fold at this offset.
    pub async fn at<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(
        edge: &Edge<L, S, C, P>,
        partition: PartitionId,
        at: Offset,
    ) -> Result<Self, Failure> {
        let permit = edge.streams().folds.clone().acquire_owned().await;
        let permit = permit.map_err(|why| defect(why.to_string()))?;
        let origin = Origin {
            log: &edge.log,
            store: &edge.store,
            clock: &edge.clock,
            partition,
            rules: &STANDARD,
            metrics: &edge.metrics,
        };
        let fold = load_before(&origin, at).await.map_err(|why| lost(partition, at, &why))?;
        let mut old = Self { fold, _permit: permit };
        let mut tail = edge.log.tail(partition, old.fold.next_offset).await.map_err(|why| unreadable(&why))?;
        while old.fold.next_offset < at {
            let records = tail.next().await.map_err(|why| unreadable(&why))?;
            for raw in records.iter().filter(|raw| raw.offset < at) {
                old.judge(raw);
            }
        }
        Ok(old)
    }

    /// Folds the next record; its verdict as an owner tells it.
    pub fn judge(&mut self, raw: &RawRecord) -> u8 {
        match raw.event() {
            Err(_) => {
                self.fold.quarantine(raw.broker_ms);
                coordinator::owner::QUARANTINED
            }
            Ok(event) => {
                let key = raw.record_key();
                let record = Record { offset: raw.offset, broker_ms: raw.broker_ms, key, event };
                coordinator::owner::verdict_byte(self.fold.apply(&record).rejected())
            }
        }
    }
}

fn lost(partition: PartitionId, at: Offset, why: &LoadError) -> Failure {
    match why {
        LoadError::Unreadable(why) => {
            let text = format!("what lies at offset {at} of partition {partition} cannot be judged any more: {why}");
            Problem::new(Code::PositionGone, text).field("offset").value(at.0).into()
        }
        LoadError::StateDiffers(_) => defect(why.to_string()),
    }
}
