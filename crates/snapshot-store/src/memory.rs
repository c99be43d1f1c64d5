//! Volatile adapter: nothing survives the process, and nothing needs to, since rows and
//! checkpoints are rebuilt from the log. Clones share one content.

use std::collections::{BTreeMap, HashMap};
use std::future::{Future, ready};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use task_core::HistoryEntry;
use task_events::{Offset, PartitionId, Sha256Hash, TaskId};

use crate::{CheckpointName, KeyRow, PayloadItem, RowKind, RowWrite, SnapshotRow, SnapshotStore, StoreError};

#[derive(Default)]
struct Content {
    snapshots: HashMap<TaskId, (i64, SnapshotRow)>,
    keys: HashMap<Sha256Hash, (i64, KeyRow)>,
    overflow: BTreeMap<(TaskId, Offset), HistoryEntry>,
    payloads: HashMap<(TaskId, PayloadItem), Bytes>,
    acked: HashMap<PartitionId, Offset>,
    chunks: HashMap<Sha256Hash, Bytes>,
    checkpoints: BTreeMap<CheckpointName, Bytes>,
}

/// The volatile store.
#[derive(Clone, Default)]
pub struct MemoryStore {
    content: Arc<Mutex<Content>>,
}

impl MemoryStore {
    /// Every snapshot row, in no order: for checks that compare rows with the log.
    pub fn rows(&self) -> Vec<SnapshotRow> {
        self.content.lock().snapshots.values().map(|(_, row)| row.clone()).collect()
    }

    /// History entries that rows do not hold, of one task.
    pub fn overflow(&self, task: TaskId) -> Vec<HistoryEntry> {
        let content = self.content.lock();
        content.overflow.range((task, Offset(0))..=(task, Offset(u64::MAX))).map(|(_, e)| *e).collect()
    }

    /// Applies writes at once, as [`SnapshotStore::write`] does.
    pub fn write_now(&self, rows: Vec<RowWrite>) {
        let mut content = self.content.lock();
        for write in rows {
            let at = write.timestamp_us;
            match write.row {
                RowKind::Snapshot(row) => newer(&mut content.snapshots, row.core.id, at, row),
                RowKind::Key(row) => newer(&mut content.keys, row.key_hash, at, row),
                RowKind::HistoryOverflow { task_id, entry } => {
                    content.overflow.insert((task_id, entry.offset), entry);
                }
            }
        }
    }
}

// Last write wins by row clock, as Cassandra does it with USING TIMESTAMP.
fn newer<K: std::hash::Hash + Eq, V>(table: &mut HashMap<K, (i64, V)>, key: K, at: i64, row: V) {
    match table.get(&key) {
        Some((there, _)) if *there > at => {}
        Some(_) | None => {
            table.insert(key, (at, row));
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
        let content = self.content.lock();
        ready(Ok(ids.iter().map(|id| content.snapshots.get(id).map(|(_, row)| row.clone())).collect()))
    }

    fn key(&self, key_hash: Sha256Hash) -> impl Future<Output = Answer<Option<KeyRow>>> + Send + 'static {
        ready(Ok(self.content.lock().keys.get(&key_hash).map(|(_, row)| row.clone())))
    }

    fn put_payload(
        &self,
        task: TaskId,
        item: PayloadItem,
        bytes: Bytes,
    ) -> impl Future<Output = Answer<()>> + Send + 'static {
        self.content.lock().payloads.insert((task, item), bytes);
        ready(Ok(()))
    }

    fn payload(&self, task: TaskId, item: PayloadItem) -> impl Future<Output = Answer<Option<Bytes>>> + Send + 'static {
        ready(Ok(self.content.lock().payloads.get(&(task, item)).cloned()))
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
        let mut content = self.content.lock();
        let partition = name.partition;
        content.checkpoints.insert(name, manifest);
        // A volatile store has no days to keep one of: the two highest are enough.
        let mut of_partition: Vec<_> =
            content.checkpoints.keys().filter(|n| n.partition == partition).cloned().collect();
        of_partition.sort_by_key(|n| std::cmp::Reverse(n.offset));
        for old in of_partition.into_iter().skip(2) {
            content.checkpoints.remove(&old);
        }
        ready(Ok(()))
    }

    fn checkpoints(
        &self,
        partition: PartitionId,
    ) -> impl Future<Output = Answer<Vec<(CheckpointName, Bytes)>>> + Send + 'static {
        let content = self.content.lock();
        let mut found: Vec<_> = content
            .checkpoints
            .iter()
            .filter(|(n, _)| n.partition == partition)
            .map(|(n, m)| (n.clone(), m.clone()))
            .collect();
        found.sort_by_key(|(n, _)| std::cmp::Reverse(n.offset));
        ready(Ok(found))
    }
}
