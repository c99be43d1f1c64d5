//! `dualtrack worker exec`: a program for each attempt. docs/guide/workers.md is what users read.

mod attempt;
mod channel;
mod environment;
mod outcome;
mod supervised;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;
use worker_sdk::{Context, HandlerError};

pub use environment::Passed;
pub use outcome::NoRetry;
pub use supervised::Supervisors;

use super::serve::Ending;
use channel::Channel;

/// What is run, and within which limits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// What it sees of the worker's environment.
    pub passed: Passed,
    /// From SIGTERM to SIGKILL, ms.
    pub grace_ms: u64,
    /// Longest life of a program, ms; start-to-close of the task holds besides.
    pub time_limit_ms: Option<u64>,
    /// Most memory of a program with all its descendants, bytes.
    pub memory: Option<u64>,
    /// Ends that are not worth another attempt.
    pub no_retry: NoRetry,
    /// Whether a last line that is no JSON is a failure.
    pub require_json: bool,
}

/// Runs programs. Clones are the same.
#[derive(Clone)]
pub struct Exec {
    settings: Arc<Settings>,
    supervisors: Supervisors,
    ending: Ending,
}

impl Exec {
    pub fn new(settings: Settings, supervisors: Supervisors, ending: Ending) -> Self {
        Self { settings: Arc::new(settings), supervisors, ending }
    }

    /// The handler. What it started goes on being looked after if it is dropped, until nothing of it is
    /// left; only then does the attempt count as gone.
    pub async fn run(self, context: Context) -> Result<Bytes, HandlerError> {
        let recorded = context.recorded_steps().await?;
        let hold = context.hold();
        let channel = Channel::new(context.clone(), recorded);
        let (tell, outcome) = oneshot::channel();
        let gives_up = context.give_up();
        tokio::spawn(async move {
            let attempt = attempt::Attempt::new(&self, &context, hold, channel);
            let (outcome, hold) = attempt.run().await;
            // Nobody listens to an attempt that was stopped.
            let _ = tell.send(outcome);
            drop(hold);
        });
        outcome.await.unwrap_or(Err(gives_up))
    }

    fn command(&self) -> Vec<Vec<u8>> {
        self.settings.command.iter().map(|part| part.clone().into_vec()).collect()
    }
}
