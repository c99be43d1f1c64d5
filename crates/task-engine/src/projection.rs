//! The engine's decisions on one partition.

use std::sync::Arc;

use event_log::RawRecord;
use futures::future::{BoxFuture, FutureExt as _};
use parking_lot::Mutex;
use service_kit::projection::{Decision, Folded, Moment, NoStart, Projection, Projector, Stop};
use service_kit::{Counter, Entropy, Metrics};
use snapshot_store::CheckpointName;
use task_core::Pen;
use task_core::decide::{RetryPolicy, retry_verdict};
use task_events::{Kind, Offset, PartitionId, TaskId};
use verdict_writer::{FoldSource, PenFold, VerdictWriter};

use crate::EngineConfig;
use crate::metrics::{ENGINE_GIVEN_UP, ENGINE_RETRIES_APPROVED};

/// Makes the projections of the engine.
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) metrics: Metrics,
    pub(crate) entropy: Arc<Mutex<Box<dyn Entropy>>>,
    pub(crate) source: FoldSource,
}

impl Projector for Engine {
    type Projection = EngineProjection;

    fn load(&self, partition: PartitionId) -> BoxFuture<'static, Result<EngineProjection, NoStart>> {
        let (producer, metrics) = (self.config.producer.clone(), self.metrics.clone());
        let (entropy, policy) = (self.entropy.clone(), self.config.policy);
        let opening = self.source.open(partition, (Pen::Engine, producer.clone()), metrics.clone());
        async move {
            let fold = opening.await?;
            Ok(EngineProjection {
                writer: VerdictWriter::new(partition, producer, metrics.clone()),
                approved: metrics.counter(&ENGINE_RETRIES_APPROVED),
                given_up: metrics.counter(&ENGINE_GIVEN_UP),
                fold,
                entropy,
                policy,
            })
        }
        .boxed()
    }
}

/// The fold of a partition with the engine's pen.
pub struct EngineProjection {
    fold: PenFold,
    writer: VerdictWriter,
    policy: RetryPolicy,
    entropy: Arc<Mutex<Box<dyn Entropy>>>,
    approved: Counter,
    given_up: Counter,
}

impl Projection for EngineProjection {
    type Subject = TaskId;
    type Answer = Vec<CheckpointName>;

    fn next_offset(&self) -> Offset {
        self.fold.state().next_offset
    }

    fn fold(&mut self, record: &RawRecord) -> Result<Folded<TaskId>, Stop> {
        self.fold.fold(record)
    }

    fn pending(&self, task: TaskId) -> Option<u64> {
        self.fold.held(task).map(|held| u64::from(held.version.0))
    }

    fn all_pending(&self) -> Vec<TaskId> {
        self.fold.all()
    }

    fn decide(&mut self, task: TaskId, attempt: u32, now: Moment) -> Decision {
        let (Some(held), Some(view)) = (self.fold.held(task), self.fold.view(task)) else { return Decision::Nothing };
        let jitter = self.entropy.lock().next_u64();
        let broker_ms = self.fold.broker_ms().max(view.row.changed_broker_ms);
        // Annotations come with the rules that decide skips and quarantines; until then a verdict
        // explains itself.
        match retry_verdict(view, self.policy, broker_ms, jitter) {
            Ok(draft) => {
                if draft.body.kind() == Kind::TaskRetryApproved { &self.approved } else { &self.given_up }.add(1);
                let rules = self.fold.state().active_rules;
                self.writer.write(task, vec![draft], attempt, (held.cause, rules), now)
            }
            // The pen is ours by the same state, so only used-up sequence numbers get here.
            Err(refusal) => {
                tracing::warn!(task_id = %task, %refusal, "no verdict is possible");
                Decision::Nothing
            }
        }
    }

    fn questions(&mut self, now: Moment) -> Vec<BoxFuture<'static, Self::Answer>> {
        self.fold.question(now.boot_ms).into_iter().collect()
    }

    fn answered(&mut self, names: Self::Answer, _: Moment) -> Result<Vec<TaskId>, Stop> {
        self.fold.published(&names)?;
        Ok(Vec::new())
    }
}
