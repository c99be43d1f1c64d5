//! Durable adapter: one directory, one process, an LSM tree (`fjall`) below.
//!
//! Writes are queued in the order of the calls, from the moment of the call, and committed by one
//! thread in groups with one sync; reads run on tokio's blocking threads. No call blocks the worker
//! it is polled on. All of it is a tokio runtime's: awaited outside of one, reads panic.

mod coding;
mod config;
mod directory;
mod ended;
mod staged;
mod tables;
mod upkeep;
mod writer;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use fjall::PersistMode;
use parking_lot::Mutex;
use task_core::HistoryEntry;
use task_events::{Offset, PartitionId, Sha256Hash, TaskId, Text};
use tokio::sync::oneshot;

pub use self::config::{Durability, EmbeddedConfig};
pub use self::directory::OpenError;

use self::coding::Stored;
use self::tables::{Table, Tables};
use self::writer::{Queue, Upkeep, Work, Write, Writer};
use crate::ended::entries;
use crate::lifetimes::{NEVER, PAYLOAD_TTL_MS, expires_ms, listed_until_ms};
use crate::listing::Listing;
use crate::{
    CheckpointName, Clock, EndedPage, EndedSpan, KeyRow, PayloadItem, RowKind, RowWrite, SnapshotRow, SnapshotStore,
    StoreError, TaskSummary,
};

/// The durable store. Clones share one directory; it is given back when the last of them is gone,
/// or by [`EmbeddedStore::close`].
///
/// After a write failed because of the disk, every later one is `Unavailable` until the store is
/// opened anew: what a failed sync left behind, only the recovery can tell.
#[derive(Clone)]
pub struct EmbeddedStore {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Clock,
    dir: PathBuf,
    open: Mutex<Option<Open>>,
}

struct Open {
    tables: Arc<Tables>,
    queue: Queue,
    thread: JoinHandle<()>,
}

impl Inner {
    fn close(&self) {
        if let Some(Open { tables, queue, thread }) = self.open.lock().take() {
            drop(queue);
            // Its panic is everybody's `Unavailable` already.
            let _ = thread.join();
            drop(tables);
        }
    }

    fn closed(&self) -> StoreError {
        StoreError::Unavailable(format!("the store in {} is closed", self.dir.display()))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

type Answer<T> = Result<T, StoreError>;

impl EmbeddedStore {
    /// Opens or creates the store of a directory. Blocks: recovery reads what a crash left behind.
    pub fn open(config: EmbeddedConfig) -> Result<Self, OpenError> {
        let tables = Arc::new(Tables::open(&config.dir, config.cache_bytes)?);
        let mode = match config.durability {
            Durability::Fsync => PersistMode::SyncData,
            Durability::Volatile => PersistMode::Buffer,
        };
        let (queue, run) = Writer::queue(tables.clone(), mode, config.max_queued_bytes, config.max_commit_bytes);
        let thread = std::thread::Builder::new()
            .name("snapshot-store".to_owned())
            .spawn(run)
            .map_err(|e| OpenError::Io(format!("cannot start the writer's thread: {e}")))?;
        let open = Mutex::new(Some(Open { tables, queue, thread }));
        Ok(Self { inner: Arc::new(Inner { clock: config.clock, dir: config.dir, open }) })
    }

    /// Writes what is queued and gives the directory back, once the reads under way have ended.
    /// Blocks as long as that takes; later calls are `Unavailable`.
    pub fn close(&self) {
        self.inner.close();
    }

    /// Removes what has expired at `now_ms` (Unix ms), and chunks that no manifest names and no
    /// write renewed for a day. Looks at `limit` entries at most and says how many it settled:
    /// fewer than `limit` means that nothing is due any more.
    ///
    /// Expired rows are not seen anyhow; the sweep gives their space back. Whoever owns the store
    /// calls it, say every minute, with a limit of some thousands: writes wait behind it. An expired
    /// row still wins against older writes until it is swept.
    pub fn sweep(&self, now_ms: i64, limit: usize) -> impl Future<Output = Answer<usize>> + Send + 'static {
        self.submit(Work::Upkeep(Upkeep::Sweep { now_ms, limit }))
    }

    /// Removes checkpoints of a partition that the start of its log has passed, the two highest
    /// excepted; says how many. For whoever knows how far retention is.
    pub fn forget_checkpoints(
        &self,
        partition: PartitionId,
        log_start: Offset,
    ) -> impl Future<Output = Answer<usize>> + Send + 'static {
        self.submit(Work::Upkeep(Upkeep::Forget(partition, log_start)))
    }

    fn listed(&self, listing: Listing, limit: usize) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        let (table, name) = coding::listing(&listing);
        self.read(move |tables, now_ms| {
            let keys = tables.alive_below(table, &name.0, now_ms, limit)?;
            let task = |key: &Bytes| coding::listed_task(key).ok_or_else(|| table.damaged(key, "no name and task"));
            keys.iter().map(task).collect()
        })
    }

    fn now_ms(&self) -> i64 {
        (self.inner.clock)()
    }

    // Queued at the call, not at the first poll: calls take effect in their order.
    fn submit(&self, work: Work) -> impl Future<Output = Answer<usize>> + Send + 'static {
        let (reply, answer) = oneshot::channel();
        match &*self.inner.open.lock() {
            Some(open) => open.queue.push(work, reply),
            None => drop(reply.send(Err(self.inner.closed()))),
        }
        async move { answer.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the writer has ended".to_owned()))) }
    }

    fn write_one(&self, work: Work) -> impl Future<Output = Answer<()>> + Send + 'static {
        let done = self.submit(work);
        async move { done.await.map(drop) }
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tables, i64) -> Answer<T> + Send + 'static,
    ) -> impl Future<Output = Answer<T>> + Send + 'static {
        let tables = self.inner.open.lock().as_ref().map(|open| open.tables.clone()).ok_or_else(|| self.inner.closed());
        let now_ms = self.now_ms();
        async move {
            let tables = tables?;
            let done = tokio::task::spawn_blocking(move || work(&tables, now_ms)).await;
            done.unwrap_or_else(|e| Err(StoreError::Unavailable(format!("a read of the store did not end: {e}"))))
        }
    }
}

// A row and what its task is found by: of one job, and so of one commit.
fn code(write: RowWrite, out: &mut Vec<(Table, Bytes, Stored)>) -> Answer<()> {
    let at_us = write.timestamp_us;
    if let RowKind::Snapshot(snapshot) = &write.row {
        let expires_ms = listed_until_ms(snapshot);
        for listing in Listing::of(snapshot) {
            let (table, name) = coding::listing(&listing);
            let key = coding::listing_key(name, snapshot.core.id);
            out.push((table, key.into(), Stored { at_us, expires_ms, body: Bytes::new() }));
        }
    }
    if let RowKind::Snapshot(snapshot) = &write.row {
        for (entry, expires_ms) in entries(snapshot, at_us) {
            let (table, key, body) = coding::ended_entry(entry, snapshot.core.id)?;
            out.push((table, key.into(), Stored { at_us, expires_ms, body }));
        }
    }
    let expires_ms = expires_ms(&write.row, at_us);
    let (table, key, body) = coding::row(write.row)?;
    out.push((table, key.into(), Stored { at_us, expires_ms, body }));
    Ok(())
}

impl SnapshotStore for EmbeddedStore {
    fn write(&self, _: PartitionId, rows: Vec<RowWrite>) -> impl Future<Output = Answer<()>> + Send + 'static {
        let mut coded = Vec::with_capacity(rows.len());
        let all = rows.into_iter().try_for_each(|write| code(write, &mut coded));
        let written = all.map(|()| self.write_one(Work::Write(Write::Rows(coded))));
        async move { written?.await }
    }

    fn snapshots(&self, ids: Vec<TaskId>) -> impl Future<Output = Answer<Vec<Option<SnapshotRow>>>> + Send + 'static {
        self.read(move |tables, now_ms| {
            let row = |id: &TaskId| {
                let key = coding::task_key(*id);
                let Some(stored) = tables.alive(Table::Snapshots, &key, now_ms)? else { return Ok(None) };
                coding::snapshot(*id, &stored.body).map(Some).map_err(|why| Table::Snapshots.damaged(&key, &why))
            };
            ids.iter().map(row).collect()
        })
    }

    fn key(&self, key_hash: Sha256Hash) -> impl Future<Output = Answer<Option<KeyRow>>> + Send + 'static {
        self.read(move |tables, now_ms| {
            let Some(stored) = tables.alive(Table::Keys, &key_hash.0, now_ms)? else { return Ok(None) };
            coding::key_row(key_hash, &stored.body).map(Some).map_err(|why| Table::Keys.damaged(&key_hash.0, &why))
        })
    }

    fn history_overflow(&self, task: TaskId) -> impl Future<Output = Answer<Vec<HistoryEntry>>> + Send + 'static {
        self.read(move |tables, now_ms| {
            let found = tables.below(Table::Overflow, &coding::task_key(task))?;
            let alive = found.iter().filter(|(_, stored)| now_ms < stored.expires_ms);
            alive
                .map(|(key, stored)| {
                    coding::overflow_entry(key, &stored.body).map_err(|why| Table::Overflow.damaged(key, &why))
                })
                .collect()
        })
    }

    fn tasks_by_trace(
        &self,
        trace_id: Text,
        limit: usize,
    ) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        self.listed(Listing::Trace(trace_id), limit)
    }

    fn tasks_by_business_key(
        &self,
        creator: Text,
        business_key: Text,
        limit: usize,
    ) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        self.listed(Listing::BusinessKey { creator, key: business_key }, limit)
    }

    fn ended(&self, span: EndedSpan, limit: usize) -> impl Future<Output = Answer<EndedPage>> + Send + 'static {
        self.read(move |tables, now_ms| ended::page(tables, &span, now_ms, limit))
    }

    fn ended_task(&self, task: TaskId) -> impl Future<Output = Answer<Option<TaskSummary>>> + Send + 'static {
        self.read(move |tables, now_ms| ended::summary(tables, task, now_ms))
    }

    fn secret(
        &self,
        name: &'static str,
        proposed: [u8; 32],
    ) -> impl Future<Output = Answer<[u8; 32]>> + Send + 'static {
        let body = Bytes::copy_from_slice(&proposed);
        let stored = Stored { at_us: 0, expires_ms: NEVER, body };
        let written = self.write_one(Work::Write(Write::Secret(Bytes::from_static(name.as_bytes()), stored)));
        let store = self.clone();
        async move {
            written.await?;
            let read = store.read(move |tables, _| {
                let found = tables.get(Table::Secrets, name.as_bytes())?;
                let bytes = found.and_then(|stored| stored.body.as_ref().try_into().ok());
                bytes.ok_or_else(|| Table::Secrets.damaged(name.as_bytes(), "not 32 bytes"))
            });
            read.await
        }
    }

    fn put_payloads(
        &self,
        items: Vec<(TaskId, PayloadItem, Bytes)>,
    ) -> impl Future<Output = Answer<()>> + Send + 'static {
        let now_ms = self.now_ms();
        let (at_us, expires_ms) = (now_ms.saturating_mul(1_000), now_ms.saturating_add(PAYLOAD_TTL_MS));
        let coded = items.into_iter().map(|(task, item, body)| {
            (Bytes::from(coding::payload_key(task, &item)), Stored { at_us, expires_ms, body })
        });
        self.write_one(Work::Write(Write::Payloads(coded.collect())))
    }

    fn payloads(
        &self,
        wanted: Vec<(TaskId, PayloadItem)>,
    ) -> impl Future<Output = Answer<Vec<Option<Bytes>>>> + Send + 'static {
        self.read(move |tables, now_ms| {
            let bytes = |(task, item): &(TaskId, PayloadItem)| {
                let stored = tables.alive(Table::Payloads, &coding::payload_key(*task, item), now_ms)?;
                Ok(stored.map(|stored| stored.body))
            };
            wanted.iter().map(bytes).collect()
        })
    }

    fn put_acked(&self, partition: PartitionId, offset: Offset) -> impl Future<Output = Answer<()>> + Send + 'static {
        self.write_one(Work::Write(Write::Acked(partition, offset)))
    }

    fn acked(&self, partition: PartitionId) -> impl Future<Output = Answer<Offset>> + Send + 'static {
        self.read(move |tables, _| {
            let key = coding::partition_key(partition);
            let Some(stored) = tables.get(Table::Acked, &key)? else { return Ok(Offset::default()) };
            coding::offset(&stored.body).map_err(|why| Table::Acked.damaged(&key, &why))
        })
    }

    fn put_chunk(&self, hash: Sha256Hash, bytes: Bytes) -> impl Future<Output = Answer<()>> + Send + 'static {
        let value = Stored { at_us: self.now_ms().saturating_mul(1_000), expires_ms: NEVER, body: bytes };
        self.write_one(Work::Write(Write::Chunk(Bytes::copy_from_slice(&hash.0), value)))
    }

    fn chunk(&self, hash: Sha256Hash) -> impl Future<Output = Answer<Option<Bytes>>> + Send + 'static {
        self.read(move |tables, _| Ok(tables.get(Table::Chunks, &hash.0)?.map(|stored| stored.body)))
    }

    fn publish(&self, name: CheckpointName, manifest: Bytes) -> impl Future<Output = Answer<()>> + Send + 'static {
        self.write_one(Work::Upkeep(Upkeep::Publish(name, manifest, self.now_ms())))
    }

    fn checkpoints(
        &self,
        partition: PartitionId,
    ) -> impl Future<Output = Answer<Vec<(CheckpointName, Bytes)>>> + Send + 'static {
        self.read(move |tables, _| {
            let found = tables.below(Table::Checkpoints, &coding::partition_key(partition))?;
            let name = |key: &Bytes| {
                coding::checkpoint_name(key)
                    .ok_or_else(|| Table::Checkpoints.damaged(key, "not the name of a checkpoint"))
            };
            found.into_iter().rev().map(|(key, stored)| Ok((name(&key)?, stored.body))).collect()
        })
    }
}
