//! The command line's side of REST: `dualtrack task …`, `dualtrack version`.
//!
//! Exit codes: 0 done · 1 the task ended without success · 2 usage · 3 refused by the server (4xx) ·
//! 4 no server, or it cannot serve now · 5 the outcome is not known · 6 the task had not ended when
//! the wait was over.

mod create;
mod history;
mod show;
pub mod task;
mod times;
pub mod version;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use rest_client::contract::Retry;
use rest_client::{Client, ClientError};

/// What the help of `dualtrack task` says of exit codes.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the task ended without success (FAILED_PERMANENTLY, CANCELLED), with --wait
  2  usage
  3  refused by the server (4xx)
  4  no server, or it cannot serve now
  5  the outcome is not known
  6  the task had not ended when the wait was over";

/// Whom to ask, and how to print.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Server
    #[arg(long, global = true, env = "DUALTRACK_URL", default_value = dualtrack::dev::DEFAULT_URL)]
    pub url: String,
    /// How to print
    #[arg(long, global = true, value_enum, default_value = "table")]
    pub output: Output,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Table,
    /// For programs: what the server said, as JSON.
    Json,
}

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub enum Failure {
    /// An argument cannot be used.
    Usage(String),
    /// The call failed.
    Call {
        /// Why.
        error: Box<ClientError>,
        /// What to do when the outcome is not known.
        ask: String,
    },
    /// The task ended without success.
    Negative(String),
    /// The task had not ended when the wait was over.
    NotYet(String),
    /// This machine does not play along.
    Local(String),
}

impl Failure {
    /// A failed call; `ask` says how to find out what became of it.
    pub fn call(error: ClientError, ask: impl Into<String>) -> Self {
        Self::Call { error: Box::new(error), ask: ask.into() }
    }

    /// Exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Negative(_) | Self::Local(_) => 1,
            Self::Usage(_) => 2,
            Self::NotYet(_) => 6,
            Self::Call { error, .. } => match &**error {
                ClientError::Unsendable { .. } => 2,
                ClientError::Problem(problem) if problem.status < 500 => 3,
                ClientError::Problem(_)
                | ClientError::Unreachable { .. }
                | ClientError::UnknownOutcome { .. }
                | ClientError::Unreadable { .. } => match error.retry() {
                    Retry::AskFirst => 5,
                    Retry::Later | Retry::Never => 4,
                },
            },
        }
    }

    fn says(&self) -> (String, Option<String>) {
        match self {
            Self::Usage(text) | Self::Negative(text) | Self::NotYet(text) | Self::Local(text) => (text.clone(), None),
            Self::Call { error, ask } => (show::plain(&error.to_string()), next(error, ask)),
        }
    }
}

// What to do next.
fn next(error: &ClientError, ask: &str) -> Option<String> {
    match error {
        ClientError::Unreachable { .. } => Some(
            "is it running? start one with `dualtrack dev`, or name another one with --url or DUALTRACK_URL".to_owned(),
        ),
        ClientError::Unreadable { .. } => {
            Some("is that a Dualtrack server? name another one with --url or DUALTRACK_URL".to_owned())
        }
        ClientError::UnknownOutcome { .. } => Some(ask.to_owned()),
        ClientError::Unsendable { .. } => None,
        ClientError::Problem(problem) => match problem.code.retry() {
            Retry::AskFirst => Some(match problem.facts.get("task_id").and_then(|id| id.as_str()) {
                Some(id) => format!("it may have been done: look with `dualtrack task show {id}`"),
                None => ask.to_owned(),
            }),
            // What is not there yet is no fault of the moment.
            Retry::Later if problem.status == 404 => None,
            Retry::Later => Some("nothing was done: try again in a moment".to_owned()),
            Retry::Never if problem.status == 409 => {
                let task = problem.facts.get("task_id").and_then(|id| id.as_str());
                task.map(|id| format!("look at it with `dualtrack task show {id}`"))
            }
            Retry::Never => None,
        },
    }
}

/// Ends a command: errors on stderr with what to do next, and the exit code.
pub fn end(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    let (what, next) = failure.says();
    complain(&what, next.as_deref());
    ExitCode::from(failure.code())
}

#[expect(clippy::print_stderr, reason = "the one place where commands say why they failed")]
fn complain(what: &str, next: Option<&str>) {
    eprintln!("dualtrack: {what}");
    if let Some(next) = next {
        eprintln!("  {next}");
    }
}

/// Prints; a reader that went away is nobody's error.
pub fn say(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

impl Common {
    /// A client of the server.
    pub fn client(&self) -> Result<Client, Failure> {
        Client::new(&self.url).map_err(|error| Failure::call(error, String::new()))
    }

    /// Prints an answer as it is, or as a table.
    pub fn print<T: serde::Serialize>(&self, answer: &T, table: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        match self.output {
            Output::Table => say(&table(answer)),
            Output::Json => {
                let text = serde_json::to_string_pretty(answer).map_err(|why| Failure::Local(why.to_string()))?;
                say(&text);
            }
        }
        Ok(())
    }
}

/// Runs a command's calls.
pub fn block_on(run: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|why| Failure::Local(format!("cannot start the network: {why}")))?.block_on(run)
}
