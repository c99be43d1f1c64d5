//! The snapshot track: slow, away, wrong about its own errors, late with old writes, careless with
//! chunks; but what it acknowledged is what the next reader sees.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::future::Future;

use bytes::Bytes;
use foldhash::fast::FixedState;
use futures::channel::oneshot;
use hashbrown::HashMap;
use snapshot_store::{
    CheckpointName, EndedList, EndedPage, EndedSpan, KeyRow, PayloadItem, RowKind, RowWrite, SnapshotRow,
    SnapshotStore, StoreError, TaskSummary,
};
use task_core::{HistoryEntry, Row};
use task_events::{Offset, PartitionId, Sha256Hash, TaskId, Text};

use crate::faults::Fault;
use crate::hub::{Hub, Shared};

type Map<K, V> = HashMap<K, V, FixedState>;

/// What the store holds.
#[derive(Default)]
pub struct Tables {
    /// Snapshot rows and their timestamps.
    pub snapshots: Map<TaskId, (i64, SnapshotRow)>,
    /// Keys.
    pub keys: Map<Sha256Hash, (i64, KeyRow)>,
    /// History entries beside the rows, and their timestamps.
    pub overflow: BTreeMap<(TaskId, Offset), (i64, HistoryEntry)>,
    payloads: Map<(TaskId, PayloadItem), Bytes>,
    secrets: BTreeMap<&'static str, [u8; 32]>,
    acked: BTreeMap<PartitionId, Offset>,
    chunks: Map<Sha256Hash, Bytes>,
    checkpoints: BTreeMap<(PartitionId, Offset), (CheckpointName, Bytes)>,
    /// Away until then, true µs.
    pub down_until: u64,
}

impl Tables {
    fn put(&mut self, write: &RowWrite) -> bool {
        let at = write.timestamp_us;
        match &write.row {
            RowKind::Snapshot(row) => newer(&mut self.snapshots, row.core.id, at, row),
            RowKind::Key(row) => newer(&mut self.keys, row.key_hash, at, row),
            RowKind::HistoryOverflow { task_id, entry } => {
                let key = (*task_id, entry.offset);
                let newest = self.overflow.get(&key).is_none_or(|(there, _)| *there <= at);
                if newest {
                    self.overflow.insert(key, (at, *entry));
                }
                newest
            }
        }
    }

    // Nothing expires here, so what a task is found by is a question to the rows: no entry can be
    // there without its row, which is what the port promises.
    fn found(&self, limit: usize, by: impl Fn(&Row) -> bool) -> Vec<TaskId> {
        let rows = self.snapshots.iter().filter(|(_, (_, row))| by(&row.row));
        let mut ids: Vec<_> = rows.map(|(id, _)| *id).collect();
        ids.sort_unstable_by_key(|id| Reverse(*id));
        ids.truncate(limit);
        ids
    }

    // Of the rows as they are: one that is open again is not kept as it ended before, since no part
    // of the simulated world lists tasks.
    fn ended(&self, span: &EndedSpan, limit: usize) -> EndedPage {
        let all = self.snapshots.values().filter(|(_, row)| row.core.state.is_terminal());
        let all = all.map(|(_, row)| TaskSummary::of(row)).filter(|ended| match &span.list {
            EndedList::All => true,
            EndedList::Code(code) => ended.error_code.as_ref() == Some(code),
            EndedList::Review => ended.waits_for_review(),
        });
        let within = |task: TaskId| task.partition() == span.partition && (span.low..=span.high).contains(&task);
        let mut tasks: Vec<_> = all.filter(|ended| within(ended.id)).collect();
        tasks.sort_unstable_by_key(|ended| ended.id);
        if !span.oldest_first {
            tasks.reverse();
        }
        let more = tasks.len() > limit;
        tasks.truncate(limit);
        EndedPage { looked_at: tasks.len(), looked_to: tasks.last().filter(|_| more).map(|ended| ended.id), tasks }
    }
}

// Last write wins by row clock.
fn newer<K: std::hash::Hash + Eq, V: Clone>(table: &mut Map<K, (i64, V)>, key: K, at: i64, row: &V) -> bool {
    match table.get_mut(&key) {
        Some((there, _)) if *there > at => return false,
        Some(slot) => *slot = (at, row.clone()),
        None => {
            table.insert(key, (at, row.clone()));
        }
    }
    true
}

impl Shared {
    fn write_rows(&mut self, rows: &[RowWrite]) {
        for write in rows {
            if let RowKind::Snapshot(row) = &write.row {
                let before = self.tables.snapshots.get(&row.core.id).map(|(_, r)| r.row.applied_offset);
                let taken = self.tables.put(write);
                self.audit.row_written(write.timestamp_us, row, taken, before);
            } else {
                self.tables.put(write);
            }
        }
    }

    fn publish(&mut self, name: CheckpointName, manifest: Bytes) {
        self.audit.published(&name, &self.tables);
        if self.strikes(Fault::TornCheckpoint)
            && let Ok(hashes) = task_core::checkpoint::chunks_of(&manifest, true)
            && let Some(hash) = self.rng.pick(&hashes).copied()
        {
            if self.rng.chance(500_000) {
                self.tables.chunks.remove(&hash);
            } else if let Some(bytes) = self.tables.chunks.get_mut(&hash) {
                let mut torn = bytes.to_vec();
                let at = self.rng.below(torn.len() as u64) as usize;
                torn[at] ^= 1;
                *bytes = torn.into();
            }
        }
        let partition = name.partition;
        self.tables.checkpoints.insert((partition, name.offset), (name, manifest));
        let of: Vec<_> = self.tables.checkpoints.keys().filter(|(p, _)| *p == partition).copied().collect();
        for old in of.iter().rev().skip(2) {
            self.tables.checkpoints.remove(old);
        }
    }
}

/// The store as a process sees it.
#[derive(Clone)]
pub struct SimStore {
    hub: Hub,
}

type Answer<T> = Result<T, StoreError>;

impl SimStore {
    /// A connection.
    pub fn new(hub: Hub) -> Self {
        Self { hub }
    }

    // `work` may run twice, the second time long after the answer: every write is idempotent.
    fn call<T: Send + 'static>(
        &self,
        writes: bool,
        work: impl Fn(&mut Shared) -> T + Send + 'static,
    ) -> impl Future<Output = Answer<T>> + Send + 'static {
        let (answer, receiver) = oneshot::channel();
        let mut s = self.hub.lock();
        let typical = if s.strikes(Fault::StoreSlow) { 700_000 } else { 800 };
        let at = s.now() + s.rng.delay(typical);
        let down = at < s.tables.down_until;
        let written = writes && (down && s.rng.chance(200_000) || s.strikes(Fault::StoreErrorWritten));
        if down || written || s.strikes(Fault::StoreError) {
            if written {
                s.later(at, move |s| drop(work(s)));
            } else if writes && s.strikes(Fault::StoreLate) {
                let late = at + s.rng.below(20_000_000);
                s.later(late, move |s| drop(work(s)));
            }
            let at = at + s.rng.between(1_000, 500_000);
            s.later(at, move |_| {
                let _ = answer.send(Err(StoreError::Unavailable("no answer".to_owned())));
            });
        } else {
            let again = (writes && s.strikes(Fault::StoreLate)).then(|| s.rng.below(20_000_000));
            s.later(at, move |s| {
                let done = work(s);
                if let Some(late) = again {
                    let at = s.now() + late;
                    s.later(at, move |s| drop(work(s)));
                }
                let at = s.now() + s.rng.delay(300);
                s.later(at, move |_| {
                    let _ = answer.send(Ok(done));
                });
            });
        }
        drop(s);
        async move { receiver.await.unwrap_or_else(|_| Err(StoreError::Unavailable("gone".to_owned()))) }
    }
}

impl SnapshotStore for SimStore {
    fn write(&self, _: PartitionId, rows: Vec<RowWrite>) -> impl Future<Output = Answer<()>> + Send + 'static {
        self.call(true, move |s| s.write_rows(&rows))
    }

    fn snapshots(&self, ids: Vec<TaskId>) -> impl Future<Output = Answer<Vec<Option<SnapshotRow>>>> + Send + 'static {
        self.call(false, move |s| ids.iter().map(|id| s.tables.snapshots.get(id).map(|(_, row)| row.clone())).collect())
    }

    fn key(&self, key_hash: Sha256Hash) -> impl Future<Output = Answer<Option<KeyRow>>> + Send + 'static {
        self.call(false, move |s| s.tables.keys.get(&key_hash).map(|(_, row)| row.clone()))
    }

    fn history_overflow(&self, task: TaskId) -> impl Future<Output = Answer<Vec<HistoryEntry>>> + Send + 'static {
        self.call(false, move |s| {
            let of_task = s.tables.overflow.range((task, Offset(0))..=(task, Offset(u64::MAX)));
            of_task.map(|(_, (_, entry))| *entry).collect()
        })
    }

    fn tasks_by_trace(
        &self,
        trace_id: Text,
        limit: usize,
    ) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        self.call(false, move |s| s.tables.found(limit, |row| row.created.trace_given && row.trace_id == trace_id))
    }

    fn tasks_by_business_key(
        &self,
        creator: Text,
        business_key: Text,
        limit: usize,
    ) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        self.call(false, move |s| {
            s.tables.found(limit, |row| {
                row.created.creator == creator && row.created.business_key.as_ref() == Some(&business_key)
            })
        })
    }

    fn ended(&self, span: EndedSpan, limit: usize) -> impl Future<Output = Answer<EndedPage>> + Send + 'static {
        self.call(false, move |s| s.tables.ended(&span, limit))
    }

    fn ended_task(&self, task: TaskId) -> impl Future<Output = Answer<Option<TaskSummary>>> + Send + 'static {
        self.call(false, move |s| {
            let row = s.tables.snapshots.get(&task).filter(|(_, row)| row.core.state.is_terminal());
            row.map(|(_, row)| TaskSummary::of(row))
        })
    }

    fn secret(
        &self,
        name: &'static str,
        proposed: [u8; 32],
    ) -> impl Future<Output = Answer<[u8; 32]>> + Send + 'static {
        self.call(true, move |s| *s.tables.secrets.entry(name).or_insert(proposed))
    }

    fn put_payloads(
        &self,
        items: Vec<(TaskId, PayloadItem, Bytes)>,
    ) -> impl Future<Output = Answer<()>> + Send + 'static {
        self.call(true, move |s| {
            for (task, item, bytes) in &items {
                let before = s.tables.payloads.insert((*task, item.clone()), bytes.clone());
                s.audit.payload_written(*task, bytes, before.as_ref());
            }
        })
    }

    fn payloads(
        &self,
        wanted: Vec<(TaskId, PayloadItem)>,
    ) -> impl Future<Output = Answer<Vec<Option<Bytes>>>> + Send + 'static {
        self.call(false, move |s| wanted.iter().map(|key| s.tables.payloads.get(key).cloned()).collect())
    }

    fn put_acked(&self, partition: PartitionId, offset: Offset) -> impl Future<Output = Answer<()>> + Send + 'static {
        self.call(true, move |s| {
            let acked = s.tables.acked.entry(partition).or_default();
            *acked = (*acked).max(offset);
            s.audit.acked(partition, offset, &s.tables);
        })
    }

    fn acked(&self, partition: PartitionId) -> impl Future<Output = Answer<Offset>> + Send + 'static {
        self.call(false, move |s| s.tables.acked.get(&partition).copied().unwrap_or_default())
    }

    fn put_chunk(&self, hash: Sha256Hash, bytes: Bytes) -> impl Future<Output = Answer<()>> + Send + 'static {
        self.call(true, move |s| {
            s.tables.chunks.insert(hash, bytes.clone());
        })
    }

    fn chunk(&self, hash: Sha256Hash) -> impl Future<Output = Answer<Option<Bytes>>> + Send + 'static {
        self.call(false, move |s| s.tables.chunks.get(&hash).cloned())
    }

    fn publish(&self, name: CheckpointName, manifest: Bytes) -> impl Future<Output = Answer<()>> + Send + 'static {
        self.call(true, move |s| s.publish(name.clone(), manifest.clone()))
    }

    fn checkpoints(
        &self,
        partition: PartitionId,
    ) -> impl Future<Output = Answer<Vec<(CheckpointName, Bytes)>>> + Send + 'static {
        self.call(false, move |s| {
            let of = s.tables.checkpoints.iter().rev().filter(|((p, _), _)| *p == partition);
            of.map(|(_, (name, manifest))| (name.clone(), manifest.clone())).collect()
        })
    }
}
