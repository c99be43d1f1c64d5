//! The one thread that writes: it takes what is queued, in the order of the calls, and commits it
//! with one sync. Whoever comes while it syncs is in the next commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use bytes::Bytes;
use fjall::PersistMode;
use task_events::{Offset, PartitionId};
use tokio::sync::oneshot;

use super::coding::{self, Stored};
use super::staged::Staged;
use super::tables::{Table, Tables};
use crate::lifetimes::NEVER;
use crate::{CheckpointName, StoreError};

/// Grace of a chunk that no manifest names, ms: chunks come before their manifest.
pub(super) const CHUNK_GRACE_MS: i64 = crate::DAY_MS;

/// What goes into the next commit together with whatever else is there.
pub(super) enum Write {
    /// Rows: each unless a newer one is there.
    Rows(Vec<(Table, Bytes, Stored)>),
    /// Payloads, whatever is there; of one key twice the later.
    Payloads(Vec<(Bytes, Stored)>),
    /// A chunk, to be looked at after its grace.
    Chunk(Bytes, Stored),
    /// Rows are acknowledged below the offset.
    Acked(PartitionId, Offset),
    /// A secret, unless there is one of the name.
    Secret(Bytes, Stored),
}

/// What reads a range of a table and decides by it, so that nothing may be under way beside it.
pub(super) enum Upkeep {
    /// A manifest, published at this time, Unix ms.
    Publish(CheckpointName, Bytes, i64),
    /// Checkpoints below the start of the log.
    Forget(PartitionId, Offset),
    /// Removal of what has expired.
    Sweep { now_ms: i64, limit: usize },
}

/// What the writer is asked for.
pub(super) enum Work {
    Write(Write),
    Upkeep(Upkeep),
}

impl Work {
    fn bytes(&self) -> usize {
        const EACH: usize = 64;
        match self {
            Self::Write(Write::Rows(rows)) => {
                rows.iter().map(|(_, key, value)| EACH + key.len() + value.body.len()).sum()
            }
            Self::Write(Write::Payloads(items)) => {
                items.iter().map(|(key, value)| EACH + key.len() + value.body.len()).sum()
            }
            Self::Write(Write::Chunk(key, value) | Write::Secret(key, value)) => EACH + key.len() + value.body.len(),
            Self::Upkeep(Upkeep::Publish(_, manifest, _)) => EACH + manifest.len(),
            Self::Write(Write::Acked(..)) | Self::Upkeep(Upkeep::Forget(..) | Upkeep::Sweep { .. }) => EACH,
        }
    }
}

/// Answer of a job: how many entries it settled, which only the sweep counts.
pub(super) type Reply = oneshot::Sender<Result<usize, StoreError>>;

struct Job {
    work: Work,
    bytes: usize,
    reply: Reply,
}

/// The way into the queue. The writer ends when it is dropped and everything queued is written.
pub(super) struct Queue {
    jobs: Sender<Job>,
    queued_bytes: Arc<AtomicUsize>,
    max_queued_bytes: usize,
}

impl Queue {
    /// Queues work; refuses it when too much is waiting.
    pub fn push(&self, work: Work, reply: Reply) {
        let bytes = work.bytes();
        let before = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before > 0 && before + bytes > self.max_queued_bytes {
            self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            let text = format!("{before} bytes wait for the writer, limit {}", self.max_queued_bytes);
            let _ = reply.send(Err(StoreError::Unavailable(text)));
            return;
        }
        // If the writer is gone, the reply is dropped, which says so.
        let _ = self.jobs.send(Job { work, bytes, reply });
    }
}

/// The writing end of the store.
pub(super) struct Writer {
    pub tables: Arc<Tables>,
    pub mode: PersistMode,
    max_commit_bytes: usize,
    queued_bytes: Arc<AtomicUsize>,
    /// The sweep has nothing to look at before this time: it need not skip what it removed.
    pub swept_below_ms: i64,
}

impl Writer {
    /// The way to a new writer, and what runs it on a thread.
    pub fn queue(
        tables: Arc<Tables>,
        mode: PersistMode,
        max_queued_bytes: usize,
        max_commit_bytes: usize,
    ) -> (Queue, impl FnOnce() + Send + 'static) {
        let (jobs, incoming) = std::sync::mpsc::channel();
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let queue = Queue { jobs, queued_bytes: queued_bytes.clone(), max_queued_bytes };
        let mut writer = Self { tables, mode, max_commit_bytes, queued_bytes, swept_below_ms: 0 };
        (queue, move || writer.run(&incoming))
    }

    fn run(&mut self, incoming: &Receiver<Job>) {
        while let Ok(first) = incoming.recv() {
            let (mut group, mut bytes) = (Vec::new(), 0);
            let mut next = Some(first);
            while let Some(job) = next.take() {
                self.queued_bytes.fetch_sub(job.bytes, Ordering::Relaxed);
                match job.work {
                    Work::Write(write) => {
                        bytes += job.bytes;
                        group.push((write, job.reply));
                    }
                    Work::Upkeep(upkeep) => {
                        self.commit(std::mem::take(&mut group));
                        let _ = job.reply.send(self.upkeep(upkeep));
                    }
                }
                if bytes < self.max_commit_bytes {
                    next = incoming.try_recv().ok();
                }
            }
            self.commit(group);
        }
    }

    // One commit for all of them. A failure is everybody's: nobody knows what of it is on disk.
    fn commit(&mut self, group: Vec<(Write, Reply)>) {
        let tables = self.tables.clone();
        let mut staged = Staged::new(&tables);
        let mut waiting = Vec::with_capacity(group.len());
        for (write, reply) in group {
            match stage(&mut staged, write) {
                Ok(()) => waiting.push(reply),
                Err(error) => drop(reply.send(Err(error))),
            }
        }
        let done = self.finish(staged, self.mode);
        for reply in waiting {
            let _ = reply.send(done.clone().map(|()| 0));
        }
    }

    fn upkeep(&mut self, upkeep: Upkeep) -> Result<usize, StoreError> {
        match upkeep {
            Upkeep::Publish(name, manifest, now_ms) => self.publish(&name, manifest, now_ms).map(|()| 0),
            Upkeep::Forget(partition, start) => self.forget(partition, start),
            Upkeep::Sweep { now_ms, limit } => self.sweep(now_ms, limit),
        }
    }

    /// Commits, and remembers what the sweep will have to look at.
    pub fn finish(&mut self, staged: Staged<'_>, mode: PersistMode) -> Result<(), StoreError> {
        self.swept_below_ms = self.swept_below_ms.min(staged.earliest_ms.max(0));
        staged.commit(mode)
    }
}

fn stage(staged: &mut Staged<'_>, write: Write) -> Result<(), StoreError> {
    match write {
        Write::Rows(rows) => {
            for (table, key, value) in rows {
                staged.put_newest(table, key, &value)?;
            }
        }
        Write::Payloads(items) => {
            for (key, value) in items {
                staged.put(Table::Payloads, key, &value);
            }
        }
        Write::Chunk(key, value) => {
            staged.look_at((value.at_us / 1_000).saturating_add(CHUNK_GRACE_MS), Table::Chunks, &key);
            staged.put(Table::Chunks, key, &value);
        }
        Write::Secret(name, value) => {
            if staged.get(Table::Secrets, &name)?.is_none() {
                staged.put(Table::Secrets, name, &value);
            }
        }
        Write::Acked(partition, offset) => {
            let key = Bytes::from(coding::partition_key(partition));
            let there = staged.get(Table::Acked, &key)?.and_then(|stored| coding::offset(&stored.body).ok());
            if there.is_none_or(|there| there < offset) {
                let body = Bytes::copy_from_slice(&offset.0.to_be_bytes());
                staged.put(Table::Acked, key, &Stored { at_us: 0, expires_ms: NEVER, body });
            }
        }
    }
    Ok(())
}
