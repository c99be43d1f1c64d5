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
        check_name(&self.name)?;
        let index = self.context.next_index.fetch_add(1, Ordering::Relaxed);
        if let Some(output) = self.recorded().await? {
            return Ok(output);
        }
        self.announce().await?;
        let doing = self.context.traced.step(&self.name);
        let done = match work().await {
            Ok(output) => record(self.context, &self.name, index, self.is_idempotent, output).await,
            Err(error) => Err(error),
        };
        if let Some(doing) = doing {
            doing.ended(done.as_ref().err().map(|error| error.code.clone()));
        }
        done
    }

    // The output of an earlier attempt, if the plan says that it stands in.
    async fn recorded(&self) -> Result<Option<Bytes>, HandlerError> {
        let Some(done) = self.context.stand_in(&self.name) else {
            self.check_known()?;
            return Ok(None);
        };
        stored(self.context, done, self.is_idempotent).await
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

    async fn announce(&self) -> Result<(), HandlerError> {
        let (go, may_go) = oneshot::channel();
        let (execution_id, step) = (self.context.execution_id(), self.name.clone());
        let told = Told::Started { execution_id, step, is_idempotent: self.is_idempotent, go };
        self.context.told.send(told).map_err(|_| HandlerError::stopped())?;
        may_go.await.map_err(|_| HandlerError::stopped())?;
        if self.context.may_write() { Ok(()) } else { Err(HandlerError::stopped()) }
    }
}

/// Whether a step may be called so.
pub(super) fn check_name(name: &Text) -> Result<(), HandlerError> {
    if (1..=MAX_NAME_BYTES).contains(&name.len()) {
        return Ok(());
    }
    let text = format!("a step name has {} bytes, it must have 1 to {MAX_NAME_BYTES}", name.len());
    Err(HandlerError::permanent("STEP_NAME_INVALID", text))
}

/// The recorded output of a step; `None` if it is gone and the step may simply run again.
pub(super) async fn stored(
    context: &Context,
    done: &StepDone,
    is_idempotent: bool,
) -> Result<Option<Bytes>, HandlerError> {
    let key = PayloadKey::StepOutput { step: done.step.clone(), output_hash: done.output_hash };
    let (code, why) = match context.payloads.get(context.task_id(), key, &context.guard).await? {
        Some(output) if Sha256Hash::of(&output) == done.output_hash => return Ok(Some(output)),
        Some(_) => ("STEP_OUTPUT_DIFFERS", "stored output does not match its recorded hash"),
        None => ("STEP_OUTPUT_MISSING", "recorded output is not in the store"),
    };
    tracing::error!(task_id = %context.task_id(), step = done.step.as_str(), code, "{why}");
    // Harmless ones run again, others are for people.
    if done.is_idempotent && is_idempotent {
        return Ok(None);
    }
    let message = format!("step {}: {why}", done.step);
    Err(HandlerError::new(Text::const_new(code), message, ErrorCategory::OutcomeUnknown))
}

/// Stores an output, then reports the step, and returns once the report survives a crash.
pub(super) async fn record(
    context: &Context,
    name: &Text,
    index: u32,
    is_idempotent: bool,
    output: Bytes,
) -> Result<Bytes, HandlerError> {
    if output.len() > MAX_PAYLOAD_BYTES {
        let text = format!("output of step {name} has {} bytes, the limit is {MAX_PAYLOAD_BYTES}", output.len());
        return Err(HandlerError::permanent("STEP_OUTPUT_TOO_LARGE", text));
    }
    let output_hash = Sha256Hash::of(&output);
    let key = PayloadKey::StepOutput { step: name.clone(), output_hash };
    context.payloads.put(context.task_id(), key, output.clone(), &context.guard).await?;
    let done = StepDone { step: name.clone(), index, output_hash, is_idempotent };
    let (kept, is_kept) = oneshot::channel();
    let told = Told::Done { execution_id: context.execution_id(), done, kept };
    context.told.send(told).map_err(|_| HandlerError::stopped())?;
    is_kept.await.map_err(|_| HandlerError::stopped())?;
    Ok(output)
}
