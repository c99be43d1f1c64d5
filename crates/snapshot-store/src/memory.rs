//! Volatile adapter: nothing survives the process, and nothing needs to, since rows and
//! checkpoints are rebuilt from the log. Clones share one content.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::future::{Future, ready};
use std::hash::Hash;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use task_core::HistoryEntry;
use task_events::{Offset, PartitionId, Sha256Hash, TaskId, Text};

use crate::lifetimes::{PAYLOAD_TTL_MS, expires_ms, listed_until_ms, surplus};
use crate::listing::Listing;
use crate::{
    CheckpointName, Clock, EndedPage, EndedSpan, KeyRow, PayloadItem, RowKind, RowWrite, SnapshotRow, SnapshotStore,
    StoreError, TaskSummary,
};

mod ended;

use ended::Ended;

/// A row with its timestamp and its end.
struct Kept<T> {
    at_us: i64,
    expires_ms: i64,
    row: T,
}

impl<T: Clone> Kept<T> {
    fn alive(&self, now_ms: i64) -> Option<T> {
        (now_ms < self.expires_ms).then(|| self.row.clone())
    }
}

#[derive(Default)]
struct Content {
    snapshots: HashMap<TaskId, Kept<SnapshotRow>>,
    listings: HashMap<Listing, HashMap<TaskId, Kept<()>>>,
    ended: Ended,
    secrets: HashMap<&'static str, [u8; 32]>,
    keys: HashMap<Sha256Hash, Kept<KeyRow>>,
    overflow: HashMap<TaskId, HashMap<Offset, Kept<HistoryEntry>>>,
    payloads: HashMap<(TaskId, PayloadItem), (i64, Bytes)>,
    acked: HashMap<PartitionId, Offset>,
    chunks: HashMap<Sha256Hash, Bytes>,
    // With the time of publishing.
    checkpoints: BTreeMap<CheckpointName, (i64, Bytes)>,
}

/// The volatile store. Without a clock ([`MemoryStore::default`]) nothing in it expires, and all
/// checkpoints are of one day.
#[derive(Clone, Default)]
pub struct MemoryStore {
    content: Arc<Mutex<Content>>,
    clock: Option<Clock>,
}

impl MemoryStore {
    /// A store in which things expire by this clock.
    pub fn with_clock(clock: Clock) -> Self {
        Self { content: Arc::default(), clock: Some(clock) }
    }

    // Without a clock time stands still before anything expires.
    fn now_ms(&self) -> i64 {
        self.clock.as_ref().map_or(i64::MIN, |clock| clock())
    }

    /// Every snapshot row, in no order: for checks that compare rows with the log.
    pub fn rows(&self) -> Vec<SnapshotRow> {
        let now = self.now_ms();
        self.content.lock().snapshots.values().filter_map(|kept| kept.alive(now)).collect()
    }

    /// History entries that rows do not hold, of one task, by offset: at once, as
    /// [`SnapshotStore::history_overflow`] reads them.
    pub fn overflow(&self, task: TaskId) -> Vec<HistoryEntry> {
        let now = self.now_ms();
        let content = self.content.lock();
        let of_task = content.overflow.get(&task).into_iter().flat_map(HashMap::values);
        let mut entries: Vec<_> = of_task.filter_map(|kept| kept.alive(now)).collect();
        entries.sort_by_key(|entry| entry.offset);
        entries
    }

    fn listed(&self, listing: &Listing, limit: usize) -> Vec<TaskId> {
        let now = self.now_ms();
        let content = self.content.lock();
        let entries = content.listings.get(listing).into_iter().flatten();
        let mut ids: Vec<_> = entries.filter(|(_, kept)| kept.alive(now).is_some()).map(|(id, _)| *id).collect();
        ids.sort_unstable_by_key(|id| Reverse(*id));
        ids.truncate(limit);
        ids
    }

    /// Applies writes at once, as [`SnapshotStore::write`] does.
    pub fn write_now(&self, rows: Vec<RowWrite>) {
        let mut content = self.content.lock();
        for write in rows {
            let at_us = write.timestamp_us;
            let expires_ms = expires_ms(&write.row, at_us);
            match write.row {
                RowKind::Snapshot(row) => {
                    content.ended.write(&row, at_us);
                    for listing in Listing::of(&row) {
                        let entry = Kept { at_us, expires_ms: listed_until_ms(&row), row: () };
                        newest(content.listings.entry(listing).or_default(), row.core.id, entry);
                    }
                    newest(&mut content.snapshots, row.core.id, Kept { at_us, expires_ms, row });
                }
                RowKind::Key(row) => newest(&mut content.keys, row.key_hash, Kept { at_us, expires_ms, row }),
                RowKind::HistoryOverflow { task_id, entry } => {
                    let of_task = content.overflow.entry(task_id).or_default();
                    newest(of_task, entry.offset, Kept { at_us, expires_ms, row: entry });
                }
            }
        }
    }
}

// Last write wins by row clock, as Cassandra does it with USING TIMESTAMP.
fn newest<K: Hash + Eq, V>(table: &mut HashMap<K, Kept<V>>, key: K, row: Kept<V>) {
    match table.get(&key) {
        Some(there) if there.at_us > row.at_us => {}
        Some(_) | None => {
            table.insert(key, row);
        }
    }
}

type Answer<T> = Result<T, StoreError>;

impl SnapshotStore for MemoryStore {
    fn write(&self, _: PartitionId, rows: Vec<RowWrite>) -> impl Future<Output = Answer<()>> + Send + 'static {
        self.write_now(rows);
        ready(Ok(()))
    }

    fn snapshots(&self, ids: Vec<TaskId>) -> impl Future<Output = Answer<Vec<Option<SnapshotRow>>>> + Send + 'static {
        let now = self.now_ms();
        let content = self.content.lock();
        ready(Ok(ids.iter().map(|id| content.snapshots.get(id)?.alive(now)).collect()))
    }

    fn key(&self, key_hash: Sha256Hash) -> impl Future<Output = Answer<Option<KeyRow>>> + Send + 'static {
        let now = self.now_ms();
        ready(Ok(self.content.lock().keys.get(&key_hash).and_then(|kept| kept.alive(now))))
    }

    fn history_overflow(&self, task: TaskId) -> impl Future<Output = Answer<Vec<HistoryEntry>>> + Send + 'static {
        ready(Ok(self.overflow(task)))
    }

    fn tasks_by_trace(
        &self,
        trace_id: Text,
        limit: usize,
    ) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        ready(Ok(self.listed(&Listing::Trace(trace_id), limit)))
    }

    fn tasks_by_business_key(
        &self,
        creator: Text,
        business_key: Text,
        limit: usize,
    ) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        ready(Ok(self.listed(&Listing::BusinessKey { creator, key: business_key }, limit)))
    }

    fn ended(&self, span: EndedSpan, limit: usize) -> impl Future<Output = Answer<EndedPage>> + Send + 'static {
        let now = self.now_ms();
        ready(Ok(self.content.lock().ended.page(&span, now, limit)))
    }

    fn ended_task(&self, task: TaskId) -> impl Future<Output = Answer<Option<TaskSummary>>> + Send + 'static {
        let now = self.now_ms();
        ready(Ok(self.content.lock().ended.summary(task, now)))
    }

    fn secret(
        &self,
        name: &'static str,
        proposed: [u8; 32],
    ) -> impl Future<Output = Answer<[u8; 32]>> + Send + 'static {
        ready(Ok(*self.content.lock().secrets.entry(name).or_insert(proposed)))
    }

    fn put_payloads(
        &self,
        items: Vec<(TaskId, PayloadItem, Bytes)>,
    ) -> impl Future<Output = Answer<()>> + Send + 'static {
        let expires_ms = self.now_ms().saturating_add(PAYLOAD_TTL_MS);
        let entries = items.into_iter().map(|(task, item, bytes)| ((task, item), (expires_ms, bytes)));
        self.content.lock().payloads.extend(entries);
        ready(Ok(()))
    }

    fn payloads(
        &self,
        wanted: Vec<(TaskId, PayloadItem)>,
    ) -> impl Future<Output = Answer<Vec<Option<Bytes>>>> + Send + 'static {
        let now = self.now_ms();
        let content = self.content.lock();
        let alive = |key| content.payloads.get(key).filter(|(expires_ms, _)| now < *expires_ms);
        ready(Ok(wanted.iter().map(|key| alive(key).map(|(_, bytes)| bytes.clone())).collect()))
    }

    fn put_acked(&self, partition: PartitionId, offset: Offset) -> impl Future<Output = Answer<()>> + Send + 'static {
        let mut content = self.content.lock();
        let acked = content.acked.entry(partition).or_default();
        *acked = (*acked).max(offset);
        ready(Ok(()))
    }

    fn acked(&self, partition: PartitionId) -> impl Future<Output = Answer<Offset>> + Send + 'static {
        ready(Ok(self.content.lock().acked.get(&partition).copied().unwrap_or_default()))
    }

    fn put_chunk(&self, hash: Sha256Hash, bytes: Bytes) -> impl Future<Output = Answer<()>> + Send + 'static {
        self.content.lock().chunks.insert(hash, bytes);
        ready(Ok(()))
    }

    fn chunk(&self, hash: Sha256Hash) -> impl Future<Output = Answer<Option<Bytes>>> + Send + 'static {
        ready(Ok(self.content.lock().chunks.get(&hash).cloned()))
    }

    fn publish(&self, name: CheckpointName, manifest: Bytes) -> impl Future<Output = Answer<()>> + Send + 'static {
        let now = self.now_ms();
        let mut content = self.content.lock();
        let partition = name.partition;
        content.checkpoints.entry(name).or_insert((now, manifest));
        let of_partition = content.checkpoints.iter().filter(|(n, _)| n.partition == partition);
        for old in surplus(of_partition.map(|(n, (at, _))| (n.clone(), *at)).collect()) {
            content.checkpoints.remove(&old);
        }
        ready(Ok(()))
    }

    fn checkpoints(
        &self,
        partition: PartitionId,
    ) -> impl Future<Output = Answer<Vec<(CheckpointName, Bytes)>>> + Send + 'static {
        let content = self.content.lock();
        let of_partition = content.checkpoints.iter().rev().filter(|(n, _)| n.partition == partition);
        ready(Ok(of_partition.map(|(n, (_, manifest))| (n.clone(), manifest.clone())).collect()))
    }
}
