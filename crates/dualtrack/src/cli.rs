//! The command line's side of REST: one noun a module. Exit codes are in [`failure::EXIT_CODES`].

pub mod config;
mod create;
pub mod events;
mod failure;
pub mod fleet;
mod history;
mod import;
mod list;
mod listing;
mod progress;
pub mod rules;
mod screen;
mod server;
mod show;
pub mod store;
mod surroundings;
pub mod task;
mod times;
pub mod topic;
pub mod trace;
pub mod version;
mod watch;
pub mod worker;

use std::io::Write as _;

use clap::{Args, ValueEnum};
use rest_client::Client;

pub use failure::{EXIT_CODES, Failure, end};
use screen::Screen;
use surroundings::Surroundings;

/// Whom to ask, and how to print.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Server [variable: DUALTRACK_URL] [default: that of the profile, else http://127.0.0.1:7420]
    #[arg(long, global = true, value_name = "URL", help_heading = "Server and output")]
    url: Option<String>,
    /// Profile that names the server, of dualtrack/profiles.toml in ~/.config [variable: DUALTRACK_PROFILE]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Server and output")]
    profile: Option<String>,
    /// How to print
    #[arg(long, global = true, value_enum, default_value = "table", help_heading = "Server and output")]
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

impl Common {
    /// The server's URL: `--url`, else `--profile`, else the variables, else the default profile, else
    /// the built-in one.
    ///
    /// # Errors
    /// A profile that is not there.
    pub fn url(&self) -> Result<String, Failure> {
        Ok(server::choose(self.url.as_deref(), self.profile.as_deref(), &Surroundings::here())?.url)
    }

    /// The same with this server, if it is named.
    pub fn at(&self, url: Option<String>) -> Self {
        Self { url, ..self.clone() }
    }

    /// A client of the server.
    ///
    /// # Errors
    /// A profile that is not there, a URL that is none.
    pub fn client(&self) -> Result<Client, Failure> {
        Client::new(&self.url()?).map_err(|error| Failure::call(error, String::new()))
    }

    /// Prints an answer as it is, or as a table.
    ///
    /// # Errors
    /// It cannot be written. None that the network makes: an answer is JSON.
    pub fn print<T: serde::Serialize>(
        &self,
        answer: &T,
        table: impl FnOnce(&T, &Screen) -> String,
    ) -> Result<(), Failure> {
        match self.output {
            Output::Table => say(&table(answer, &Screen::here())),
            Output::Json => {
                let text = serde_json::to_string_pretty(answer).map_err(|why| Failure::Local(why.to_string()))?;
                say(&text)
            }
        }
    }
}

/// Prints; a reader that went away is nobody's error.
///
/// # Errors
/// It cannot be written: the disk is full.
pub fn say(text: &str) -> Result<(), Failure> {
    print_line(text).or_else(unwritten)
}

/// Prints bytes as they are, without a line's end.
///
/// # Errors
/// As of [`say`].
pub fn say_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).or_else(unwritten)
}

/// What it means for a command that its output was not written: if its reader went away, that it is done.
///
/// # Errors
/// Any other reason.
pub fn unwritten(why: std::io::Error) -> Result<(), Failure> {
    if why.kind() == std::io::ErrorKind::BrokenPipe {
        return Ok(());
    }
    Err(Failure::Local(format!("cannot write to standard output: {why}")))
}

/// Prints, for commands that go on for long.
///
/// # Errors
/// There is nothing more to print for: [`unwritten`] tells how the command ends.
pub fn print_line(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush())
}

/// Runs a command's calls.
///
/// # Errors
/// Those of the command, or the system gives no network.
pub fn block_on(run: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|why| Failure::Local(format!("cannot start the network: {why}")))?.block_on(run)
}
