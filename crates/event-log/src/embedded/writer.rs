//! The one thread that writes. It takes everything that is queued, writes it with one system
//! call, syncs once, marks the batch as synced, and only then shows and acknowledges it.
//!
//! It never writes a record twice and never goes on after an error it can't undo.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use task_events::{Offset, PartitionId};

use super::config::{Durability, EmbeddedConfig};
use super::core::Core;
use super::format::{ENTRY_HEADER, EntryHeader, SegmentHeader, TRAILER};
use super::queue::{Job, Queue};
use super::segment_file::{create_segment, seal};
use super::segments::Active;
use crate::AppendOutcome;

/// The writer's state; owned by its thread.
pub(super) struct Writer {
    pub core: Arc<Core>,
    pub queue: Arc<Queue>,
    pub config: EmbeddedConfig,
    pub active: Arc<Active>,
    /// Bytes of the newest segment that are committed.
    pub len: u64,
    pub created_ms: i64,
    pub next: Vec<u64>,
    pub marks: u64,
    /// The bytes at `len` were synced and no mark says so yet.
    pub mark_due: bool,
}

/// A write that failed.
enum Failure {
    /// Everything is as before; nothing of the batch is or will be in the log.
    Undone(String),
    /// The state of the file is unknown.
    Unknown(String),
}

/// A record that was put into the buffer and is to be indexed once durable.
struct Placed {
    partition: u16,
    position: u64,
    len: u64,
}

impl Writer {
    /// Runs until the queue is closed and empty, or the log has failed.
    pub fn run(mut self) {
        // Whatever ends this thread, nobody may wait for it afterwards.
        let queue = self.queue.clone();
        let _guard = FailOnDrop(queue.clone());
        while let Some(jobs) = queue.take(self.config.max_commit_bytes) {
            match self.commit(&jobs) {
                Ok(()) => jobs.into_iter().for_each(|job| job.answer.acknowledge()),
                Err(Failure::Undone(reason)) => {
                    tracing::error!(file = %self.active.path.display(), %reason, "append failed, nothing was written");
                    jobs.into_iter().for_each(|job| job.answer.send(AppendOutcome::NotSent(reason.clone())));
                }
                Err(Failure::Unknown(reason)) => {
                    let reason = format!("event log has failed and must be reopened: {reason}");
                    tracing::error!(file = %self.active.path.display(), %reason, "event log failed");
                    queue.fail(&reason);
                    jobs.into_iter().for_each(|job| job.answer.send(AppendOutcome::Unknown(reason.clone())));
                    return;
                }
            }
        }
    }

    fn commit(&mut self, jobs: &[Job]) -> Result<(), Failure> {
        let broker_ms = (self.config.clock)();
        let bytes: usize =
            jobs.iter().map(|job| job.batch.bodies.len() + job.batch.shapes.len() * (ENTRY_HEADER + 1)).sum();
        if self.must_roll(bytes as u64, broker_ms) {
            self.roll(broker_ms)?;
        }
        let mut next = self.next.clone();
        let (buffer, placed) = self.build(jobs, bytes, broker_ms, &mut next);
        self.write(&buffer)?;
        if self.config.durability == Durability::Fsync
            && let Err(error) = self.active.file.sync_data()
        {
            // After a failed fsync the kernel may have dropped the pages: what is on disk is anyone's guess.
            return Err(Failure::Unknown(format!("fdatasync: {error}")));
        }
        self.len += buffer.len() as u64;
        self.mark(broker_ms);
        {
            let mut index = self.active.index.write();
            for record in &placed {
                index.push(usize::from(record.partition), record.position, record.len, broker_ms);
            }
        }
        for (p, (new, old)) in next.iter().zip(&self.next).enumerate() {
            if new != old {
                self.core.visible.advance(PartitionId(p as u16), *new);
            }
        }
        self.next = next;
        Ok(())
    }

    /// Entries of the batch, each partition's together: reads of one partition then find long
    /// runs. The order inside a partition is the order of the calls.
    fn build(&self, jobs: &[Job], bytes: usize, broker_ms: i64, next: &mut [u64]) -> (Vec<u8>, Vec<Placed>) {
        let mut order: Vec<&Job> = jobs.iter().collect();
        order.sort_by_key(|job| job.partition.0);
        let mut buffer = Vec::with_capacity(bytes + ENTRY_HEADER + 1);
        let mut placed = Vec::with_capacity(jobs.iter().map(|job| job.batch.shapes.len()).sum());
        if self.mark_due {
            self.put(&mut buffer, &EntryHeader::mark(self.marks, broker_ms), &[]);
        }
        for job in order {
            let mut from = 0;
            for shape in &job.batch.shapes {
                let offset = &mut next[usize::from(job.partition.0)];
                let header = EntryHeader {
                    mark: false,
                    partition: job.partition,
                    offset: Offset(*offset),
                    broker_ms,
                    shape: *shape,
                };
                let body = &job.batch.bodies[from..from + shape.body_len as usize];
                placed.push(Placed {
                    partition: job.partition.0,
                    position: self.len + buffer.len() as u64,
                    len: header.entry_len(),
                });
                self.put(&mut buffer, &header, body);
                from += body.len();
                *offset += 1;
            }
        }
        (buffer, placed)
    }

    fn put(&self, buffer: &mut Vec<u8>, header: &EntryHeader, body: &[u8]) {
        let position = self.len + buffer.len() as u64;
        buffer.extend_from_slice(&header.encode(self.active.salt, position));
        buffer.extend_from_slice(body);
        buffer.push(TRAILER);
    }

    fn write(&self, buffer: &[u8]) -> Result<(), Failure> {
        let Err(error) = self.active.file.write_all_at(buffer, self.len) else { return Ok(()) };
        // Part of it may have been written; without a sync it can be taken back for sure.
        match self.active.file.set_len(self.len) {
            Ok(()) if out_of_space(&error) => Err(Failure::Undone(format!("write: {error}"))),
            Ok(()) => Err(Failure::Unknown(format!("write: {error}"))),
            Err(undo) => Err(Failure::Unknown(format!("write: {error}; and taking it back: {undo}"))),
        }
    }

    /// Says that everything so far is synced. Not synced itself, and not needed for correctness:
    /// without it recovery only knows less, so an error only puts it off.
    fn mark(&mut self, broker_ms: i64) {
        let mut buffer = Vec::with_capacity(ENTRY_HEADER + 1);
        self.put(&mut buffer, &EntryHeader::mark(self.marks, broker_ms), &[]);
        self.marks += 1;
        match self.active.file.write_all_at(&buffer, self.len) {
            Ok(()) => {
                self.len += buffer.len() as u64;
                self.mark_due = false;
            }
            Err(error) => {
                tracing::warn!(file = %self.active.path.display(), %error, "mark not written, tried again with the next batch");
                let _ = self.active.file.set_len(self.len);
                self.mark_due = true;
            }
        }
    }

    fn must_roll(&self, bytes: u64, broker_ms: i64) -> bool {
        let start = SegmentHeader::len_for(self.core.partitions) as u64;
        let aged = broker_ms.saturating_sub(self.created_ms)
            >= i64::try_from(self.config.segment_age.as_millis()).unwrap_or(i64::MAX);
        let full = self.len + bytes > self.config.segment_bytes;
        self.next != self.bases() && (full || aged || self.len >= u64::from(u32::MAX) / 2) && self.len > start
            || !self.active.index.read().takes(broker_ms)
    }

    fn bases(&self) -> Vec<u64> {
        self.active.index.read().partitions.iter().map(|p| p.base).collect()
    }

    /// Goes on in a new segment. The new one is durable before the old one counts as sealed.
    fn roll(&mut self, broker_ms: i64) -> Result<(), Failure> {
        let meta = self.core.segments.meta.lock().clone();
        let number = self.active.number + 1;
        let header = SegmentHeader {
            log_id: meta.log_id,
            number,
            created_ms: broker_ms,
            previous_len: self.len,
            bases: self.next.clone(),
        };
        let directory = &self.core.segments.directory;
        let path = directory.segment_path(number);
        let active = match create_segment(&path, &header, self.config.durability).and_then(|active| {
            if self.config.durability == Durability::Fsync {
                directory.sync_segments_dir()?
            }
            Ok(active)
        }) {
            Ok(active) => active,
            Err(error) => {
                let reason = format!("new segment {}: {error}", path.display());
                let removed = fs::remove_file(&path).is_ok() || !path.exists();
                return Err(if removed && out_of_space(&error) {
                    Failure::Undone(reason)
                } else {
                    Failure::Unknown(reason)
                });
            }
        };
        let old = self.active.clone();
        let sealed = seal(&old, &directory.index_path(old.number), meta.log_id, self.len);
        self.active = Arc::new(active);
        self.core.segments.roll(sealed, self.active.clone());
        self.len = SegmentHeader::len_for(self.core.partitions) as u64;
        self.created_ms = broker_ms;
        self.marks = 0;
        self.mark_due = false;
        Ok(())
    }
}

fn out_of_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

struct FailOnDrop(Arc<Queue>);

impl Drop for FailOnDrop {
    fn drop(&mut self) {
        self.0.fail("the log is closed");
    }
}
