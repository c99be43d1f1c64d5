//! `partition_checkpoints` and `checkpoint_chunks`.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::{self, TryStreamExt as _};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimestamp;
use task_core::checkpoint::chunks_of;
use task_events::{Offset, PartitionEpoch, PartitionId, RuleVersion, Sha256Hash};

use super::coded::{damaged, hash_column, number, offset, offset_column, there};
use super::connection::{Connection, prepare};
use super::error::ConnectError;
use crate::lifetimes::surplus;
use crate::{CheckpointName, StoreError};

/// Bytes of one part of a chunk. A node takes writes of up to half of a segment of its commit log.
const PART_BYTES: usize = 1 << 20;

/// Both tables.
pub(super) struct Checkpoints {
    put: PreparedStatement,
    delete: PreparedStatement,
    of_partition: PreparedStatement,
    put_part: PreparedStatement,
    parts: PreparedStatement,
    delete_chunk: PreparedStatement,
}

/// A checkpoint that is there.
struct Published {
    name: CheckpointName,
    at_ms: i64,
    manifest: Bytes,
}

type Row = (i64, i64, i64, String, Option<CqlTimestamp>, Option<Bytes>);

impl Checkpoints {
    pub async fn prepare(session: &Session) -> Result<Self, ConnectError> {
        let put = "INSERT INTO partition_checkpoints \
                   (partition, offset, epoch, rule_version, state_hash, published_at, manifest) \
                   VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?";
        let delete = "DELETE FROM partition_checkpoints USING TIMESTAMP ? \
                      WHERE partition = ? AND offset = ? AND epoch = ? AND rule_version = ? AND state_hash = ?";
        let of_partition = "SELECT offset, epoch, rule_version, state_hash, published_at, manifest \
                            FROM partition_checkpoints WHERE partition = ?";
        let put_part = "INSERT INTO checkpoint_chunks (hash, part, bytes) VALUES (?, ?, ?) USING TIMESTAMP ?";
        Ok(Self {
            put: prepare(session, put).await?,
            delete: prepare(session, delete).await?,
            of_partition: prepare(session, of_partition).await?,
            put_part: prepare(session, put_part).await?,
            parts: prepare(session, "SELECT bytes FROM checkpoint_chunks WHERE hash = ?").await?,
            delete_chunk: prepare(session, "DELETE FROM checkpoint_chunks USING TIMESTAMP ? WHERE hash = ?").await?,
        })
    }

    pub async fn put_chunk(
        &self,
        to: &Connection,
        hash: Sha256Hash,
        bytes: Bytes,
        stamp: i64,
    ) -> Result<(), StoreError> {
        let parts = bytes.len().div_ceil(PART_BYTES).max(1);
        let written = (0..parts).map(|part| {
            let from = part * PART_BYTES;
            let piece = bytes.slice(from..bytes.len().min(from + PART_BYTES));
            to.write(&self.put_part, (hash_column(hash), part as i32, piece, stamp))
        });
        stream::iter(written).buffer_unordered(8).try_collect().await
    }

    pub async fn chunk(&self, from: &Connection, hash: Sha256Hash) -> Result<Option<Bytes>, StoreError> {
        let parts: Vec<(Option<Bytes>,)> = from.all(&self.parts, &(hash_column(hash),)).await?;
        if parts.is_empty() {
            return Ok(None);
        }
        let mut whole = BytesMut::with_capacity(parts.iter().flat_map(|(part,)| part).map(Bytes::len).sum());
        parts.iter().flat_map(|(part,)| part).for_each(|part| whole.extend_from_slice(part));
        Ok(Some(whole.freeze()))
    }

    /// Stores a manifest, and lets go what is surplus by it. Repeating it goes on where it broke off.
    pub async fn publish(
        &self,
        to: &Connection,
        name: CheckpointName,
        manifest: Bytes,
        (now_ms, stamp): (i64, i64),
    ) -> Result<(), StoreError> {
        let mut there = self.read(to, name.partition).await?;
        if !there.iter().any(|published| published.name == name) {
            let published_at = CqlTimestamp(now_ms);
            let (partition, at, epoch, rules, state) = key(&name);
            to.write(&self.put, (partition, at, epoch, rules, state, published_at, &manifest, stamp)).await?;
            there.push(Published { name, at_ms: now_ms, manifest });
        }
        let old = surplus(there.iter().map(|one| (one.name.clone(), one.at_ms)).collect());
        self.remove(to, &there, &old, stamp).await
    }

    /// Lets go checkpoints that the start of the log has passed, but never the two highest. Says how many.
    pub async fn forget(
        &self,
        to: &Connection,
        partition: PartitionId,
        log_start: Offset,
        stamp: i64,
    ) -> Result<usize, StoreError> {
        let there = self.read(to, partition).await?;
        let names = there.iter().map(|one| &one.name).skip(2).filter(|name| name.offset < log_start);
        let old: Vec<CheckpointName> = names.cloned().collect();
        self.remove(to, &there, &old, stamp).await?;
        Ok(old.len())
    }

    /// Published checkpoints, highest offset first.
    pub async fn list(
        &self,
        from: &Connection,
        partition: PartitionId,
    ) -> Result<Vec<(CheckpointName, Bytes)>, StoreError> {
        let there = self.read(from, partition).await?;
        Ok(there.into_iter().map(|one| (one.name, one.manifest)).collect())
    }

    async fn read(&self, from: &Connection, partition: PartitionId) -> Result<Vec<Published>, StoreError> {
        let found: Vec<Row> = from.all(&self.of_partition, &(i32::from(partition.0),)).await?;
        let mut there = Vec::with_capacity(found.len());
        for (at, epoch, rules, state, published_at, manifest) in found {
            let wrong = |why: String| damaged("partition_checkpoints", format_args!("{partition} {at}"), why);
            let state_hash = u128::from_str_radix(&state, 16).map_err(|why| wrong(format!("state_hash: {why}")))?;
            there.push(Published {
                name: CheckpointName {
                    partition,
                    offset: offset(at),
                    epoch: PartitionEpoch(number("epoch", Some(epoch)).map_err(wrong)?),
                    rule_version: RuleVersion(number("rule_version", Some(rules)).map_err(wrong)?),
                    state_hash,
                },
                at_ms: self::there("published_at", published_at).map_err(wrong)?.0,
                manifest: self::there("manifest", manifest).map_err(wrong)?,
            });
        }
        there.sort_by(|a, b| b.name.cmp(&a.name));
        Ok(there)
    }

    // Manifests first: whoever still finds one finds its chunks. A chunk goes only if nothing that stays
    // names it, and at the time at which its manifest was published: one that was written again since,
    // for a checkpoint that is not published yet, is newer and stays.
    async fn remove(
        &self,
        to: &Connection,
        there: &[Published],
        old: &[CheckpointName],
        stamp: i64,
    ) -> Result<(), StoreError> {
        let named = |one: &Published| chunks_of(&one.manifest, true).ok();
        let mut stay = BTreeSet::new();
        for one in there.iter().filter(|one| !old.contains(&one.name)) {
            match named(one) {
                Some(hashes) => stay.extend(hashes),
                // Which chunks an unreadable manifest names is not known: none goes meanwhile.
                None => return self.remove_manifests(to, old, stamp).await,
            }
        }
        self.remove_manifests(to, old, stamp).await?;
        for one in there.iter().filter(|one| old.contains(&one.name)) {
            // To the end of the millisecond: stamps are finer than the time of publishing.
            let at = one.at_ms.saturating_mul(1_000).saturating_add(999);
            for hash in named(one).unwrap_or_default().into_iter().filter(|hash| !stay.contains(hash)) {
                to.write(&self.delete_chunk, (at, hash_column(hash))).await?;
            }
        }
        Ok(())
    }

    async fn remove_manifests(&self, to: &Connection, old: &[CheckpointName], stamp: i64) -> Result<(), StoreError> {
        for name in old {
            let (partition, at, epoch, rules, state) = key(name);
            to.write(&self.delete, (stamp, partition, at, epoch, rules, state)).await?;
        }
        Ok(())
    }
}

fn key(name: &CheckpointName) -> (i32, i64, i64, i64, String) {
    let state = format!("{:032x}", name.state_hash);
    (i32::from(name.partition.0), offset_column(name.offset), name.epoch.0.into(), name.rule_version.0.into(), state)
}
