//! What the runner needs from outside: a coordinator to talk to, and a place for payloads.

use std::future::Future;

use bytes::Bytes;
use task_events::{Sha256Hash, TaskId, Text};
use worker_protocol::{Heartbeat, HeartbeatAnswer, Poll, PollAnswer, Report, ReportAnswer};

/// A request could not be sent, or its answer was lost; whether it arrived is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer from the coordinator: {0}")]
pub struct NoAnswer(pub String);

/// The coordinator, over whatever transport. Futures may be dropped at any time.
///
/// `task_id` is for routing; `attempt_token` is opaque and goes with every report.
pub trait CoordinatorPort: Send + Sync + 'static {
    /// Asks for work; the answer may take as long as the poll's wait.
    fn poll(&self, poll: Poll) -> impl Future<Output = Result<PollAnswer, NoAnswer>> + Send + 'static;

    /// Sends a sign of life.
    fn heartbeat(
        &self,
        task_id: TaskId,
        attempt_token: Text,
        heartbeat: Heartbeat,
    ) -> impl Future<Output = Result<HeartbeatAnswer, NoAnswer>> + Send + 'static;

    /// Sends a report.
    fn report(
        &self,
        task_id: TaskId,
        attempt_token: Text,
        report: Report,
    ) -> impl Future<Output = Result<ReportAnswer, NoAnswer>> + Send + 'static;
}

/// What is stored of a task besides its state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PayloadKey {
    /// Parameters as the creator sent them: more than one owner may have stored some under the task's id.
    Parameters {
        /// SHA-256 of the parameters, as the assignment names it.
        payload_hash: Sha256Hash,
    },
    /// Output of a step: several attempts may have stored one each.
    StepOutput {
        /// Name of the step.
        step: Text,
        /// SHA-256 of the output.
        output_hash: Sha256Hash,
    },
    /// Result of the task.
    Result,
    /// Whole text of an error that is longer than a report may be.
    ErrorText,
}

/// The store does not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("payload store is unavailable: {0}")]
pub struct PayloadUnavailable(pub String);

/// Where payloads lie. Writes are idempotent; what was acknowledged is what the next read sees.
pub trait PayloadPort: Send + Sync + 'static {
    /// Stores bytes.
    fn put(
        &self,
        task_id: TaskId,
        key: PayloadKey,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), PayloadUnavailable>> + Send + 'static;

    /// Reads bytes; whoever reads verifies their hash.
    fn get(
        &self,
        task_id: TaskId,
        key: PayloadKey,
    ) -> impl Future<Output = Result<Option<Bytes>, PayloadUnavailable>> + Send + 'static;
}
