//! `dualtrack bench`: the figures of this machine, taken over HTTP with real processes.
//!
//! The server is `dualtrack dev` in a process of its own, its data in a temporary folder with real
//! syncs, or with `--stack` separate processes on real engines; workers are processes of this program
//! again; this process is the load generator. Each figure stands beside a baseline of the same run, and
//! beside its target (design.md §12). What could not be taken is said to be missing.

mod clock;
mod dispatch;
mod figure;
mod fold;
mod lists;
mod load;
mod memory;
mod pace;
mod probe;
mod raw;
mod recovery;
mod show;
mod slow;
mod standard;
mod suite;
mod throughput;
mod verify;
mod worker;
mod world;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use service_host::Signals;

use crate::cli::Output;
use crate::demo::server::until_stopped;
use figure::{Figure, Group};

/// Partitions of the log in every figure.
const PARTITIONS: u16 = 16;

/// Load on engines before the figure of throughput, s: as long as their compilers take much of the machine.
const STACK_WARM_UP: u64 = 180;

/// Arguments of the benchmarks.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  dualtrack bench --seconds 60 --dir /tmp")]
pub struct BenchArgs {
    /// Take only these figures
    #[arg(long, value_enum, value_delimiter = ',', num_args = 1.., value_name = "NAME")]
    only: Vec<Group>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    output: Output,
    /// Length of each timed part
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..=3600))]
    seconds: u64,
    /// Seconds of the same load before the throughput figure begins: a sixth of its length, 3 at least; with
    /// --stack 180, for Cassandra and Kafka compile what they run for minutes
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    warm_up: Option<u64>,
    /// Also write the figures into this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Folder below which data is kept while a figure is taken; its disk is what is measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Take throughput and dispatch with separate processes on Kafka, Cassandra and Redis; the variables that
    /// `make stack` writes say where they are. Topics and keyspaces stay behind
    #[arg(long)]
    stack: bool,
    /// What `cargo bench -p task-core --bench fold` printed, for the fold rate
    #[arg(long, value_name = "FILE")]
    fold: Option<PathBuf>,
    /// Tasks that are open at a time in the throughput figure: those of a request at least
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    open: u64,
    /// Worker processes in the throughput figure
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    workers: u16,
    /// Attempts at a time of each of them
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1000))]
    slots: u32,
    /// Run as a worker of this name
    #[arg(long, hide = true, requires_all = ["url", "outbox", "samples"])]
    worker: Option<String>,
    /// Worker: where the server is
    #[arg(long, hide = true)]
    url: Option<String>,
    /// Worker: folder of its outbox
    #[arg(long, hide = true)]
    outbox: Option<PathBuf>,
    /// Worker: file for what it saw
    #[arg(long, hide = true)]
    samples: Option<PathBuf>,
}

/// Takes the figures, or runs as one of their workers.
///
/// # Errors
/// A figure is missing although it was asked for, or an acknowledged task was lost.
pub fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match (&args.worker, &args.url, &args.outbox, &args.samples) {
        (Some(name), Some(url), Some(outbox), Some(samples)) => {
            runtime.block_on(worker::work(name, url, args.slots, outbox, samples))
        }
        _ => runtime.block_on(async {
            let mut signals = Signals::listen().context("cannot listen for signals")?;
            until_stopped(&mut signals, take_all(args)).await
        }),
    }
}

/// What every figure is taken with.
pub struct Run<'a> {
    args: &'a BenchArgs,
    dir: PathBuf,
    bar: ProgressBar,
}

impl Run<'_> {
    /// Length of the load before the figure of throughput, s.
    fn warm_up(&self) -> u64 {
        let usual = if self.args.stack { STACK_WARM_UP } else { (self.args.seconds / 6).max(3) };
        self.args.warm_up.unwrap_or(usual)
    }

    /// Says what goes on; on a terminal only, indicatif sees to that.
    fn says(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }
}

async fn take_all(args: &BenchArgs) -> anyhow::Result<()> {
    let dir = std::path::absolute(&args.dir)?;
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    let run = Run { args, dir, bar };
    let wanted: Vec<Group> = match args.only.as_slice() {
        [] if args.stack => Group::OF_STACK.to_vec(),
        [] => Group::value_variants().to_vec(),
        some => some.to_vec(),
    };
    if let Some(group) = wanted.iter().find(|group| args.stack && !Group::OF_STACK.contains(group)) {
        let of_stack = Group::OF_STACK.map(Group::name).join(", ");
        bail!("--only {}: with --stack there are {of_stack}", group.name());
    }
    let machine = probe::machine();
    let (mut figures, mut failed) = (Vec::new(), Vec::new());
    for group in wanted {
        let name = group.name();
        run.says(name);
        match take(&run, group).await {
            Ok(some) => figures.extend(some),
            Err(why) => {
                figures.push(Figure::missing(group, name, format!("{why:#}")));
                failed.push(name);
            }
        }
    }
    run.bar.finish_and_clear();
    let report = show::Report::new(args.seconds, machine, figures);
    report.print(args.output)?;
    if let Some(place) = &args.json {
        std::fs::write(place, report.to_json()?).with_context(|| format!("cannot write {}", place.display()))?;
    }
    if report.is_anything_lost() {
        bail!("acknowledged tasks are not found after the kill");
    }
    if !failed.is_empty() {
        bail!("could not be taken: {}", failed.join(", "));
    }
    Ok(())
}

async fn take(run: &Run<'_>, group: Group) -> anyhow::Result<Vec<Figure>> {
    match group {
        Group::Throughput => throughput::take(run).await,
        Group::Dispatch => dispatch::take(run).await,
        Group::Recovery => recovery::take(run).await,
        Group::Memory => memory::take(run).await,
        Group::Fold => fold::take(run),
        Group::Slow => slow::take(run).await,
        Group::Lists => lists::take(run).await,
    }
}
