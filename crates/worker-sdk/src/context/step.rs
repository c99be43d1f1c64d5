//! One step: run once, its output recorded, or its recorded output given back.

use std::future::Future;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use rest_contract::{MAX_NAME_BYTES, MAX_PAYLOAD_BYTES};
use task_events::{ErrorCategory, Sha256Hash, StepDone, Text};
use tokio::sync::oneshot;

use super::{Context, Told};
use crate::{HandlerError, PayloadKey};

/// A step about to be run.
#[must_use = "a step does nothing until `run` is awaited"]
pub struct Step<'a> {
    context: &'a Context,
    name: Text,
    is_idempotent: bool,
}

impl<'a> Step<'a> {
    pub(super) fn new(context: &'a Context, name: Text) -> Self {
        Self { context, name, is_idempotent: false }
    }

    /// Whether it does no harm to run it twice. Without this it is taken for not idempotent: it is
    /// announced to the owner before it runs, and if the worker is lost inside it, people decide.
    pub fn idempotent(mut self, is_idempotent: bool) -> Self {
        self.is_idempotent = is_idempotent;
        self
    }

    /// Runs `work` and records its output, or gives back what an earlier attempt recorded.
    ///
    /// # Errors
    /// The work's own error; or that the attempt may no longer act: hand it through.
    pub async fn run<F, R>(self, work: F) -> Result<Bytes, HandlerError>
    where
        F: FnOnce() -> R,
        R: Future<Output = Result<Bytes, HandlerError>>,
    {
        self.check_name()?;
        let index = self.context.next_index.fetch_add(1, Ordering::Relaxed);
        if let Some(output) = self.recorded().await? {
            return Ok(output);
        }
        self.announce().await?;
        let output = work().await?;
        self.record(index, output).await
    }

    fn check_name(&self) -> Result<(), HandlerError> {
        if (1..=MAX_NAME_BYTES).contains(&self.name.len()) {
            return Ok(());
        }
        let text = format!("a step name has {} bytes, it must have 1 to {MAX_NAME_BYTES}", self.name.len());
        Err(HandlerError::permanent("STEP_NAME_INVALID", text))
    }

    // The output of an earlier attempt, if the plan says that it stands in.
    async fn recorded(&self) -> Result<Option<Bytes>, HandlerError> {
        let Some(done) = self.context.stand_in(&self.name) else {
            self.check_known()?;
            return Ok(None);
        };
        let key = PayloadKey::StepOutput { step: self.name.clone(), output_hash: done.output_hash };
        match self.context.payloads.get(self.context.task_id(), key, &self.context.guard).await? {
            Some(output) if Sha256Hash::of(&output) == done.output_hash => Ok(Some(output)),
            Some(_) => self.run_again(done, "STEP_OUTPUT_DIFFERS", "stored output does not match its recorded hash"),
            None => self.run_again(done, "STEP_OUTPUT_MISSING", "recorded output is not in the store"),
        }
    }

    // A handler that comes to new work has asked for everything that is to be skipped, unless it is
    // another version of itself. Harmless steps do not mind; others are for people.
    fn check_known(&self) -> Result<(), HandlerError> {
        match self.context.unclaimed().find(|done| !done.is_idempotent) {
            None => Ok(()),
            Some(done) => {
                let message =
                    format!("the handler comes to step {} without its recorded step {}", self.name, done.step);
                Err(HandlerError::new("HANDLER_CHANGED", message, ErrorCategory::OutcomeUnknown))
            }
        }
    }

    // A recorded step without a usable output: harmless ones run again, others are for people.
    fn run_again(&self, done: &StepDone, code: &'static str, why: &str) -> Result<Option<Bytes>, HandlerError> {
        tracing::error!(task_id = %self.context.task_id(), step = self.name.as_str(), code, "{why}");
        if done.is_idempotent && self.is_idempotent {
            return Ok(None);
        }
        let message = format!("step {}: {why}", self.name);
        Err(HandlerError::new(Text::const_new(code), message, ErrorCategory::OutcomeUnknown))
    }

    async fn announce(&self) -> Result<(), HandlerError> {
        let (go, may_go) = oneshot::channel();
        let (execution_id, step) = (self.context.execution_id(), self.name.clone());
        let told = Told::Started { execution_id, step, is_idempotent: self.is_idempotent, go };
        self.context.told.send(told).map_err(|_| HandlerError::stopped())?;
        may_go.await.map_err(|_| HandlerError::stopped())?;
        if self.context.may_write() { Ok(()) } else { Err(HandlerError::stopped()) }
    }

    async fn record(&self, index: u32, output: Bytes) -> Result<Bytes, HandlerError> {
        if output.len() > MAX_PAYLOAD_BYTES {
            let text =
                format!("output of step {} has {} bytes, the limit is {MAX_PAYLOAD_BYTES}", self.name, output.len());
            return Err(HandlerError::permanent("STEP_OUTPUT_TOO_LARGE", text));
        }
        let output_hash = Sha256Hash::of(&output);
        let key = PayloadKey::StepOutput { step: self.name.clone(), output_hash };
        self.context.payloads.put(self.context.task_id(), key, output.clone(), &self.context.guard).await?;
        let done = StepDone { step: self.name.clone(), index, output_hash, is_idempotent: self.is_idempotent };
        let (kept, is_kept) = oneshot::channel();
        let told = Told::Done { execution_id: self.context.execution_id(), done, kept };
        self.context.told.send(told).map_err(|_| HandlerError::stopped())?;
        is_kept.await.map_err(|_| HandlerError::stopped())?;
        Ok(output)
    }
}
