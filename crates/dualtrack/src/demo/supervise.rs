//! The demo's plot: a server and its workers as processes, one worker and then the server killed
//! while handlers are at work, both started again; in the end the log, the rows, the outputs and the
//! handlers' ledger are held against each other.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use rest_client::Client;
use service_host::Signals;
use service_kit::{Clock as _, SystemClock};
use stack_control::Process;
use task_events::TaskId;

use super::create::{create_all, still_open};
use super::files::{Places, empty, list};
use super::gate::held_by;
use super::server::until_stopped;
use super::suite::Suite;
use super::{DemoArgs, account, ledger, report, settings, worker};

/// Pause between two looks, ms.
const LOOK_MS: u64 = 50;
/// Longest time until enough handlers are held, or until some task is closed, ms.
const PATIENCE_MS: u64 = 120_000;

/// Runs the demo; an error if anything is missing or wrong, or a signal breaks it off.
pub async fn supervise(args: &DemoArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let tasks = until_stopped(&mut signals, play(args)).await?;
    if args.exit { Ok(()) } else { stay(&mut signals, args, &tasks).await }
}

// What became tasks.
async fn play(args: &DemoArgs) -> anyhow::Result<BTreeMap<TaskId, String>> {
    let places = Places::below(&args.work);
    empty(&args.work)?;
    let mut inputs = list(&args.dir, &args.work)?;
    inputs.truncate(args.limit.unwrap_or(usize::MAX));
    ensure!(!inputs.is_empty(), "{} holds no files: give --dir a folder with some", args.dir.display());
    settings::write(args, &places)?;
    let mut say = std::io::stdout();
    let (count, dir) = (inputs.len(), args.dir.display());
    writeln!(say, "{count} files below {dir}: one task each, three steps (hash, count, compress)")?;

    let mut suite = Suite::start(args, &places).await?;
    let urls = suite.urls();
    writeln!(say, "server is up at {}", urls.join(" and "))?;
    // One that is there all the time, if there are several.
    let client = Client::new(urls.last().context("somebody answers")?)?;
    let tasks = create_all(&client, &args.dir, &inputs).await?;
    writeln!(say, "{} tasks created over HTTP", tasks.len())?;

    // A third passes the first worker, then half of what is left the second.
    let first = Part { worker: "worker-1", passing: count / 3, held: (count - count / 3).min(worker::SLOTS as usize) };
    let left = count - first.passing;
    let second = Part { worker: "worker-2", passing: left / 2, held: (left - left / 2).min(worker::SLOTS as usize) };
    let mut worker_1 = start_worker(args, &urls, first.worker, Some(first.passing))?;
    first.wait(&places, &mut worker_1, &mut suite).await?;
    worker_1.kill()?;
    writeln!(say, "worker-1 killed by SIGKILL, {} of its handlers were inside step 2", first.held)?;

    let mut worker_2 = start_worker(args, &urls, second.worker, Some(second.passing))?;
    second.wait(&places, &mut worker_2, &mut suite).await?;
    let killed = suite.kill()?;
    let victim = if args.stack { "coordinator-1" } else { "server" };
    writeln!(say, "{victim} killed by SIGKILL, {} handlers of worker-2 were inside step 2", second.held)?;
    suite.recover(killed).await?;
    std::fs::write(&places.go, "go on\n").with_context(|| format!("cannot write {}", places.go.display()))?;
    let mut workers = vec![worker_2, start_worker(args, &urls, "worker-1", None)?];
    if args.stack {
        workers.push(start_worker(args, &urls, "worker-3", None)?);
    }
    writeln!(say, "{victim} and worker-1 started again; what was broken off is resumed")?;

    let open: Vec<TaskId> = tasks.keys().copied().collect();
    wait_for_all(&client, open, &mut workers, &mut suite).await?;
    for worker in workers {
        worker.stop().await?;
    }
    suite.stop().await?;

    let account = account::read(args, &places, &tasks).await?;
    report::report(args, &places, &inputs, &account).await?;
    Ok(tasks)
}

fn start_worker(args: &DemoArgs, urls: &[String], name: &str, passing: Option<usize>) -> anyhow::Result<Process> {
    let passing = passing.map(|n| n.to_string());
    let mut arguments: Vec<&OsStr> = vec!["demo".as_ref(), "--worker".as_ref(), name.as_ref()];
    for url in urls {
        arguments.extend::<[&OsStr; 2]>(["--url".as_ref(), url.as_ref()]);
    }
    arguments.extend::<[&OsStr; 4]>(["--dir".as_ref(), args.dir.as_os_str(), "--work".as_ref(), args.work.as_os_str()]);
    if let Some(passing) = &passing {
        arguments.extend::<[&OsStr; 2]>(["--hold-after".as_ref(), passing.as_ref()]);
    }
    let program = std::env::current_exe().context("cannot find this program")?;
    Process::start(name, &program, arguments, &[], (Stdio::inherit(), Stdio::inherit()))
}

/// What one worker does before the kill.
struct Part {
    worker: &'static str,
    /// Handlers that pass their second step.
    passing: usize,
    /// Handlers that must be held in it.
    held: usize,
}

impl Part {
    // Until so many handlers of the worker are inside their second step.
    async fn wait(&self, places: &Places, worker: &mut Process, suite: &mut Suite) -> anyhow::Result<()> {
        let until = SystemClock.boot_ms() + PATIENCE_MS;
        let held = held_by(self.worker);
        loop {
            let runs = ledger::runs(&places.ledger)?;
            let held = runs.keys().filter(|(_, what)| *what == held).count();
            if held >= self.held {
                return Ok(());
            }
            worker.is_running()?;
            suite.is_running()?;
            let (name, wanted) = (self.worker, self.held);
            ensure!(
                SystemClock.boot_ms() < until,
                "only {held} of {wanted} handlers of {name} are inside step 2 after {PATIENCE_MS} ms"
            );
            SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_MS).await;
        }
    }
}

async fn wait_for_all(
    client: &Client,
    mut open: Vec<TaskId>,
    workers: &mut [Process],
    suite: &mut Suite,
) -> anyhow::Result<()> {
    // Drawn on a terminal only; indicatif sees to that.
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} tasks {elapsed}");
    let bar = ProgressBar::new(open.len() as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let all = open.len();
    let mut until = SystemClock.boot_ms() + PATIENCE_MS;
    while !open.is_empty() {
        let before = open.len();
        open = still_open(client, open).await;
        bar.set_position((all - open.len()) as u64);
        if open.len() < before {
            until = SystemClock.boot_ms() + PATIENCE_MS;
        }
        workers.iter_mut().try_for_each(Process::is_running)?;
        suite.is_running()?;
        ensure!(SystemClock.boot_ms() < until, "{} tasks are open, none was closed in {PATIENCE_MS} ms", open.len());
        SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_MS).await;
    }
    bar.finish_and_clear();
    Ok(())
}

// The server stays up, so that people can look around.
async fn stay(signals: &mut Signals, args: &DemoArgs, tasks: &BTreeMap<TaskId, String>) -> anyhow::Result<()> {
    let suite = Suite::start(args, &Places::below(&args.work)).await?;
    let mut say = std::io::stdout();
    let url = suite.urls().into_iter().next().context("somebody answers")?;
    writeln!(say, "\nserver is up at {url}; look around, end with Ctrl-C:")?;
    if let Some(task) = tasks.keys().next() {
        for what in ["show", "events", "why", "result"] {
            writeln!(say, "  dualtrack task {what} {task} --url {url}")?;
        }
    }
    signals.received().await;
    suite.stop().await
}
