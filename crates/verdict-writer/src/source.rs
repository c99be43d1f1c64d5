//! Where folds start, and the hashes that others publish of theirs (design.md §4.10).

use std::sync::Arc;

use fold_start::{Checkpoints, FromTheStart, LoadError};
use futures::future::BoxFuture;
use service_kit::Metrics;
use service_kit::projection::{NoStart, Stop};
use snapshot_store::CheckpointName;
use spans::Spans;
use task_core::{HashRing, PartitionState, Pen, checkpoint};
use task_events::{Offset, PartitionId, Producer};

use crate::PenFold;

/// Pause between questions for the checkpoint of one offset, ms; the sweep of the loop is as long.
const ASK_EVERY_MS: u64 = 5_000;

/// Makes the folds of a service.
#[derive(Clone)]
pub struct FoldSource {
    /// Where they start, and what others publish.
    pub checkpoints: Arc<dyn Checkpoints>,
    /// Offsets divisible by this are compared: the interval of the owners' checkpoints.
    pub every: u64,
    /// Where spans of verdicts go.
    pub spans: Spans,
}

impl FoldSource {
    /// Starts at checkpoints, at the standard interval.
    pub fn new(checkpoints: impl Checkpoints) -> Self {
        Self { checkpoints: Arc::new(checkpoints), every: checkpoint::EVERY, spans: Spans::default() }
    }

    /// The same, with spans of verdicts going there.
    #[must_use]
    pub fn tracing(self, spans: Spans) -> Self {
        Self { spans, ..self }
    }

    /// Starts every partition at offset 0 and compares with nobody.
    pub fn from_the_start() -> Self {
        Self::new(FromTheStart)
    }

    /// The fold of a partition with a pen.
    pub fn open(
        &self,
        partition: PartitionId,
        (pen, producer): (Pen, Producer),
        metrics: Metrics,
    ) -> BoxFuture<'static, Result<PenFold, NoStart>> {
        let (this, starting) = (self.clone(), self.checkpoints.start(partition));
        Box::pin(async move {
            let start = starting.await.map_err(|why| match why {
                LoadError::Unreadable(why) => NoStart::Later(why),
                LoadError::UnknownRules { version, .. } => NoStart::Stop(Stop::UnknownRules(version)),
                LoadError::StateDiffers(why) => NoStart::Stop(Stop::StateDiffers(why)),
            })?;
            let spans = this.spans.clone();
            let mut compared = Compared::new(this, partition);
            compared.start(&start.fold, &start.published).map_err(NoStart::Stop)?;
            Ok(PenFold::new(start.fold, compared, (pen, producer), metrics, spans))
        })
    }
}

/// The comparing of one partition.
pub(crate) struct Compared {
    source: FoldSource,
    partition: PartitionId,
    ring: HashRing,
    /// The newest offset to compare of which nobody's checkpoint was seen yet.
    awaited: Option<Offset>,
    ask_at_ms: u64,
    asking: bool,
}

impl Compared {
    pub(crate) fn new(source: FoldSource, partition: PartitionId) -> Self {
        let ring = HashRing::new(source.every);
        Self { source, partition, ring, awaited: None, ask_at_ms: 0, asking: false }
    }

    fn start(&mut self, state: &PartitionState, published: &[CheckpointName]) -> Result<(), Stop> {
        self.note(state)?;
        self.published(published)
    }

    fn note(&mut self, state: &PartitionState) -> Result<(), Stop> {
        self.ring.note(state.next_offset, state.hash()).map_err(|e| Stop::StateDiffers(e.to_string()))
    }

    /// A record was folded.
    pub(crate) fn folded(&mut self, state: &PartitionState) -> Result<(), Stop> {
        if !self.ring.is_due(state.next_offset) {
            return Ok(());
        }
        self.awaited = Some(state.next_offset);
        self.note(state)
    }

    /// Asks what others publish, every few seconds until a checkpoint of the newest such offset was
    /// seen: an owner publishes when its rows are acknowledged, and 64 of the own hashes are kept.
    pub(crate) fn question(&mut self, now_ms: u64) -> Option<BoxFuture<'static, Vec<CheckpointName>>> {
        if self.awaited.is_none() || self.asking || now_ms < self.ask_at_ms {
            return None;
        }
        self.asking = true;
        self.ask_at_ms = now_ms.saturating_add(ASK_EVERY_MS);
        Some(self.source.checkpoints.published(self.partition))
    }

    /// The answer.
    pub(crate) fn published(&mut self, names: &[CheckpointName]) -> Result<(), Stop> {
        self.asking = false;
        for name in names.iter().filter(|name| name.partition == self.partition) {
            let compared = self.ring.expect(name.offset, name.state_hash);
            compared.map_err(|e| Stop::StateDiffers(e.to_string()))?;
            self.awaited = self.awaited.filter(|awaited| name.offset < *awaited);
        }
        Ok(())
    }
}
