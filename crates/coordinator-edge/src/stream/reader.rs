//! One partition of a stream: reads its records, asks what became of them, and keeps those that the
//! stream shows.

use std::sync::Arc;

use coordinator::owner::{ACCEPTED, Answer, Command, Look, Looked, reason_of};
use coordinator::surface::Peers;
use event_log::{EventLog, LogError, RawRecord, Tail as _};
use rest_contract::StreamRecord;
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::{Offset, PartitionId, to_json};

use super::filter::Filter;
use super::old::OldFold;
use super::position::unreadable;
use crate::Edge;
use crate::problems::{Failure, defect};

/// Pause before an owner that has not folded a record yet is asked again, ms.
const FOLDS_SOON_MS: u64 = 5;

/// The same before a log or an owner that is away, ms.
const AWAY_MS: u64 = 250;

/// Records of a partition, those that are shown.
pub(super) struct Batch {
    pub partition: PartitionId,
    pub shown: Vec<(Offset, String)>,
    /// Offset behind the last one that was read.
    pub next: Offset,
}

/// See the module.
pub(super) struct Reader<L: EventLog, S, C, P> {
    pub edge: Edge<L, S, C, P>,
    pub partition: PartitionId,
    pub next: Offset,
    pub filter: Arc<Filter>,
    tail: Option<L::Tail>,
    old: Option<OldFold>,
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Reader<L, S, C, P> {
    pub fn new(edge: Edge<L, S, C, P>, partition: PartitionId, next: Offset, filter: Arc<Filter>) -> Self {
        Self { edge, partition, next, filter, tail: None, old: None }
    }

    /// The next records that were read, once it is known what became of them.
    pub async fn batch(&mut self) -> Result<Batch, Failure> {
        let records = self.records().await?;
        let verdicts = self.verdicts(&records).await?;
        let shown = records.iter().zip(verdicts).filter_map(|(raw, verdict)| self.shown(raw, verdict)).collect();
        if let Some(last) = records.last() {
            self.next = Offset(last.offset.0.saturating_add(1));
        }
        Ok(Batch { partition: self.partition, shown, next: self.next })
    }

    async fn records(&mut self) -> Result<Vec<RawRecord>, Failure> {
        loop {
            let read = match &mut self.tail {
                Some(tail) => tail.next().await,
                None => match self.edge.log.tail(self.partition, self.next).await {
                    Ok(tail) => {
                        self.tail = Some(tail);
                        continue;
                    }
                    Err(why) => Err(why),
                },
            };
            match read {
                Ok(records) if records.is_empty() => {}
                Ok(records) => return Ok(records),
                Err(LogError::Unavailable(_)) => {
                    self.tail = None;
                    pause(&self.edge.clock, AWAY_MS).await;
                }
                Err(why) => return Err(unreadable(&why)),
            }
        }
    }

    async fn verdicts(&mut self, records: &[RawRecord]) -> Result<Vec<u8>, Failure> {
        let Some(first) = records.first().map(|raw| raw.offset) else { return Ok(Vec::new()) };
        loop {
            let look = Look::Verdicts { from: first, limit: records.len() };
            let answer = self.edge.surface.ask(self.partition, Command::Look(look)).await;
            let looked = if let Answer::Looked(looked) = answer { Some(*looked) } else { None };
            match looked {
                Some(Looked::Verdicts { remembered, verdicts }) if remembered <= first => {
                    self.old = None;
                    if verdicts.len() == records.len() {
                        return Ok(verdicts);
                    }
                    pause(&self.edge.clock, FOLDS_SOON_MS).await;
                }
                Some(Looked::Verdicts { .. }) => {
                    let mut old = match self.old.take() {
                        Some(old) => old,
                        None => OldFold::at(&self.edge, self.partition, first).await?,
                    };
                    let verdicts = records.iter().map(|raw| old.judge(raw)).collect();
                    self.old = Some(old);
                    return Ok(verdicts);
                }
                Some(Looked::Tasks { .. } | Looked::Queues(_) | Looked::Workers(_) | Looked::Attempts { .. }) => {
                    return Err(defect("the owner answered another question"));
                }
                None => pause(&self.edge.clock, AWAY_MS).await,
            }
        }
    }

    fn shown(&self, raw: &RawRecord, verdict: u8) -> Option<(Offset, String)> {
        let (reason, event) = match raw.event() {
            Err(malformed) if self.filter.takes_malformed() => (Some(malformed.as_str()), None),
            Err(_) => return None,
            Ok(event) => {
                let rejected = reason_of(verdict);
                if rejected.is_some() && !self.filter.all_verdicts || !self.filter.takes(&event) {
                    return None;
                }
                let json = to_json(&event);
                if !self.filter.takes_worker(&json) {
                    return None;
                }
                (rejected.map(task_core::Reason::as_str), Some(json))
            }
        };
        let verdict = match (&event, verdict) {
            (None, _) => "quarantined",
            (Some(_), ACCEPTED) => "accepted",
            (Some(_), _) => "rejected",
        };
        let record = StreamRecord {
            partition: self.partition.0,
            offset: raw.offset.0,
            broker_time: raw.broker_ms,
            verdict: verdict.into(),
            reason: reason.map(Into::into),
            event,
        };
        Some((raw.offset, serde_json::to_string(&record).ok()?))
    }
}

async fn pause<C: Clock>(clock: &C, ms: u64) {
    clock.sleep_until(clock.boot_ms() + ms).await;
}
