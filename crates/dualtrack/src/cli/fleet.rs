//! `dualtrack worker list|show|drain|release` and `dualtrack queue list|pause|resume`: what operators
//! see and do.

use clap::{Args, Subcommand};
use comfy_table::Color;
use rest_client::contract::{
    ControlRequest, DrainView, PartitionAnswers, QueuesView, Retry, WorkerDetail, WorkerView, WorkersView,
};
use task_events::Text;

use super::failure::{complain, note};
use super::listing::{Column, Listing, Shown};
use super::screen::{Screen, plain};
use super::show::colour;
use super::times::shown;
use super::{Common, Failure};

/// What is done to a worker, or a queue, and why.
#[derive(Clone, Debug, Args)]
pub struct Control {
    /// Its name
    name: String,
    /// Why, for the record
    #[arg(long, default_value = "")]
    reason: Text,
}

impl Control {
    fn request(&self) -> ControlRequest {
        ControlRequest { actor: None, reason: self.reason.clone() }
    }
}

/// About workers.
#[derive(Clone, Debug, Subcommand)]
pub enum FleetCommand {
    /// Workers that polled lately or hold attempts
    #[command(after_help = "Example:\n  dualtrack worker list")]
    List,
    /// A worker and its attempts
    #[command(after_help = "Example:\n  dualtrack worker show packer-7")]
    Show {
        /// Its name
        name: String,
    },
    /// Let a worker finish what it holds and give it nothing more
    #[command(after_help = "Example:\n  dualtrack worker drain packer-7 --reason \"new disk\"")]
    Drain(Control),
    /// Give a worker work again: ends its quarantine, and a drain it has not heard of
    #[command(after_help = "Example:\n  dualtrack worker release packer-7")]
    Release(Control),
}

/// Runs it.
pub async fn run(command: FleetCommand, common: &Common) -> Result<(), Failure> {
    let client = common.client()?;
    let read = |error| Failure::call(error, "");
    match command {
        FleetCommand::List => {
            let view = client.workers().await.map_err(read)?;
            missing(&view.unanswered, &view.unanswered_instances);
            common.print(&view, workers)
        }
        FleetCommand::Show { name } => {
            let view = client.worker(&name).await.map_err(read)?;
            missing(&view.unanswered, &view.unanswered_instances);
            common.print(&view, worker)
        }
        FleetCommand::Drain(control) => {
            let name = &control.name;
            let ask = format!("look with `dualtrack worker show {name}`; asking again does no harm");
            let answer = client.drain(name, &control.request()).await;
            let view = answer.map_err(|error| Failure::call(error, ask))?;
            missing(&[], &view.unanswered_instances);
            common.print(&view, drained)
        }
        FleetCommand::Release(control) => {
            let name = &control.name;
            let answer = client.release(name, &control.request()).await;
            let answers = answer.map_err(|error| Failure::call(error, "asking again does no harm"))?;
            everywhere(&answers, common, &format!("{name}: released"))
        }
    }
}

/// Arguments of `dualtrack queue`.
#[derive(Clone, Debug, Args)]
#[command(after_help = super::EXIT_CODES)]
pub struct QueueArgs {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: QueueCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum QueueCommand {
    /// Queues and what waits in them
    #[command(after_help = "Example:\n  dualtrack queue list")]
    List,
    /// Hand out nothing of a queue until it is resumed
    #[command(after_help = "Example:\n  dualtrack queue pause payments --reason \"bank is down\"")]
    Pause(Control),
    /// Hand out a queue's tasks again
    #[command(after_help = "Example:\n  dualtrack queue resume payments")]
    Resume(Control),
}

/// Runs it.
pub async fn queue(args: QueueArgs) -> Result<(), Failure> {
    let QueueArgs { common, command } = args;
    let client = common.client()?;
    let ask = "look with `dualtrack queue list`; asking again does no harm";
    match command {
        QueueCommand::List => {
            let view = client.queues().await.map_err(|error| Failure::call(error, ""))?;
            missing(&view.unanswered, &[]);
            common.print(&view, queues)
        }
        QueueCommand::Pause(control) => {
            let answers = client.pause(&control.name, &control.request()).await;
            let answers = answers.map_err(|error| Failure::call(error, ask))?;
            everywhere(&answers, &common, &format!("{}: paused", control.name))
        }
        QueueCommand::Resume(control) => {
            let answers = client.resume(&control.name, &control.request()).await;
            let answers = answers.map_err(|error| Failure::call(error, ask))?;
            everywhere(&answers, &common, &format!("{}: resumed", control.name))
        }
    }
}

pub(super) fn missing(partitions: &[u16], instances: &[Text]) {
    let list = |all: Vec<String>| all.join(", ");
    if !partitions.is_empty() {
        let all = list(partitions.iter().map(ToString::to_string).collect());
        note(&format!("these partitions did not answer, so what they hold is missing: {all}"));
    }
    if !instances.is_empty() {
        let all = list(instances.iter().map(|name| plain(name)).collect());
        note(&format!("these instances did not answer, so what they know is missing: {all}"));
    }
}

// What goes to every partition is done when all did it.
pub(super) fn everywhere(answers: &PartitionAnswers, common: &Common, done: &str) -> Result<(), Failure> {
    common.print(answers, |answers, _| {
        let (all, did) = (answers.partitions.len(), answers.partitions.iter().filter(|a| a.problem.is_none()).count());
        if did == all { plain(done) } else { format!("{} in {did} of {all} partitions", plain(done)) }
    })?;
    let mut unknown = false;
    for answer in &answers.partitions {
        if let Some(problem) = &answer.problem {
            complain(&format!("partition {}: {}", answer.partition, plain(&problem.to_string())));
            unknown |= problem.code.retry() == Retry::AskFirst;
        }
    }
    if answers.is_done() {
        return Ok(());
    }
    note("  run the same again: where it is done it does no harm");
    Err(Failure::Said(if unknown { 5 } else { 4 }))
}

fn workers(view: &WorkersView, screen: &Screen) -> String {
    if view.workers.is_empty() {
        return "no workers: start one with `dualtrack worker exec`".to_owned();
    }
    let mut list = Listing::new(&WORKER);
    view.workers.iter().for_each(|worker| list.row(worker_row(worker)));
    list.show(screen)
}

const WORKER: [Column; 8] = [
    Column::text("worker", 0, 12),
    Column::new("state", 0),
    Column::number("running", 1),
    Column::number("free", 2),
    Column::text("queues", 3, 10),
    Column::text("version", 6, 4),
    Column::new("last poll", 4),
    Column::text("instance", 5, 8),
];

fn worker_row(worker: &WorkerView) -> [Shown; 8] {
    let queues: Vec<_> = worker.queues.iter().map(Text::as_str).collect();
    [
        worker.worker_id.as_str().into(),
        match (worker.draining, worker.last_poll_at) {
            (true, _) => Shown::coloured("draining", Color::Yellow),
            (false, Some(_)) => Shown::coloured("polls", Color::Green),
            (false, None) => Shown::coloured("silent", Color::Red),
        },
        worker.running.to_string().into(),
        worker.free_slots.to_string().into(),
        queues.join(",").into(),
        worker.handler_version.as_deref().unwrap_or_default().into(),
        worker.last_poll_at.map(shown).unwrap_or_default().into(),
        worker.instance.as_deref().unwrap_or_default().into(),
    ]
}

fn worker(view: &WorkerDetail, screen: &Screen) -> String {
    let mut list = Listing::new(&WORKER);
    list.row(worker_row(&view.worker));
    let head = list.show(screen);
    if view.attempts.is_empty() {
        return format!("{head}\n\nno attempts");
    }
    let mut list = Listing::new(&[
        Column::new("task", 0),
        Column::new("status", 1),
        Column::text("type", 2, 8),
        Column::number("attempt", 3),
        Column::new("assigned", 4),
    ]);
    for attempt in &view.attempts {
        list.row([
            attempt.task_id.to_string().into(),
            Shown::coloured(attempt.status.as_str(), colour(attempt.status)),
            attempt.task_type.as_str().into(),
            attempt.exec_epoch.to_string().into(),
            shown(attempt.assigned_at).into(),
        ]);
    }
    format!("{head}\n\n{}", list.show(screen))
}

fn drained(view: &DrainView, _: &Screen) -> String {
    format!("{}: it finishes what it holds and gets nothing more", plain(&view.worker_id))
}

fn queues(view: &QueuesView, screen: &Screen) -> String {
    if view.queues.is_empty() {
        return "no queues: nothing is open, and nobody polls".to_owned();
    }
    let mut list = Listing::new(&[
        Column::text("queue", 0, 12),
        Column::new("state", 0),
        Column::number("ready", 1),
        Column::number("running", 2),
        Column::number("open", 3),
        Column::new("last asked for", 4),
    ]);
    for queue in &view.queues {
        let state = match (queue.paused, queue.paused_partitions.len(), queue.polled_ms_ago) {
            (true, ..) => Shown::coloured("paused", Color::Red),
            (false, 1.., _) => Shown::coloured("paused in part", Color::Red),
            (false, 0, None) => Shown::coloured("no worker", Color::Yellow),
            (false, 0, Some(_)) => Shown::coloured("open", Color::Green),
        };
        list.row([
            queue.queue.as_str().into(),
            state,
            queue.ready.to_string().into(),
            queue.running.to_string().into(),
            queue.open.to_string().into(),
            queue.polled_ms_ago.map_or_else(|| "never".to_owned(), |ms| format!("{} s ago", ms / 1000)).into(),
        ]);
    }
    list.show(screen)
}

#[cfg(test)]
#[path = "fleet/tests.rs"]
pub(super) mod tests;
