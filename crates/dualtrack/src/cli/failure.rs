//! How commands end that did not do what they were asked for: exit code, words, and what to do next.

use std::process::ExitCode;

use rest_client::ClientError;
use rest_client::contract::{Code, Retry};

use super::screen::plain;
use super::server::{self, Origin};

/// What the help says of exit codes.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the task ended without success (FAILED_PERMANENTLY, CANCELLED)
  2  usage: flags, profile, settings or an input file that cannot be used
  3  refused by the server (4xx), or some lines of a file were; an engine is not as it must be
  4  no server or engine, or it cannot serve now
  5  the outcome is not known
  6  the task had not ended when the wait was over
  128 + number  ended by a signal (130: Ctrl-C)";

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub enum Failure {
    /// An argument, a profile, a setting or an input file cannot be used.
    Usage(String),
    /// The call failed.
    Call {
        /// Why.
        error: Box<ClientError>,
        /// What to do when the outcome is not known.
        ask: String,
    },
    /// What is there refuses, or is not as it must be.
    Refused(String),
    /// Nobody is there who could answer.
    Away(String),
    /// The task ended without success.
    Negative(String),
    /// The task had not ended when the wait was over.
    NotYet(String),
    /// This machine does not play along.
    Local(String),
    /// It was said already; only the exit code is left to give.
    Said(u8),
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
            Self::Refused(_) => 3,
            Self::Away(_) => 4,
            Self::NotYet(_) => 6,
            Self::Said(code) => *code,
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

    fn says(&self) -> Option<(String, Option<String>)> {
        match self {
            Self::Usage(text)
            | Self::Refused(text)
            | Self::Away(text)
            | Self::Negative(text)
            | Self::NotYet(text)
            | Self::Local(text) => Some((text.clone(), None)),
            Self::Call { error, ask } => Some((plain(&error.to_string()), next(error, ask))),
            Self::Said(_) => None,
        }
    }
}

// What to do next.
fn next(error: &ClientError, ask: &str) -> Option<String> {
    match error {
        ClientError::Unreachable { .. } => Some(elsewhere("is it running?")),
        ClientError::Unreadable { .. } => Some(elsewhere("is that a Dualtrack server?")),
        ClientError::Unsendable { what: "the URL", .. } => {
            server::asked().map(|server| format!("this URL is {}", server.from))
        }
        ClientError::Unsendable { .. } => None,
        ClientError::UnknownOutcome { .. } => Some(ask.to_owned()).filter(|ask| !ask.is_empty()),
        ClientError::Problem(problem) if problem.code == Code::NoSuchPath => {
            Some("is the server older than this program? `dualtrack version` tells".to_owned())
        }
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

// Where the URL came from decides what there is to do about it.
fn elsewhere(question: &str) -> String {
    let start = "start one with `dualtrack dev`, or name another with --url, --profile or DUALTRACK_URL";
    match server::asked().map(|server| &server.from) {
        None | Some(Origin::BuiltIn) => format!("{question} {start}"),
        Some(from @ (Origin::Flag | Origin::Variable | Origin::Profile { .. })) => {
            format!("this URL is {from}\n  {question} {start}")
        }
    }
}

/// Ends a command: errors on stderr with what to do next, and the exit code.
pub fn end(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if let Some((what, next)) = failure.says() {
        complain(&what);
        if let Some(next) = next {
            hint(&next);
        }
    }
    ExitCode::from(failure.code())
}

/// Says what went wrong, on stderr.
pub fn complain(what: &str) {
    note(&format!("dualtrack: {what}"));
}

/// Says what to do about it, on stderr.
pub fn hint(next: &str) {
    note(&format!("  {next}"));
}

/// Says something that is no answer, on stderr; that nobody reads it is nobody's error.
pub fn note(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}
