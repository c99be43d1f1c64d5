//! Choosing and loading the checkpoint.

use std::collections::HashMap;

use bytes::Bytes;
use event_log::{EventLog, LogError};
use service_kit::{Clock, Metrics};
use snapshot_store::{CheckpointName, SnapshotStore};
use task_core::checkpoint::{self, CheckpointError};
use task_core::{PartitionState, Rules};
use task_events::{Offset, PartitionId, SUPPORTED_RULES};

use crate::{LoadError, patient, pause};

/// Where a fold is loaded from.
pub struct Origin<'a, L, S, C> {
    /// Topic.
    pub log: &'a L,
    /// Snapshot track.
    pub store: &'a S,
    /// Clocks.
    pub clock: &'a C,
    /// Partition.
    pub partition: PartitionId,
    /// Rules of the fold: [`task_core::STANDARD`] outside of simulations.
    pub rules: &'static Rules,
    /// For the alarm `checkpoint_unusable`.
    pub metrics: &'a Metrics,
}

/// What a fold starts with.
#[derive(Clone, Debug)]
pub struct Start {
    /// The state at [`PartitionState::next_offset`], with rows.
    pub fold: PartitionState,
    /// Checkpoints of others that were there, to compare the own state with, highest offset first.
    pub published: Vec<CheckpointName>,
}

/// Published checkpoints with their manifests, highest offset first.
pub(crate) type Published = Vec<(CheckpointName, Bytes)>;

/// Loads the newest valid checkpoint of a partition, else the state before offset 0, and samples the
/// end of the log once. Waits while the store or the log is away; a checkpoint that cannot be used raises an alarm and is passed over.
///
/// # Errors
/// The log and the checkpoints are not of one kind, the log cannot be read, or a checkpoint holds
/// another state than it says.
pub async fn load_start<L: EventLog, S: SnapshotStore, C: Clock>(
    origin: &Origin<'_, L, S, C>,
) -> Result<(Start, Offset), LoadError> {
    let found = patient(origin.clock, || origin.store.checkpoints(origin.partition)).await?;
    load_from(origin, found).await
}

/// Loads the newest valid checkpoint of a partition that does not lie behind an offset, else the state
/// before offset 0: what must be folded from to know what became of the record there.
///
/// # Errors
/// As [`load_start`]; also when the log has lost what lies between.
pub async fn load_before<L: EventLog, S: SnapshotStore, C: Clock>(
    origin: &Origin<'_, L, S, C>,
    at: Offset,
) -> Result<PartitionState, LoadError> {
    let mut found = patient(origin.clock, || origin.store.checkpoints(origin.partition)).await?;
    found.retain(|(name, _)| name.offset <= at);
    Ok(load_from(origin, found).await?.0.fold)
}

/// The same of checkpoints that were read already.
pub(crate) async fn load_from<L: EventLog, S: SnapshotStore, C: Clock>(
    origin: &Origin<'_, L, S, C>,
    found: Published,
) -> Result<(Start, Offset), LoadError> {
    let partition = origin.partition;
    // Sampled last: an owner that is not gone yet may publish meanwhile, and its checkpoint must not
    // look as if it were another log's.
    let range = patient(origin.clock, || origin.log.range(partition)).await?;
    let published: Vec<CheckpointName> = found.iter().map(|(name, _)| name.clone()).collect();
    for (name, manifest) in found {
        if name.offset > range.end {
            return Err(LoadError::Unreadable(format!(
                "checkpoint at offset {} of partition {partition} lies beyond the log's end {}: this is another log",
                name.offset, range.end
            )));
        }
        // The record that activated them lies before it and would never be met.
        if name.rule_version > SUPPORTED_RULES {
            return Err(LoadError::UnknownRules { partition, at: name.offset, version: name.rule_version });
        }
        match load_one(origin, &name, &manifest).await? {
            Ok(fold) if fold.next_offset >= range.start => {
                same_log(origin, &fold).await?;
                return Ok((Start { fold, published }, range.end));
            }
            Ok(_) => break,
            Err(why) => origin.metrics.alarm("checkpoint_unusable", format!("{name:?}: {why}")),
        }
    }
    if range.start > Offset(0) {
        return Err(LoadError::Unreadable(format!(
            "partition {partition} starts at offset {} and no checkpoint reaches it",
            range.start
        )));
    }
    let fold = PartitionState::with_rules(partition, true, origin.rules);
    Ok((Start { fold, published }, range.end))
}

async fn load_one<L: EventLog, S: SnapshotStore, C: Clock>(
    origin: &Origin<'_, L, S, C>,
    name: &CheckpointName,
    manifest: &[u8],
) -> Result<Result<PartitionState, String>, LoadError> {
    let hashes = match checkpoint::chunks_of(manifest, true) {
        Ok(hashes) => hashes,
        Err(why) => return Ok(Err(why.to_string())),
    };
    let mut chunks = HashMap::new();
    for hash in hashes {
        match patient(origin.clock, || origin.store.chunk(hash)).await? {
            Some(bytes) => chunks.insert(hash, bytes),
            None => return Ok(Err(format!("chunk {hash} is missing"))),
        };
    }
    let loaded = checkpoint::load(manifest, true, origin.rules, |hash| chunks.get(&hash).cloned());
    Ok(match loaded {
        Ok(fold) if fold.hash() != name.state_hash => {
            let (found, named) = (fold.hash(), name.state_hash);
            return Err(LoadError::StateDiffers(format!("{name:?}: state hash {found:032x} instead of {named:032x}")));
        }
        Err(why @ CheckpointError::StateHash { .. }) => {
            return Err(LoadError::StateDiffers(format!("{name:?}: {why}")));
        }
        Ok(fold) if fold.partition != origin.partition => Err("another partition's checkpoint".to_owned()),
        Ok(fold) => Ok(fold),
        Err(why) => Err(why.to_string()),
    })
}

// The record before the checkpoint must be the one it was taken after (design.md §3).
async fn same_log<L: EventLog, S, C: Clock>(
    origin: &Origin<'_, L, S, C>,
    fold: &PartitionState,
) -> Result<(), LoadError> {
    let Some(last) = fold.last else { return Ok(()) };
    let read = loop {
        match origin.log.read_at(fold.partition, vec![last.offset]).await {
            // Deleted by retention: the checkpoint stands at the very start of the log.
            Err(LogError::OutOfRange { .. }) => return Ok(()),
            Err(LogError::Unavailable(_)) => pause(origin.clock).await,
            Err(why) => return Err(LoadError::Unreadable(why.to_string())),
            Ok(records) => break records,
        }
    };
    let Some(raw) = read.first() else { return Ok(()) };
    let event_id = raw.event().ok().map(|e| e.event_id);
    if raw.value_crc32c() == last.crc32c && event_id == last.event_id {
        return Ok(());
    }
    Err(LoadError::Unreadable(format!(
        "record {} of partition {} is not the one the checkpoint was taken after: this is another log",
        last.offset, fold.partition
    )))
}
