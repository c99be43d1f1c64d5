//! What keeps the store small: publishing lets older checkpoints go, the sweep removes what has
//! expired. Runs on the writer, so that nothing changes meanwhile.

use std::collections::HashSet;

use bytes::Bytes;
use fjall::PersistMode;
use task_core::checkpoint::chunks_of;
use task_events::{Offset, PartitionId};

use super::coding::{self, Stored};
use super::staged::Staged;
use super::tables::{Table, Tables};
use super::writer::{CHUNK_GRACE_MS, Writer};
use crate::lifetimes::{NEVER, surplus};
use crate::{CheckpointName, StoreError};

impl Writer {
    /// Stores a manifest and removes those that are surplus by it, in one commit.
    pub fn publish(&mut self, name: &CheckpointName, manifest: Bytes, now_ms: i64) -> Result<(), StoreError> {
        let tables = self.tables.clone();
        let mut published = published(&tables, name.partition)?;
        if published.iter().any(|(there, _)| there == name) {
            return Ok(());
        }
        published.push((name.clone(), now_ms));
        let mut staged = Staged::new(&tables);
        let value = Stored { at_us: now_ms.saturating_mul(1_000), expires_ms: NEVER, body: manifest };
        staged.put(Table::Checkpoints, coding::checkpoint_key(name).into(), &value);
        for old in surplus(published) {
            staged.remove(Table::Checkpoints, coding::checkpoint_key(&old).into());
        }
        self.finish(staged, self.mode)
    }

    /// Removes checkpoints below the start of the log, but never the two highest. Says how many.
    pub fn forget(&mut self, partition: PartitionId, start: Offset) -> Result<usize, StoreError> {
        let tables = self.tables.clone();
        let published = published(&tables, partition)?;
        let mut staged = Staged::new(&tables);
        let mut removed = 0;
        for (name, _) in published.iter().rev().skip(2).filter(|(name, _)| name.offset < start) {
            staged.remove(Table::Checkpoints, coding::checkpoint_key(name).into());
            removed += 1;
        }
        self.finish(staged, self.mode)?;
        Ok(removed)
    }

    /// Settles up to `limit` entries that are due: removes what has expired since, and chunks that
    /// no manifest names any more.
    pub fn sweep(&mut self, now_ms: i64, limit: usize) -> Result<usize, StoreError> {
        let tables = self.tables.clone();
        let limit = limit.max(1);
        let start = self.swept_below_ms.to_be_bytes();
        let end = now_ms.max(0).saturating_add(1).to_be_bytes();
        let due = if start < end { tables.keys(Table::Expiries, &start, &end, limit)? } else { Vec::new() };
        let mut staged = Staged::new(&tables);
        let mut chunks = Vec::new();
        for entry in &due {
            staged.remove(Table::Expiries, entry.clone());
            match coding::expiry(entry) {
                Some((_, Table::Chunks, hash)) => chunks.push(entry.slice_ref(hash)),
                Some((_, table, key)) => {
                    let key = entry.slice_ref(key);
                    // A row that was written since lives on, and has an entry of its own.
                    if staged.get(table, &key)?.is_some_and(|stored| stored.expires_ms <= now_ms) {
                        staged.remove(table, key);
                    }
                }
                None => return Err(Table::Expiries.damaged(entry, "no time, table and key")),
            }
        }
        sweep_chunks(&tables, &mut staged, chunks, now_ms)?;
        let next = match due.last().and_then(|entry| coding::expiry(entry)) {
            Some((at_ms, ..)) if due.len() >= limit => at_ms,
            Some(_) | None => now_ms.max(self.swept_below_ms),
        };
        // Not synced: what comes back after a loss of power is swept again.
        self.finish(staged, PersistMode::Buffer)?;
        self.swept_below_ms = self.swept_below_ms.max(next);
        Ok(due.len())
    }
}

fn sweep_chunks(tables: &Tables, staged: &mut Staged<'_>, chunks: Vec<Bytes>, now_ms: i64) -> Result<(), StoreError> {
    if chunks.is_empty() {
        return Ok(());
    }
    let named = named_chunks(tables)?;
    for hash in chunks {
        let Some(written_us) = staged.get(Table::Chunks, &hash)?.map(|stored| stored.at_us) else { continue };
        if (written_us / 1_000).saturating_add(CHUNK_GRACE_MS) > now_ms {
            // Written again since, so there is a later entry for it.
            continue;
        }
        // Which chunks an unreadable manifest names is not known: none goes meanwhile.
        if named.as_ref().is_none_or(|named| named.contains(&hash[..])) {
            staged.look_at(now_ms.saturating_add(CHUNK_GRACE_MS), Table::Chunks, &hash);
        } else {
            staged.remove(Table::Chunks, hash);
        }
    }
    Ok(())
}

// Hashes of the chunks that any manifest names; `None` when one of them cannot be read.
fn named_chunks(tables: &Tables) -> Result<Option<HashSet<Vec<u8>>>, StoreError> {
    let mut named = HashSet::new();
    for (_, stored) in tables.below(Table::Checkpoints, &[])? {
        match chunks_of(&stored.body, true) {
            Ok(hashes) => named.extend(hashes.into_iter().map(|hash| hash.0.to_vec())),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(named))
}

// Names and times of a partition's checkpoints, lowest first.
fn published(tables: &Tables, partition: PartitionId) -> Result<Vec<(CheckpointName, i64)>, StoreError> {
    let found = tables.below(Table::Checkpoints, &coding::partition_key(partition))?;
    let name = |key: &Bytes| {
        coding::checkpoint_name(key).ok_or_else(|| Table::Checkpoints.damaged(key, "not the name of a checkpoint"))
    };
    found.iter().map(|(key, stored)| Ok((name(key)?, stored.at_us.div_euclid(1_000)))).collect()
}
