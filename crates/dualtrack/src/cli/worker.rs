//! `dualtrack worker …`.

mod exec;
mod http;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use task_events::Text;
use telemetry::LogFormat;

use super::fleet::{self, FleetCommand};
use super::times::duration_ms;
use super::{Common, block_on, end};
use crate::worker::supervisor::{self, EnterArgs};

/// Arguments of `dualtrack worker`.
#[derive(Clone, Debug, Args)]
#[command(after_help = super::EXIT_CODES)]
pub struct WorkerArgs {
    #[command(flatten)]
    common: Common,
    /// How log lines look
    #[arg(long, value_name = "text|json", default_value = "text", value_parser = log_format)]
    log_format: LogFormat,
    #[command(subcommand)]
    command: WorkerCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum WorkerCommand {
    #[command(flatten)]
    Fleet(FleetCommand),
    /// Run a program for each task: payload on stdin, last line of stdout is the result
    #[command(after_help = exec::HELP)]
    Exec(Box<exec::ExecArgs>),
    /// POST each task to a URL: its answer is the result
    #[command(after_help = http::HELP)]
    Http(Box<http::HttpArgs>),
    /// The process between a worker and its program
    #[command(hide = true)]
    Supervise,
    /// The last step before the program
    #[command(hide = true)]
    Enter(EnterArgs),
}

/// What ready-made workers have in common.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Type of tasks to run; more than once [default: all that are in the queues]
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<Text>,
    /// Queue to serve; more than once [default: those named like the types]
    #[arg(long = "queue", value_name = "QUEUE")]
    pub queues: Vec<Text>,
    /// Tasks at a time
    #[arg(long, default_value_t = 4, allow_negative_numbers = true)]
    pub slots: u32,
    /// Name of the worker: no other process's, and the same after each restart [default: HOST-PID]
    #[arg(long)]
    pub name: Option<Text>,
    /// Version of what is run, recorded with each attempt
    #[arg(long, default_value = "1")]
    pub handler_version: Text,
    /// Folder in which reports survive a crash of the worker
    #[arg(long, value_name = "DIR")]
    pub outbox: Option<PathBuf>,
    /// How long running tasks may go on after SIGTERM or Ctrl-C
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "30s", value_parser = duration_ms)]
    pub drain: u64,
    /// End after so many tasks
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_tasks: Option<u64>,
    /// End, with exit code 0, once there was nothing to do for so long
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration_ms)]
    pub until_idle: Option<u64>,
    /// Base address of a collector's OTLP receiver (HTTP), such as http://127.0.0.1:4318: spans of what
    /// is run go there [default: none]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true)]
    pub otlp_endpoint: Option<String>,
}

impl WorkerArgs {
    /// How log lines look.
    pub const fn log_format(&self) -> LogFormat {
        self.log_format
    }
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("it must be text or json".to_owned()),
    }
}

/// Runs it.
pub fn run(args: WorkerArgs) -> ExitCode {
    let WorkerArgs { common, command, .. } = args;
    match command {
        WorkerCommand::Fleet(command) => end(block_on(fleet::run(command, &common))),
        WorkerCommand::Exec(args) => end(block_on(exec::run(*args, common))),
        WorkerCommand::Http(args) => end(block_on(http::run(*args, common))),
        WorkerCommand::Supervise => supervisor::supervise(),
        WorkerCommand::Enter(args) => supervisor::enter(&args),
    }
}
