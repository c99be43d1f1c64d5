//! Recorded outputs all at once, and checkpoints: for handlers that do not ask step by step, such as
//! programs in other languages.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use task_events::Text;

use super::Context;
use super::step::{check_name, record, stored};
use crate::HandlerError;

/// A step that an earlier attempt completed, and that is not to be run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedStep {
    /// Its name.
    pub step: Text,
    /// Its output, verified.
    pub output: Bytes,
    /// As it was declared.
    pub is_idempotent: bool,
}

impl Context {
    /// The outputs of all steps that are skipped, in their order. From here on they count as asked
    /// for: whoever takes them all decides alone what to do with them, and steps begun later stand
    /// behind them. One whose output is gone is left out if it was declared idempotent.
    ///
    /// # Errors
    /// The output of a step that must not run twice is gone or differs; or the attempt may no longer
    /// act: hand it through.
    pub async fn recorded_steps(&self) -> Result<Vec<RecordedStep>, HandlerError> {
        let mut found = Vec::new();
        let skipped: Vec<_> = self.skipped_steps().cloned().collect();
        for done in skipped {
            self.claimed.lock().insert(done.step.clone());
            self.next_index.fetch_max(done.index.saturating_add(1), Ordering::Relaxed);
            if let Some(output) = stored(self, &done, done.is_idempotent).await? {
                found.push(RecordedStep { step: done.step, output, is_idempotent: done.is_idempotent });
            }
        }
        Ok(found)
    }

    /// Records how far a handler has come, under a name of its own among the steps: each call
    /// replaces what the one before recorded, and a later attempt finds the last one among its
    /// recorded steps. It counts as an idempotent step.
    ///
    /// # Errors
    /// As those of a step that records its output.
    pub async fn checkpoint(&self, name: impl Into<Text>, output: Bytes) -> Result<(), HandlerError> {
        let name = name.into();
        check_name(&name)?;
        let known = self.assignment.steps_done.iter().find(|done| done.step == name).map(|done| done.index);
        let next = || known.unwrap_or_else(|| self.next_index.fetch_add(1, Ordering::Relaxed));
        let index = *self.checkpoints.lock().entry(name.clone()).or_insert_with(next);
        record(self, &name, index, true, output).await.map(drop)
    }
}
