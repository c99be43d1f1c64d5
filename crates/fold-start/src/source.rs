//! Checkpoints as readers see them that only fold and write verdicts.

use event_log::{EventLog, LogError};
use futures::future::{BoxFuture, FutureExt as _};
use service_kit::{Clock, Metrics, within};
use snapshot_store::{CheckpointName, SnapshotStore};
use task_core::{PartitionState, Rules};
use task_events::{Offset, PartitionId};

use crate::start::{Published, load_from};
use crate::{LoadError, Origin, Start, pause};

/// How long a reader waits for a store that is away before it folds from offset 0, ms: retries must
/// go on without the snapshot track (design.md §11), and a short absence is cheaper to wait for.
const PATIENCE_MS: u64 = 10_000;

/// Longest wait for one answer of the store, ms.
const ANSWER_MS: u64 = 5_000;

/// Where a reader's folds start, and what others publish.
pub trait Checkpoints: Send + Sync + 'static {
    /// The start of a partition. [`LoadError::Unreadable`] may be asked again later.
    fn start(&self, partition: PartitionId) -> BoxFuture<'static, Result<Start, LoadError>>;

    /// What is published now; empty when the store cannot be asked, the next time will do.
    fn published(&self, partition: PartitionId) -> BoxFuture<'static, Vec<CheckpointName>>;
}

/// Starts every partition at offset 0 and compares with nobody: for logs without a snapshot track.
#[derive(Clone, Copy, Debug, Default)]
pub struct FromTheStart;

impl Checkpoints for FromTheStart {
    fn start(&self, partition: PartitionId) -> BoxFuture<'static, Result<Start, LoadError>> {
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

impl<L: EventLog, S: SnapshotStore, C: Clock> StoredCheckpoints<L, S, C> {
    // What is published, unless the store is away for longer than a moment.
    async fn patiently(&self, partition: PartitionId) -> Option<Published> {
        let until = self.clock.boot_ms().saturating_add(PATIENCE_MS);
        loop {
            let found = self.ask(partition).await;
            if found.is_some() || self.clock.boot_ms() >= until {
                return found;
            }
            pause(&self.clock).await;
        }
    }

    async fn ask(&self, partition: PartitionId) -> Option<Published> {
        within(&self.clock, ANSWER_MS, self.store.checkpoints(partition)).await?.ok()
    }
}

impl<L: EventLog, S: SnapshotStore, C: Clock> Checkpoints for StoredCheckpoints<L, S, C> {
    fn start(&self, partition: PartitionId) -> BoxFuture<'static, Result<Start, LoadError>> {
        let this = self.clone();
        async move {
            let Self { log, store, clock, rules, metrics } = &this;
            let found = loop {
                if let Some(found) = this.patiently(partition).await {
                    break found;
                }
                metrics.alarm("checkpoints_unavailable", format!("partition {partition}: the store does not answer"));
                match log.range(partition).await {
                    Ok(range) if range.start == Offset(0) => {
                        let fold = PartitionState::with_rules(partition, true, rules);
                        return Ok(Start { fold, published: Vec::new() });
                    }
                    Ok(_) | Err(LogError::Unavailable(_)) => {}
                    Err(why) => return Err(LoadError::Unreadable(why.to_string())),
                }
            };
            let (start, _) = load_from(&Origin { log, store, clock, partition, rules, metrics }, found).await?;
            Ok(start)
        }
        .boxed()
    }

    fn published(&self, partition: PartitionId) -> BoxFuture<'static, Vec<CheckpointName>> {
        let this = self.clone();
        async move { this.ask(partition).await.into_iter().flatten().map(|(name, _)| name).collect() }.boxed()
    }
}
