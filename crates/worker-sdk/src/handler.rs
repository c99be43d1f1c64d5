//! Handlers and their errors.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use task_events::{ErrorCategory, Text};

use crate::Context;
use crate::machine::HandlerEnd;

/// Why a handler or a step did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct HandlerError {
    /// Machine-readable; what policies go by.
    pub code: Text,
    /// For people. Whole texts are stored, reports carry their beginning.
    pub message: String,
    /// Whether and how it may be tried again.
    pub category: ErrorCategory,
    /// What is stored beside the report when the message is not all there is to say.
    pub(crate) text: Option<String>,
    /// The handler was told to stop; the error says nothing about the task.
    pub(crate) stopped: bool,
}

impl HandlerError {
    /// An error that may be gone at the next attempt.
    pub fn transient(code: impl Into<Text>, message: impl Into<String>) -> Self {
        Self::new(code, message, ErrorCategory::Transient)
    }

    /// An error that every further attempt would meet again.
    pub fn permanent(code: impl Into<Text>, message: impl Into<String>) -> Self {
        Self::new(code, message, ErrorCategory::NonRetryable)
    }

    /// An error of the given category.
    pub fn new(code: impl Into<Text>, message: impl Into<String>, category: ErrorCategory) -> Self {
        Self { code: code.into(), message: message.into(), category, text: None, stopped: false }
    }

    /// The whole text of the error, stored as a payload of the task up to its limit; without one
    /// that is the message.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// The handler must not go on: hand this error through.
    pub(crate) fn stopped() -> Self {
        Self { stopped: true, ..Self::transient("STOPPED", "the attempt may no longer act") }
    }

    pub(crate) fn into_end(self) -> HandlerEnd {
        if self.stopped {
            return HandlerEnd::Stopped;
        }
        HandlerEnd::Failed { error_code: self.code, error_message: self.message.into(), category: self.category }
    }
}

impl From<std::io::Error> for HandlerError {
    fn from(error: std::io::Error) -> Self {
        Self::transient("IO_ERROR", error.to_string())
    }
}

type Handler = Arc<dyn Fn(Context) -> BoxFuture<'static, Result<Bytes, HandlerError>> + Send + Sync>;

/// Handlers by task type.
#[derive(Clone, Default)]
pub struct Handlers {
    by_type: BTreeMap<Text, Handler>,
    otherwise: Option<Handler>,
}

impl Handlers {
    /// No handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs tasks of this type with `handler`: it gets the context and returns the result.
    #[must_use]
    pub fn on<F, R>(mut self, task_type: impl Into<Text>, handler: F) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Bytes, HandlerError>> + Send + 'static,
    {
        self.by_type.insert(task_type.into(), Arc::new(move |context| handler(context).boxed()));
        self
    }

    /// Runs tasks of all other types with `handler`.
    #[must_use]
    pub fn otherwise<F, R>(mut self, handler: F) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Bytes, HandlerError>> + Send + 'static,
    {
        self.otherwise = Some(Arc::new(move |context| handler(context).boxed()));
        self
    }

    /// Whether no task could be run.
    pub fn is_empty(&self) -> bool {
        self.by_type.is_empty() && self.otherwise.is_none()
    }

    /// Task types that have a handler of their own.
    pub fn task_types(&self) -> impl Iterator<Item = &Text> {
        self.by_type.keys()
    }

    pub(crate) fn get(&self, task_type: &str) -> Option<Handler> {
        self.by_type.get(task_type).or(self.otherwise.as_ref()).cloned()
    }
}
