//! What an owner starts from: the newest valid checkpoint, or offset 0, and nowhere else.

use assignment_lock::AssignmentLock;
use event_log::{EventLog, LogError};
use hashbrown::HashMap;
use service_kit::Clock;
use snapshot_store::{CheckpointName, SnapshotStore, StoreError};
use task_core::PartitionState;
use task_core::checkpoint;
use task_events::Offset;

use super::Start;
use super::shell::{Ports, Setup};

/// Why an owner cannot start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LoadError {
    /// For good, or until people act.
    #[error("{0}")]
    Unreadable(String),
}

/// Loads the start of a partition. Waits while the store or the log is away.
pub(super) async fn load_start<L, S, K, C>(
    ports: &Ports<L, S, K, C>,
    setup: &Setup,
) -> Result<(Start, Vec<CheckpointName>), LoadError>
where
    L: EventLog,
    S: SnapshotStore,
    K: AssignmentLock,
    C: Clock,
{
    let partition = setup.partition;
    let acked = patient(ports, || ports.store.acked(partition)).await?;
    let published = patient(ports, || ports.store.checkpoints(partition)).await?;
    // Sampled last: an owner that is not gone yet may publish meanwhile, and its checkpoint must not
    // look as if it were another log's.
    let range = patient(ports, || ports.log.range(partition)).await?;
    let names: Vec<CheckpointName> = published.iter().map(|(name, _)| name.clone()).collect();
    for (name, manifest) in published {
        if name.offset > range.end {
            return Err(LoadError::Unreadable(format!(
                "checkpoint at offset {} of partition {partition} lies beyond the log's end {}: this is another log",
                name.offset, range.end
            )));
        }
        match load_one(ports, setup, &name, &manifest).await? {
            Ok(fold) if fold.next_offset >= range.start => {
                same_log(ports, &fold).await?;
                return Ok((start(setup, fold, range.end, acked), names));
            }
            Ok(_) => break,
            Err(why) => setup.metrics.alarm("checkpoint_unusable", format!("{name:?}: {why}")),
        }
    }
    if range.start > Offset(0) {
        return Err(LoadError::Unreadable(format!(
            "partition {partition} starts at offset {} and no checkpoint reaches it",
            range.start
        )));
    }
    let fold = PartitionState::with_rules(partition, true, setup.fold_rules);
    Ok((start(setup, fold, range.end, acked), names))
}

fn start(setup: &Setup, fold: PartitionState, end: Offset, acked: Offset) -> Start {
    Start { fold, end, acked, number: setup.number, random: setup.random }
}

async fn load_one<L, S, K, C>(
    ports: &Ports<L, S, K, C>,
    setup: &Setup,
    name: &CheckpointName,
    manifest: &[u8],
) -> Result<Result<PartitionState, String>, LoadError>
where
    L: EventLog,
    S: SnapshotStore,
    K: AssignmentLock,
    C: Clock,
{
    let hashes = match checkpoint::chunks_of(manifest, true) {
        Ok(hashes) => hashes,
        Err(why) => return Ok(Err(why.to_string())),
    };
    let mut chunks = HashMap::new();
    for hash in hashes {
        match patient(ports, || ports.store.chunk(hash)).await? {
            Some(bytes) => chunks.insert(hash, bytes),
            None => return Ok(Err(format!("chunk {hash} is missing"))),
        };
    }
    let loaded = checkpoint::load(manifest, true, setup.fold_rules, |hash| chunks.get(&hash).cloned());
    Ok(match loaded {
        Ok(fold) if fold.hash() != name.state_hash => Err("state hash differs from the checkpoint's name".to_owned()),
        Ok(fold) if fold.partition != setup.partition => Err("another partition's checkpoint".to_owned()),
        Ok(fold) => Ok(fold),
        Err(why) => Err(why.to_string()),
    })
}

// The record before the checkpoint must be the one it was taken after (design.md §3).
async fn same_log<L, S, K, C>(ports: &Ports<L, S, K, C>, fold: &PartitionState) -> Result<(), LoadError>
where
    L: EventLog,
    S: SnapshotStore,
    K: AssignmentLock,
    C: Clock,
{
    let Some(last) = fold.last else { return Ok(()) };
    let read = loop {
        match ports.log.read_at(fold.partition, vec![last.offset]).await {
            // Deleted by retention: the checkpoint stands at the very start of the log.
            Err(LogError::OutOfRange { .. }) => return Ok(()),
            Err(LogError::Unavailable(_)) => pause(ports).await,
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

/// Waits a moment for a port that is away.
pub(super) async fn pause<L, S, K, C: Clock>(ports: &Ports<L, S, K, C>) {
    let again = ports.clock.boot_ms() + 100;
    ports.clock.sleep_until(again).await;
}

/// Calls until it is answered; an error that another call cannot mend is final.
pub(super) async fn patient<L, S, K, C, T, E, F>(
    ports: &Ports<L, S, K, C>,
    call: impl Fn() -> F,
) -> Result<T, LoadError>
where
    C: Clock,
    E: Away,
    F: Future<Output = Result<T, E>>,
{
    loop {
        match call().await {
            Ok(value) => return Ok(value),
            Err(why) if why.is_away() => pause(ports).await,
            Err(why) => return Err(LoadError::Unreadable(why.to_string())),
        }
    }
}

/// Errors of ports, by whether the port is only away for now.
pub(super) trait Away: std::fmt::Display {
    fn is_away(&self) -> bool;
}

impl Away for LogError {
    fn is_away(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl Away for StoreError {
    fn is_away(&self) -> bool {
        self.is_retryable()
    }
}
