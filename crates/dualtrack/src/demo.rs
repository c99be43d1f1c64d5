//! `dualtrack demo`: the main job on real input, killed half-way and resumed.
//!
//! One task for each file of a directory tree, three steps (hash, count, compress). The outer
//! process (`supervise`) starts an inner one (`serve`) that runs owner, engine, replayer and a
//! worker pool over the chosen log; the inner one kills itself with SIGKILL, is started again,
//! resumes, and in the end the account is made from the log alone.

mod account;
mod compare;
mod files;
mod handler;
mod ledger;
mod payloads;
mod rows;
mod serve;
mod show;
mod supervise;
mod workers;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Partitions of the demo's log.
const PARTITIONS: u16 = 4;

/// Which log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogKind {
    /// A directory, no Kafka.
    Embedded,
    /// A real Kafka.
    Kafka,
}

/// Arguments of the demo.
#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    /// Directory tree whose files become tasks
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
    /// Folder for log, store, outputs and payloads; it is emptied first
    #[arg(long, default_value = "dualtrack-demo")]
    pub work: PathBuf,
    /// Log to run on
    #[arg(long, value_enum, default_value = "embedded")]
    pub log: LogKind,
    /// Kafka's HOST:PORT, with --log kafka
    #[arg(long)]
    pub bootstrap: Option<String>,
    /// Topic, with --log kafka
    #[arg(long, default_value = "task-execution-events")]
    pub topic: String,
    /// Script of the independent checker
    #[arg(long, default_value = "tests/checker/check.py")]
    pub checker: PathBuf,
    /// Take this many files at most
    #[arg(long)]
    pub limit: Option<usize>,
    /// Run as the inner process
    #[arg(long, hide = true)]
    pub serve: bool,
    /// Inner process: die half-way
    #[arg(long, hide = true, requires = "serve")]
    pub kill_half_way: bool,
}

impl DemoArgs {
    fn forwarded(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> =
            vec!["--dir".into(), self.dir.clone().into(), "--work".into(), self.work.clone().into()];
        let log = if self.log == LogKind::Kafka { "kafka" } else { "embedded" };
        args.extend(["--log".into(), log.into()]);
        args.extend(["--topic".into(), self.topic.clone().into()]);
        if let Some(bootstrap) = &self.bootstrap {
            args.extend(["--bootstrap".into(), bootstrap.into()]);
        }
        if let Some(limit) = self.limit {
            args.extend(["--limit".into(), limit.to_string().into()]);
        }
        args
    }
}

/// Runs the demo.
pub fn run(mut args: DemoArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    // Both processes see the same folders, whatever they are given and wherever they are started.
    args.dir = std::path::absolute(&args.dir)?.components().collect();
    args.work = std::path::absolute(&args.work)?.components().collect();
    if args.serve { runtime.block_on(serve::serve(&args)) } else { runtime.block_on(supervise::supervise(&args)) }
}
