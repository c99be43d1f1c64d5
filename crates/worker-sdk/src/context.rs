//! What a handler sees of its attempt: parameters, steps, the cancellation token, the guard.

mod guarded_file;
mod hold;
mod recorded;
mod step;
mod traced;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use bytes::Bytes;
use parking_lot::Mutex;
use task_events::{ExecEpoch, ExecutionId, RunNo, Sha256Hash, StepDone, TaskId, Text, TraceParent};
use tokio::sync::{mpsc, oneshot, watch};
use worker_protocol::Assignment;

pub use guarded_file::GuardedFile;
pub use hold::Hold;
pub(crate) use hold::{Held, Holding};
pub use recorded::RecordedStep;
pub use step::Step;
pub(crate) use traced::Traced;

use crate::HandlerError;
use crate::payloads::Payloads;

/// What a handler tells the runner.
#[derive(Debug)]
pub(crate) enum Told {
    /// A step begins; answered when it may run.
    Started { execution_id: ExecutionId, step: Text, is_idempotent: bool, go: oneshot::Sender<()> },
    /// A step is complete and its output stored; answered when that survives a crash.
    Done { execution_id: ExecutionId, done: StepDone, kept: oneshot::Sender<()> },
}

/// Until when an attempt may act; the runner moves it, handlers read it.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) until: watch::Receiver<u64>,
    pub(crate) boot_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl Guard {
    pub(crate) fn holds(&self) -> bool {
        (self.boot_ms)() < *self.until.borrow()
    }
}

/// The attempt, as its handler sees it. Clones are the same attempt.
#[derive(Clone)]
pub struct Context {
    pub(crate) assignment: Arc<Assignment>,
    pub(crate) params: Bytes,
    pub(crate) payloads: Payloads,
    pub(crate) guard: Guard,
    pub(crate) cancel: watch::Receiver<bool>,
    pub(crate) told: mpsc::UnboundedSender<Told>,
    pub(crate) next_index: Arc<AtomicU32>,
    /// Skipped steps that the handler has asked for.
    pub(crate) claimed: Arc<Mutex<BTreeSet<Text>>>,
    /// Checkpoints recorded so far, each with its index.
    pub(crate) checkpoints: Arc<Mutex<BTreeMap<Text, u32>>>,
    pub(crate) held: Held,
    pub(crate) traced: Traced,
}

impl Context {
    /// The task.
    pub fn task_id(&self) -> TaskId {
        self.assignment.task_id
    }

    /// Type of the task.
    pub fn task_type(&self) -> &str {
        &self.assignment.task_type
    }

    /// Run of the task: 1, and one more with each replay.
    pub fn run_no(&self) -> RunNo {
        self.assignment.attempt.run_no
    }

    /// Longest life of the handler, ms.
    pub fn start_to_close_ms(&self) -> u64 {
        self.assignment.start_to_close_ms
    }

    /// The attempt's fencing token. Hand it to sinks that refuse lower ones: only they can stop a
    /// write of a process that stood still between its own check and the write.
    pub fn exec_epoch(&self) -> ExecEpoch {
        self.assignment.attempt.exec_epoch
    }

    /// Identity of the attempt.
    pub fn execution_id(&self) -> ExecutionId {
        self.assignment.attempt.execution_id
    }

    /// Trace of the task: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.assignment.trace_id
    }

    /// The W3C `traceparent` to hand on: the task's trace, with this execution as the parent span, or the
    /// attempt if nobody wants this worker's spans. `None` of a task without a trace.
    pub fn traceparent(&self) -> Option<TraceParent> {
        self.traced.inside(&self.assignment)
    }

    /// Parameters as the creator sent them, verified; empty when there is a [`Context::payload_ref`].
    pub fn params(&self) -> &Bytes {
        &self.params
    }

    /// Where the parameters lie when they were not sent along.
    pub fn payload_ref(&self) -> Option<&str> {
        self.assignment.payload_ref.as_deref()
    }

    /// SHA-256 that whatever lies at [`Context::payload_ref`] must have.
    pub fn payload_hash(&self) -> Sha256Hash {
        self.assignment.payload_hash
    }

    /// Steps of earlier attempts that the plan skips; [`Context::step`] returns their outputs.
    pub fn skipped_steps(&self) -> impl Iterator<Item = &StepDone> {
        let skipped = |done: &&StepDone| self.assignment.skip.iter().any(|s| s.step == done.step);
        self.assignment.steps_done.iter().filter(skipped)
    }

    // The record that stands in for a step, which the handler has now asked for.
    fn stand_in(&self, name: &str) -> Option<&StepDone> {
        let done = self.skipped_steps().find(|done| done.step == name)?;
        self.claimed.lock().insert(done.step.clone());
        Some(done)
    }

    // Records that the handler has not asked for.
    fn unclaimed(&self) -> impl Iterator<Item = &StepDone> {
        let claimed = self.claimed.lock().clone();
        self.skipped_steps().filter(move |done| !claimed.contains(&done.step))
    }

    /// The guard for side effects: ask right before each one. `false` once the lease is over, the
    /// attempt is fenced, or its time is up.
    ///
    /// A process that is stopped between this check and the act acts late all the same; a sink that
    /// refuses lower epochs holds it off: [`Context::guarded_file`], or one of yours that is given
    /// [`Context::exec_epoch`].
    pub fn may_write(&self) -> bool {
        self.guard.holds()
    }

    /// Until when [`Context::may_write`] holds if nothing else happens, ms on the boot clock: accepted
    /// heartbeats move it on.
    pub fn may_write_until(&self) -> u64 {
        *self.guard.until.borrow()
    }

    /// Whether the task's cancel was requested: finish or give up within the grace.
    pub fn is_cancelled(&self) -> bool {
        *self.cancel.borrow()
    }

    /// Ready once the task's cancel was requested.
    pub async fn cancelled(&self) {
        let mut cancel = self.cancel.clone();
        if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The error to return when giving up because of a cancel.
    pub fn give_up(&self) -> HandlerError {
        HandlerError::stopped()
    }

    /// The next step of the handler. Names are unique inside a handler, and a handler calls its
    /// steps in the same order in every attempt.
    pub fn step(&self, name: impl Into<Text>) -> Step<'_> {
        Step::new(self, name.into())
    }
}
