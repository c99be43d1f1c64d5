//! The replayer's decisions on one partition.

use event_log::RawRecord;
use futures::future::{BoxFuture, Either, FutureExt as _, select};
use service_kit::projection::{Decision, Folded, Moment, NoStart, Projection, Projector, Stop};
use service_kit::{Clock, Counter, Metrics};
use snapshot_store::{CheckpointName, SnapshotRow, SnapshotStore, StoreError};
use task_core::Pen;
use task_core::decide::replay_plan;
use task_events::{Offset, PartitionId, TaskId, Witness};
use verdict_writer::{FoldSource, PenFold, VerdictWriter};

use crate::metrics::{CONSISTENCY_FINDINGS, REPLAY_PLANS};
use crate::{Guard, Opinion, ReplayConfig};

/// Makes the projections of the replayer.
pub struct Replayer<S, C> {
    pub(crate) config: ReplayConfig,
    pub(crate) store: S,
    pub(crate) clock: C,
    pub(crate) metrics: Metrics,
    pub(crate) source: FoldSource,
}

impl<S: SnapshotStore, C: Clock> Projector for Replayer<S, C> {
    type Projection = ReplayProjection<S, C>;

    fn load(&self, partition: PartitionId) -> BoxFuture<'static, Result<Self::Projection, NoStart>> {
        let (producer, metrics) = (self.config.producer.clone(), self.metrics.clone());
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let (guard, patience_ms) = (Guard::new(&self.config), self.config.guard_wait_ms);
        let opening = self.source.open(partition, (Pen::Replayer, producer.clone()), metrics.clone());
        async move {
            let fold = opening.await?;
            Ok(ReplayProjection {
                writer: VerdictWriter::new(partition, producer, metrics.clone()),
                witnessed: metrics.counter_of(&REPLAY_PLANS, &["snapshot_and_log"]),
                log_only: metrics.counter_of(&REPLAY_PLANS, &["log_only"]),
                findings: metrics.counter(&CONSISTENCY_FINDINGS),
                fold,
                guard,
                store,
                clock,
                patience_ms,
                metrics,
            })
        }
        .boxed()
    }
}

/// The fold of a partition with the replayer's pen.
pub struct ReplayProjection<S, C> {
    fold: PenFold,
    guard: Guard,
    writer: VerdictWriter,
    store: S,
    clock: C,
    patience_ms: u64,
    witnessed: Counter,
    log_only: Counter,
    findings: Counter,
    metrics: Metrics,
}

impl<S: SnapshotStore, C: Clock> ReplayProjection<S, C> {
    fn plan(&mut self, task: TaskId, witness: Witness, attempt: u32, now: Moment) -> Decision {
        let (Some(held), Some(view)) = (self.fold.held(task), self.fold.view(task)) else { return Decision::Nothing };
        match replay_plan(view, witness) {
            Ok(draft) => {
                match witness {
                    Witness::SnapshotAndLog => self.witnessed.add(1),
                    Witness::LogOnly => {
                        self.log_only.add(1);
                        self.metrics.alarm("guard_log_only", format!("no current snapshot row of task {task} in time"));
                    }
                }
                let rules = self.fold.state().active_rules;
                self.writer.write(task, vec![draft], attempt, (held.cause, rules), now)
            }
            // The pen is ours by the same state, so only used-up sequence numbers get here.
            Err(refusal) => {
                tracing::warn!(task_id = %task, %refusal, "no plan is possible");
                Decision::Nothing
            }
        }
    }
}

/// What the snapshot track answered.
pub enum Heard {
    /// Rows of these tasks.
    Rows(Vec<TaskId>, Result<Vec<Option<SnapshotRow>>, StoreError>),
    /// Checkpoints of others.
    Published(Vec<CheckpointName>),
}

impl<S: SnapshotStore, C: Clock> Projection for ReplayProjection<S, C> {
    type Subject = TaskId;
    type Answer = Heard;

    fn next_offset(&self) -> Offset {
        self.fold.state().next_offset
    }

    fn fold(&mut self, record: &RawRecord) -> Result<Folded<TaskId>, Stop> {
        let folded = self.fold.fold(record)?;
        if let Some(task) = folded.touched.filter(|task| self.fold.held(*task).is_none()) {
            self.guard.forget(task);
        }
        Ok(folded)
    }

    fn pending(&self, task: TaskId) -> Option<u64> {
        self.fold.held(task).map(|held| u64::from(held.version.0))
    }

    fn all_pending(&self) -> Vec<TaskId> {
        self.fold.all()
    }

    fn decide(&mut self, task: TaskId, attempt: u32, now: Moment) -> Decision {
        let Some(held) = self.fold.held(task) else { return Decision::Nothing };
        match self.guard.opinion(task, held.version, now.boot_ms) {
            Opinion::Plan(witness) => self.plan(task, witness, attempt, now),
            Opinion::Wait(until) | Opinion::Differs(until) => Decision::Later(until),
        }
    }

    fn questions(&mut self, now: Moment) -> Vec<BoxFuture<'static, Self::Answer>> {
        let mut questions: Vec<BoxFuture<'static, Heard>> = Vec::new();
        questions.extend(self.fold.question(now.boot_ms).map(|asked| asked.map(Heard::Published).boxed()));
        while let Some(tasks) = self.guard.next_batch() {
            let reading = self.store.snapshots(tasks.clone()).boxed();
            // A store that never answers must not use up the reads that may be out.
            let patience = self.clock.sleep_until(now.boot_ms.saturating_add(self.patience_ms)).boxed();
            questions.push(
                select(reading, patience)
                    .map(|first| match first {
                        Either::Left((rows, _)) => Heard::Rows(tasks, rows),
                        Either::Right(((), _)) => {
                            Heard::Rows(tasks, Err(StoreError::Unavailable("no answer in time".into())))
                        }
                    })
                    .boxed(),
            );
        }
        questions
    }

    fn answered(&mut self, heard: Heard, now: Moment) -> Result<Vec<TaskId>, Stop> {
        let (tasks, rows) = match heard {
            Heard::Rows(tasks, rows) => (tasks, rows),
            Heard::Published(names) => {
                self.fold.published(&names)?;
                return Ok(Vec::new());
            }
        };
        self.guard.read_ended();
        let rows = match rows {
            Ok(rows) if rows.len() == tasks.len() => rows,
            Ok(_) | Err(_) => {
                tasks.iter().for_each(|task| self.guard.unread(*task, now.boot_ms));
                return Ok(tasks);
            }
        };
        for (task, row) in tasks.iter().zip(&rows) {
            let (Some(held), Some(view)) = (self.fold.held(*task), self.fold.view(*task)) else { continue };
            if let Some(finding) = self.guard.row(*task, (view, held.since), row.as_ref(), now.boot_ms) {
                self.findings.add(1);
                self.metrics.alarm("snapshot_differs", format!("task {}: {}", finding.task, finding.detail));
            }
        }
        Ok(tasks)
    }
}
