//! `dualtrack demo`: the main job on real input, over HTTP, killed twice and resumed.
//!
//! One task for each file of a directory tree, three steps (hash, count, compress). This process is
//! the upstream system and the hand that kills; the server (`dualtrack dev`, or with `--stack` two
//! coordinators, task engine and auto-replay) and its workers are processes of their own. In the end the
//! account is made from the log alone.

mod account;
mod compare;
mod create;
mod files;
mod gate;
mod handler;
mod ledger;
mod report;
mod rows;
pub mod server;
mod settings;
mod show;
mod suite;
mod supervise;
mod worker;

use std::path::PathBuf;

use clap::{ArgAction, Args};
use dualtrack::dev::LogKind;

/// Partitions of the demo's log.
const PARTITIONS: u16 = 4;

/// Queue and task type of the demo.
const QUEUE: &str = "files";

/// Arguments of the demo.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  dualtrack demo --dir .")]
pub struct DemoArgs {
    /// Directory tree whose files become tasks
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
    /// Folder for log, store and outputs; it is emptied first
    #[arg(long, default_value = "dualtrack-demo")]
    pub work: PathBuf,
    /// Log to run on
    #[arg(long, value_enum, default_value = "embedded")]
    pub log: LogKind,
    /// Kafka's HOST:PORT, with --log kafka
    #[arg(long)]
    pub bootstrap: Option<String>,
    /// Run the suite as separate processes on Kafka, Cassandra and Redis; the variables that `make stack`
    /// writes say where they are
    #[arg(long, conflicts_with_all = ["log", "bootstrap"])]
    pub stack: bool,
    /// Topic, with --log kafka or --stack
    #[arg(long, default_value = "task-execution-events")]
    pub topic: String,
    /// Keyspace, with --stack
    #[arg(long, default_value = "dualtrack_demo")]
    pub keyspace: String,
    /// Script of the independent checker
    #[arg(long, default_value = "tests/checker/check.py")]
    pub checker: PathBuf,
    /// Take this many files at most
    #[arg(long)]
    pub limit: Option<usize>,
    /// End when everything is told; else the server stays up until Ctrl-C
    #[arg(long, env = "DEMO_EXIT", action = ArgAction::SetTrue, value_parser = clap::builder::FalseyValueParser::new())]
    pub exit: bool,
    /// Run as a worker of this name
    #[arg(long, hide = true, requires = "url")]
    pub worker: Option<String>,
    /// Worker: where the server is; several of one suite
    #[arg(long, hide = true)]
    pub url: Vec<String>,
    /// Worker: hold later handlers inside their second step
    #[arg(long, hide = true, requires = "worker")]
    pub hold_after: Option<usize>,
}

/// Runs the demo, or one of its workers.
///
/// # Errors
/// Something is missing, wrong, or cannot be started.
pub fn run(mut args: DemoArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    // All processes see the same folders, whatever they are given and wherever they are started.
    args.dir = std::path::absolute(&args.dir)?.components().collect();
    args.work = std::path::absolute(&args.work)?.components().collect();
    match &args.worker {
        Some(name) => runtime.block_on(worker::work(&args, name)),
        None => runtime.block_on(supervise::supervise(&args)),
    }
}
