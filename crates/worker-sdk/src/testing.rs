//! Testing handlers without a server: a coordinator in memory, and a clock that the test moves.
//!
//! ```
//! use bytes::Bytes;
//! use worker_sdk::testing::{End, Harness};
//! use worker_sdk::{Context, HandlerError};
//!
//! async fn total(ctx: Context) -> Result<Bytes, HandlerError> {
//!     let fetched = ctx.step("fetch").idempotent(true).run(|| async { Ok("20 22".into()) }).await?;
//!     let numbers = String::from_utf8_lossy(&fetched).into_owned();
//!     Ok(numbers.split(' ').filter_map(|n| n.parse::<u32>().ok()).sum::<u32>().to_string().into())
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let first = Harness::new(total).params("{}").run().await;
//! assert_eq!(first.end, End::Success("42".into()));
//! assert_eq!(first.outputs["fetch"], "20 22");
//!
//! // A later attempt gets what is on record, and does not run the step again.
//! let resumed = Harness::new(total).recorded("fetch", "1 2").run().await;
//! assert_eq!(resumed.end, End::Success("3".into()));
//! # });
//! ```

mod clock;
mod desk;

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use task_events::{
    ErrorCategory, EventSequence, ExecEpoch, ExecutionId, Incarnation, PartitionId, RunNo, Sha256Hash, SkippedStep,
    StepDone, TaskId, Text,
};
use tokio::task::JoinHandle;
use worker_protocol::{Assignment, HeartbeatAnswer, ReportBody};

use crate::machine::Config;
use crate::{Context, HandlerError, Handlers, PayloadKey, Worker};
pub use clock::ManualClock;
use desk::Desk;

/// Lease, heartbeat interval and start-to-close of a harness, ms on its own clock.
const LEASE_MS: u64 = 6_000;
const HEARTBEAT_MS: u64 = 2_000;
const START_TO_CLOSE_MS: u64 = 60_000;

/// One attempt of a task, about to be run.
#[must_use = "nothing runs before `run` or `start`"]
pub struct Harness {
    handlers: Handlers,
    params: Bytes,
    recorded: Vec<(StepDone, Bytes)>,
    exec_epoch: ExecEpoch,
}

/// An attempt that runs.
pub struct Attempt {
    desk: Desk,
    clock: ManualClock,
    running: JoinHandle<()>,
    task: TaskId,
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// How it ended.
    pub end: End,
    /// What was reported, in order.
    pub reports: Vec<ReportBody>,
    /// Outputs of the steps on record, earlier attempts' included.
    pub outputs: BTreeMap<Text, Bytes>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With this result.
    Success(Bytes),
    /// With an error.
    Failed {
        /// Machine-readable; `CANCELLED` after a cancel that the handler heeded.
        code: Text,
        /// The whole message.
        message: String,
        /// Whether and how it may be tried again.
        category: ErrorCategory,
        /// Step it failed in.
        step: Option<Text>,
    },
    /// It was stopped, and nothing was reported: its lease was over, or it was fenced.
    Silent,
}

impl Harness {
    /// An attempt of a task that `handler` runs; the first one, without parameters.
    pub fn new<F, R>(handler: F) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Bytes, HandlerError>> + Send + 'static,
    {
        let handlers = Handlers::new().on("test", handler);
        Self { handlers, params: Bytes::new(), recorded: Vec::new(), exec_epoch: ExecEpoch(1) }
    }

    /// The parameters.
    pub fn params(mut self, params: impl Into<Bytes>) -> Self {
        self.params = params.into();
        self
    }

    /// A step that an earlier attempt completed with this output, declared idempotent. Named in the
    /// order in which the handler runs them.
    pub fn recorded(self, step: impl Into<Text>, output: impl Into<Bytes>) -> Self {
        self.recorded_as(step, output, true)
    }

    /// The same, with the declaration given.
    pub fn recorded_as(mut self, step: impl Into<Text>, output: impl Into<Bytes>, is_idempotent: bool) -> Self {
        let (step, output, index) = (step.into(), output.into(), self.recorded.len() as u32);
        let done = StepDone { step, index, output_hash: Sha256Hash::of(&output), is_idempotent };
        self.recorded.push((done, output));
        self
    }

    /// Fencing token of the attempt; 1 without it.
    pub fn exec_epoch(mut self, epoch: u32) -> Self {
        self.exec_epoch = ExecEpoch(epoch);
        self
    }

    /// Runs the attempt to its end. Time stands still: a handler that waits for it waits forever.
    pub async fn run(self) -> Run {
        self.start().ended().await
    }

    /// Starts the attempt, in a task of the current runtime.
    pub fn start(self) -> Attempt {
        let task = TaskId::from_parts(1, PartitionId(0), 1).unwrap_or(TaskId::ZERO);
        let (desk, clock) = (Desk::new(self.assignment(task)), ManualClock::default());
        desk.store(task, PayloadKey::Parameters { payload_hash: Sha256Hash::of(&self.params) }, self.params);
        for (done, output) in self.recorded {
            desk.store(task, PayloadKey::StepOutput { step: done.step, output_hash: done.output_hash }, output);
        }
        let config = Config { slots: 1, ..Config::new(Text::const_new("harness"), Incarnation(1), Vec::new()) };
        let worker = Worker::new(desk.clone(), desk.clone(), clock.clone(), config, self.handlers);
        let started = desk.started();
        let running = tokio::spawn(async move {
            // The standard settings do not contradict each other.
            if let Ok(worker) = worker {
                worker.run(started, Duration::MAX).await;
            }
        });
        Attempt { desk, clock, running, task }
    }

    fn assignment(&self, task_id: TaskId) -> Assignment {
        let steps_done: Vec<_> = self.recorded.iter().map(|(done, _)| done.clone()).collect();
        let skipped = |done: &StepDone| SkippedStep {
            step: done.step.clone(),
            rule: Text::const_new("recorded_output"),
            evidence: vec![EventSequence(1)],
        };
        let attempt = worker_protocol::Attempt {
            run_no: RunNo(1),
            exec_epoch: self.exec_epoch,
            execution_id: ExecutionId::new(task_id, self.exec_epoch),
        };
        Assignment {
            task_id,
            attempt,
            attempt_token: Text::const_new("harness"),
            task_type: Text::const_new("test"),
            payload_hash: Sha256Hash::of(&self.params),
            payload_ref: None,
            trace_id: Text::const_new("trace"),
            traceparent: None,
            lease_ms: LEASE_MS,
            heartbeat_ms: HEARTBEAT_MS,
            start_to_close_ms: START_TO_CLOSE_MS,
            optimistic_start: false,
            skip: steps_done.iter().map(skipped).collect(),
            steps_done,
        }
    }
}

impl Attempt {
    /// The task.
    pub fn task_id(&self) -> TaskId {
        self.task
    }

    /// Lets time go on. Heartbeats are answered, so the lease goes on with it, in steps below it.
    pub fn advance(&self, ms: u64) {
        self.clock.advance(ms);
    }

    /// Requests the task's cancel: the next heartbeat, which is due now, brings it.
    pub fn cancel(&self) {
        self.desk.answer(HeartbeatAnswer::Accepted { lease_ms: LEASE_MS, cancel_requested: true });
        self.clock.advance(HEARTBEAT_MS);
    }

    /// Cuts the worker off from its coordinator until the lease is over.
    pub fn end_lease(&self) {
        self.desk.answer(HeartbeatAnswer::Unavailable);
        self.clock.advance(LEASE_MS);
    }

    /// Takes the attempt away, as when another worker has got it: the next heartbeat, which is due
    /// now, is answered `fenced`.
    pub fn fence(&self) {
        self.desk.answer(HeartbeatAnswer::Fenced);
        self.clock.advance(HEARTBEAT_MS);
    }

    /// What became of it, once it has ended.
    pub async fn ended(self) -> Run {
        let _ = self.running.await;
        let reports = self.desk.reports();
        let stored = |key| self.desk.stored(self.task, &key);
        let end = reports.iter().find_map(|report| match report {
            ReportBody::Success { .. } => Some(End::Success(stored(PayloadKey::Result).unwrap_or_default())),
            ReportBody::Failure { error_code, error_message, category, failed_step, .. } => Some(End::Failed {
                code: error_code.clone(),
                message: stored(PayloadKey::ErrorText)
                    .map_or_else(|| error_message.to_string(), |text| String::from_utf8_lossy(&text).into_owned()),
                category: *category,
                step: failed_step.clone(),
            }),
            ReportBody::Starting { .. } | ReportBody::Declined { .. } | ReportBody::Step(_) => None,
        });
        Run { end: end.unwrap_or(End::Silent), outputs: self.desk.outputs(), reports }
    }
}

#[cfg(test)]
mod tests;
