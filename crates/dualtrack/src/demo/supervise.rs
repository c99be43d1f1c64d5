//! The demo's plot: a server and two workers as processes, one worker and then the server killed
//! while handlers are at work, both started again; in the end the log, the rows, the outputs and the
//! handlers' ledger are held against each other.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use dualtrack::signals::Signals;
use indicatif::{ProgressBar, ProgressStyle};
use rest_client::Client;
use service_kit::{Clock as _, SystemClock};
use task_events::TaskId;

use super::create::{create_all, still_open};
use super::files::{Places, empty, list};
use super::gate::held_by;
use super::process::{Process, Server, until_stopped};
use super::{DemoArgs, account, ledger, report, settings, worker};

/// Pause between two looks, ms.
const LOOK_MS: u64 = 50;
/// Longest time until enough handlers are held, or until some task is closed, ms.
const PATIENCE_MS: u64 = 120_000;

/// Runs the demo; an error if anything is missing or wrong, or a signal breaks it off.
pub async fn supervise(args: &DemoArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let (listen, tasks) = until_stopped(&mut signals, play(args)).await?;
    if args.exit { Ok(()) } else { stay(&mut signals, &Places::below(&args.work), &listen, &tasks).await }
}

// Where the server was, and what became tasks.
async fn play(args: &DemoArgs) -> anyhow::Result<(String, BTreeMap<TaskId, String>)> {
    let places = Places::below(&args.work);
    empty(&args.work)?;
    let mut inputs = list(&args.dir, &args.work)?;
    inputs.truncate(args.limit.unwrap_or(usize::MAX));
    ensure!(!inputs.is_empty(), "{} holds no files: give --dir a folder with some", args.dir.display());
    settings::write(args, &places)?;
    let mut say = std::io::stdout();
    let (count, dir) = (inputs.len(), args.dir.display());
    writeln!(say, "{count} files below {dir}: one task each, three steps (hash, count, compress)")?;

    let server = Server::start(&places.settings, "127.0.0.1:0").await?;
    let url = server.url.clone();
    let listen = url.trim_start_matches("http://").to_owned();
    writeln!(say, "server is up at {url}")?;
    let client = Client::new(&url)?;
    let tasks = create_all(&client, &args.dir, &inputs).await?;
    writeln!(say, "{} tasks created over HTTP", tasks.len())?;

    // A third passes the first worker, then half of what is left the second.
    let first = Part { worker: "worker-1", passing: count / 3, held: (count - count / 3).min(worker::SLOTS as usize) };
    let left = count - first.passing;
    let second = Part { worker: "worker-2", passing: left / 2, held: (left - left / 2).min(worker::SLOTS as usize) };
    let mut worker_1 = start_worker(args, &url, first.worker, Some(first.passing))?;
    let mut server = server;
    first.wait(&places, &mut worker_1, &mut server).await?;
    worker_1.kill()?;
    writeln!(say, "worker-1 killed by SIGKILL, {} of its handlers were inside step 2", first.held)?;

    let mut worker_2 = start_worker(args, &url, second.worker, Some(second.passing))?;
    second.wait(&places, &mut worker_2, &mut server).await?;
    server.kill()?;
    writeln!(say, "server killed by SIGKILL, {} handlers of worker-2 were inside step 2", second.held)?;
    let mut server = Server::start(&places.settings, &listen).await?;
    std::fs::write(&places.go, "go on\n").with_context(|| format!("cannot write {}", places.go.display()))?;
    let mut worker_1 = start_worker(args, &url, "worker-1", None)?;
    writeln!(say, "server and worker-1 started again; what was broken off is resumed")?;

    let open: Vec<TaskId> = tasks.keys().copied().collect();
    wait_for_all(&client, open, [&mut worker_1, &mut worker_2], &mut server).await?;
    worker_1.stop().await?;
    worker_2.stop().await?;
    server.stop().await?;

    let account = account::read(args, &places, &tasks).await?;
    report::report(args, &places, &inputs, &account).await?;
    Ok((listen, tasks))
}

fn start_worker(args: &DemoArgs, url: &str, name: &str, passing: Option<usize>) -> anyhow::Result<Process> {
    let passing = passing.map(|n| n.to_string());
    let mut arguments: Vec<&OsStr> = vec!["demo".as_ref(), "--worker".as_ref(), name.as_ref()];
    arguments.extend::<[&OsStr; 6]>([
        "--url".as_ref(),
        url.as_ref(),
        "--dir".as_ref(),
        args.dir.as_os_str(),
        "--work".as_ref(),
        args.work.as_os_str(),
    ]);
    if let Some(passing) = &passing {
        arguments.extend::<[&OsStr; 2]>(["--hold-after".as_ref(), passing.as_ref()]);
    }
    Process::start(name, &arguments, (Stdio::inherit(), Stdio::inherit()))
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
    async fn wait(&self, places: &Places, worker: &mut Process, server: &mut Server) -> anyhow::Result<()> {
        let until = SystemClock.boot_ms() + PATIENCE_MS;
        let held = held_by(self.worker);
        loop {
            let runs = ledger::runs(&places.ledger)?;
            let held = runs.keys().filter(|(_, what)| *what == held).count();
            if held >= self.held {
                return Ok(());
            }
            worker.is_running()?;
            server.is_running()?;
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
    workers: [&mut Process; 2],
    server: &mut Server,
) -> anyhow::Result<()> {
    let [one, other] = workers;
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
        for process in [&mut *one, &mut *other] {
            process.is_running()?;
        }
        server.is_running()?;
        ensure!(SystemClock.boot_ms() < until, "{} tasks are open, none was closed in {PATIENCE_MS} ms", open.len());
        SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_MS).await;
    }
    bar.finish_and_clear();
    Ok(())
}

// The server stays up, so that people can look around.
async fn stay(
    signals: &mut Signals,
    places: &Places,
    listen: &str,
    tasks: &BTreeMap<TaskId, String>,
) -> anyhow::Result<()> {
    let server = Server::start(&places.settings, listen).await?;
    let mut say = std::io::stdout();
    writeln!(say, "\nserver is up at {}; look around, end with Ctrl-C:", server.url)?;
    if let Some(task) = tasks.keys().next() {
        for what in ["show", "events", "why", "result"] {
            writeln!(say, "  dualtrack task {what} {task} --url {}", server.url)?;
        }
    }
    signals.received().await;
    server.stop().await
}
