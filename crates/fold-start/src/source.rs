//! Checkpoints as readers see them that only fold and write verdicts.

use event_log::EventLog;
use futures::future::{BoxFuture, FutureExt as _};
use service_kit::{Clock, Metrics};
use snapshot_store::{CheckpointName, SnapshotStore};
use task_core::{PartitionState, Rules};
use task_events::PartitionId;

use crate::{Origin, load_start};

/// What a reader starts with.
#[derive(Clone, Debug)]
pub struct Start {
    /// The state, with rows.
    pub fold: PartitionState,
    /// Checkpoints of others, to compare the own state with.
    pub published: Vec<CheckpointName>,
}

/// Where a reader's folds start, and what others publish.
pub trait Checkpoints: Send + Sync + 'static {
    /// The start of a partition. Its error is text for an alarm; it is asked again later.
    fn start(&self, partition: PartitionId) -> BoxFuture<'static, Result<Start, String>>;

    /// What is published now; empty when the store cannot be asked, the next time will do.
    fn published(&self, partition: PartitionId) -> BoxFuture<'static, Vec<CheckpointName>>;
}

/// Starts every partition at offset 0 and compares with nobody: for logs without a snapshot track.
#[derive(Clone, Copy, Debug, Default)]
pub struct FromTheStart;

impl Checkpoints for FromTheStart {
    fn start(&self, partition: PartitionId) -> BoxFuture<'static, Result<Start, String>> {
        let fold = PartitionState::new(partition, true);
        std::future::ready(Ok(Start { fold, published: Vec::new() })).boxed()
    }

    fn published(&self, _: PartitionId) -> BoxFuture<'static, Vec<CheckpointName>> {
        std::future::ready(Vec::new()).boxed()
    }
}

/// The checkpoints of the snapshot track.
#[derive(Clone)]
pub struct StoredCheckpoints<L, S, C> {
    /// Topic.
    pub log: L,
    /// Snapshot track.
    pub store: S,
    /// Clocks.
    pub clock: C,
    /// Rules of the fold: [`task_core::STANDARD`] outside of simulations.
    pub rules: &'static Rules,
    /// For the alarm `checkpoint_unusable`.
    pub metrics: Metrics,
}

impl<L: EventLog, S: SnapshotStore, C: Clock> Checkpoints for StoredCheckpoints<L, S, C> {
    fn start(&self, partition: PartitionId) -> BoxFuture<'static, Result<Start, String>> {
        let this = self.clone();
        async move {
            let Self { log, store, clock, rules, metrics } = &this;
            let origin = Origin { log, store, clock, partition, rules, metrics };
            let loaded = load_start(&origin).await.map_err(|why| why.to_string())?;
            Ok(Start { fold: loaded.fold, published: loaded.published })
        }
        .boxed()
    }

    fn published(&self, partition: PartitionId) -> BoxFuture<'static, Vec<CheckpointName>> {
        let asked = self.store.checkpoints(partition);
        asked.map(|found| found.unwrap_or_default().into_iter().map(|(name, _)| name).collect()).boxed()
    }
}
