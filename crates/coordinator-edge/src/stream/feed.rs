//! Feeds one stream: its partitions in turns, record by record, into a channel that holds few bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use coordinator::surface::Peers;
use event_log::EventLog;
use futures::future::{Either, select};
use futures::stream::{StreamExt as _, select_all, unfold};
use rest_contract::{Code, Problem};
use service_kit::{Clock, Shutdown, within};
use snapshot_store::SnapshotStore;
use task_events::{Offset, PartitionId};
use tokio::sync::{Semaphore, mpsc};

use super::filter::Filter;
use super::position::Position;
use super::reader::{Batch, Reader};
use super::show::shown;
use super::{End, Ended, Message, WAITING_BYTES};
use crate::Edge;
use crate::problems::Failure;

/// A reader that takes nothing for this long is cut off, ms: before its connection is, whose writes may
/// take twice as long, so that one which reads again in between is told.
const SLOW_MS: u64 = 5_000;

/// See the module.
pub(super) struct Feed<L, S, C, P> {
    pub edge: Edge<L, S, C, P>,
    pub filter: Filter,
    pub position: Position,
    /// Where the partitions end, if the stream goes no further.
    pub ends: Option<BTreeMap<PartitionId, Offset>>,
    pub send: mpsc::Sender<Message>,
    /// Bytes that the channel has room for.
    pub room: Arc<Semaphore>,
    pub end: End,
}

// The reader is gone: there is nobody to tell.
struct Gone;

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Feed<L, S, C, P> {
    /// Runs until its end is reached, the reader goes, is too slow, or the instance shuts down. Why is told
    /// before the channel is closed.
    pub async fn run(mut self, shutdown: Shutdown) {
        let (end, closed) = (self.end.clone(), self.send.clone());
        let gone = async move { closed.closed().await };
        let why = {
            let feeds = Box::pin(self.feed());
            let stops = select(shutdown.requested(), Box::pin(gone));
            match select(feeds, stops).await {
                Either::Left((why, _)) => why,
                Either::Right(_) => {
                    let text = "the instance shuts down; go on with the last cursor";
                    Ended::Failed(Problem::new(Code::Draining, text))
                }
            }
        };
        *end.lock() = Some(why);
    }

    async fn feed(&mut self) -> Ended {
        let turns = Arc::new(Semaphore::new(1));
        let readers = self.position.next.iter().map(|(partition, next)| {
            let end = self.ends.as_ref().and_then(|ends| ends.get(partition)).copied();
            let reader = Reader::new(self.edge.clone(), *partition, (*next, end), turns.clone());
            unfold(reader, |mut reader| async move {
                if reader.is_done() { None } else { Some((reader.batch().await, reader)) }
            })
            .boxed()
        });
        let mut batches = select_all(readers.collect::<Vec<_>>());
        while let Some(batch) = batches.next().await {
            match batch {
                Ok(batch) => match self.pass_on(batch).await {
                    Ok(()) => {}
                    Err(why) => return Ended::Failed(why),
                },
                Err(Failure(why)) => return Ended::Failed(why),
            }
        }
        // Only partitions with an end come to one.
        Ended::Reached(self.position.to_string())
    }

    async fn pass_on(&mut self, batch: Batch) -> Result<(), Problem> {
        for (raw, verdict) in batch.records {
            let Some(json) = shown(&self.filter, batch.partition, &raw, verdict) else { continue };
            self.position.next.insert(batch.partition, Offset(raw.offset.0.saturating_add(1)));
            match within(&self.edge.clock, SLOW_MS, self.put(self.position.to_string(), json)).await {
                Some(Ok(())) => {}
                Some(Err(Gone)) => return Err(Problem::new(Code::Draining, "the reader is gone")),
                None => {
                    let text = format!("the reader took nothing for {SLOW_MS} ms; go on with the last cursor");
                    return Err(Problem::new(Code::ReaderTooSlow, text).limit(SLOW_MS));
                }
            }
        }
        self.position.next.insert(batch.partition, batch.next);
        Ok(())
    }

    async fn put(&self, cursor: String, json: String) -> Result<(), Gone> {
        // One that is larger than the whole room waits until it is alone.
        let bytes = u32::try_from(json.len()).unwrap_or(u32::MAX).min(WAITING_BYTES);
        let room = self.room.clone().acquire_many_owned(bytes).await.map_err(|_| Gone)?;
        self.send.send(Message { cursor, json, _room: room }).await.map_err(|_| Gone)
    }
}
