//! One partition of a stream: reads its records and asks what became of them.
//!
//! Partitions of a stream take turns: only the one whose turn it is holds records, so that a reader who
//! is behind costs one batch and not one for each partition. Nobody holds the turn who waits for records,
//! for an owner that is away, or for a fold; what was read by then is let go and read again.

use std::sync::Arc;

use coordinator::owner::{Answer, Command, Look, Looked};
use coordinator::surface::Peers;
use event_log::{EventLog, LogError, RawRecord, Tail as _};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::{Offset, PartitionId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::old::Verdicts;
use super::position::unreadable;
use crate::Edge;
use crate::problems::{Failure, defect};

/// Pause before an owner that has not folded a record yet is asked again, ms.
const FOLDS_SOON_MS: u64 = 5;

/// How often it is asked before others have their turn.
const ASKS: usize = 20;

/// The same pause before a log or an owner that is away, ms.
const AWAY_MS: u64 = 250;

/// Records of a partition and what became of each.
pub(super) struct Batch {
    pub partition: PartitionId,
    pub records: Vec<(RawRecord, u8)>,
    /// Offset behind the last one that was read.
    pub next: Offset,
    /// The turn is over once the batch is passed on.
    pub _turn: OwnedSemaphorePermit,
}

/// See the module.
pub(super) struct Reader<L: EventLog, S, C, P> {
    edge: Edge<L, S, C, P>,
    partition: PartitionId,
    next: Offset,
    /// It goes no further.
    end: Option<Offset>,
    /// An offset that the log is known to have reached: below it nobody waits for records.
    reached: Offset,
    turns: Arc<Semaphore>,
    tail: Option<L::Tail>,
    old: Verdicts,
}

// What is known of records just read.
enum Known {
    /// Verdicts of the first ones, one at least.
    Verdicts(Vec<u8>),
    /// The owner remembers only those from this offset on.
    Forgotten(Offset),
    /// Nothing yet; ask again after so many ms.
    Nothing(u64),
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Reader<L, S, C, P> {
    /// Of a partition from `next` on, and to `end` if there is one.
    pub fn new(
        edge: Edge<L, S, C, P>,
        partition: PartitionId,
        (next, end): (Offset, Option<Offset>),
        turns: Arc<Semaphore>,
    ) -> Self {
        Self { edge, partition, next, end, reached: next, turns, tail: None, old: Verdicts::default() }
    }

    /// Whether nothing is left to be read.
    pub fn is_done(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// The next records that were read, once it is known what became of them.
    pub async fn batch(&mut self) -> Result<Batch, Failure> {
        loop {
            let Some((mut records, turn)) = self.records().await? else { continue };
            records.retain(|raw| self.end.is_none_or(|end| raw.offset < end));
            let Some(last) = records.last().map(|raw| behind(raw.offset)) else { continue };
            let known = self.known(&records).await?;
            let complete = matches!(&known, Known::Verdicts(verdicts) if verdicts.len() == records.len());
            if !complete {
                // What was read and is not shown now is read again.
                self.reached = self.reached.max(last);
                self.tail = None;
            }
            match known {
                Known::Verdicts(verdicts) => {
                    let records: Vec<_> = records.into_iter().zip(verdicts).collect();
                    self.next = records.last().map_or(self.next, |(raw, _)| behind(raw.offset));
                    return Ok(Batch { partition: self.partition, records, next: self.next, _turn: turn });
                }
                Known::Forgotten(remembered) => {
                    let first = records.first().map_or(self.next, |raw| raw.offset);
                    drop((records, turn));
                    self.old = Verdicts::anew(&self.edge, self.partition, first, remembered).await?;
                }
                Known::Nothing(ms) => {
                    drop((records, turn));
                    pause(&self.edge.clock, ms).await;
                }
            }
        }
    }

    // Records and the turn, waiting for records without it; `None`: look again.
    async fn records(&mut self) -> Result<Option<(Vec<RawRecord>, OwnedSemaphorePermit)>, Failure> {
        if self.next >= self.reached {
            match self.edge.log.range(self.partition).await {
                Ok(range) => self.reached = range.end,
                Err(why) => return self.away(&why).await,
            }
        }
        let turn = if self.next < self.reached { Some(self.turn().await?) } else { None };
        if self.tail.is_none() {
            match self.edge.log.tail(self.partition, self.next).await {
                Ok(tail) => self.tail = Some(tail),
                Err(why) => {
                    drop(turn);
                    return self.away(&why).await;
                }
            }
        }
        let Some(tail) = &mut self.tail else { return Ok(None) };
        match (tail.next().await, turn) {
            (Ok(records), Some(turn)) => Ok(Some((records, turn))),
            (Ok(records), None) => match self.turns.clone().try_acquire_owned() {
                Ok(turn) => Ok(Some((records, turn))),
                Err(_) => {
                    self.reached = records.last().map_or(self.reached, |raw| behind(raw.offset));
                    self.tail = None;
                    Ok(None)
                }
            },
            (Err(why), turn) => {
                drop(turn);
                self.away(&why).await
            }
        }
    }

    async fn turn(&mut self) -> Result<OwnedSemaphorePermit, Failure> {
        self.turns.clone().acquire_owned().await.map_err(|why| defect(why.to_string()))
    }

    // A log that is away comes back; anything else ends the stream.
    async fn away<T>(&mut self, why: &LogError) -> Result<Option<T>, Failure> {
        let LogError::Unavailable(_) = why else { return Err(unreadable(why)) };
        self.tail = None;
        pause(&self.edge.clock, AWAY_MS).await;
        Ok(None)
    }

    async fn known(&mut self, records: &[RawRecord]) -> Result<Known, Failure> {
        let judged: Vec<u8> = records.iter().map_while(|raw| self.old.of(raw.offset)).collect();
        let Some(first) = records.first().map(|raw| raw.offset).filter(|_| judged.is_empty()) else {
            return Ok(Known::Verdicts(judged));
        };
        self.old = Verdicts::default();
        let mut so_far = Vec::new();
        for _ in 0..ASKS {
            let look = Look::Verdicts { from: first, limit: records.len() };
            let answer = self.edge.surface.ask(self.partition, Command::Look(look)).await;
            let looked = if let Answer::Looked(looked) = answer { Some(*looked) } else { None };
            match looked {
                Some(Looked::Verdicts { remembered, verdicts }) if remembered <= first => {
                    if verdicts.len() == records.len() {
                        return Ok(Known::Verdicts(verdicts));
                    }
                    so_far = verdicts;
                    pause(&self.edge.clock, FOLDS_SOON_MS).await;
                }
                Some(Looked::Verdicts { remembered, .. }) => return Ok(Known::Forgotten(remembered)),
                Some(
                    Looked::Tasks { .. }
                    | Looked::Queues(_)
                    | Looked::Workers(_)
                    | Looked::Rules(_)
                    | Looked::Attempts { .. }
                    | Looked::Facts(_),
                ) => {
                    return Err(defect("the owner answered another question"));
                }
                None => return Ok(Known::Nothing(AWAY_MS)),
            }
        }
        Ok(if so_far.is_empty() { Known::Nothing(FOLDS_SOON_MS) } else { Known::Verdicts(so_far) })
    }
}

const fn behind(offset: Offset) -> Offset {
    Offset(offset.0.saturating_add(1))
}

async fn pause<C: Clock>(clock: &C, ms: u64) {
    clock.sleep_until(clock.boot_ms() + ms).await;
}
