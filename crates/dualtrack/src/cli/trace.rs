//! `dualtrack trace show`, `dualtrack review list`: tasks found by what they have in common.

use clap::{Args, Subcommand};
use rest_client::contract::FoundView;

use super::failure::note;
use super::list::{self, Filter};
use super::listing::{Column, Listing, Shown};
use super::screen::Screen;
use super::show::colour;
use super::times::shown;
use super::{Common, Failure};

/// Arguments of `dualtrack trace`.
#[derive(Clone, Debug, Args)]
#[command(after_help = super::EXIT_CODES)]
pub struct TraceArgs {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum TraceCommand {
    /// Tasks of a trace, the oldest first
    #[command(after_help = "Example:\n  dualtrack trace show 0af7651916cd43dd8448eb211c80319c")]
    Show {
        /// Trace, 32 hexadecimal digits
        trace: String,
    },
}

/// Runs it.
pub async fn run(args: TraceArgs) -> Result<(), Failure> {
    let TraceArgs { common, command: TraceCommand::Show { trace } } = args;
    let view = common.client()?.trace(&trace).await.map_err(|error| Failure::call(error, ""))?;
    if !view.unanswered.is_empty() {
        let all: Vec<_> = view.unanswered.iter().map(ToString::to_string).collect();
        note(&format!("these partitions did not answer, so their newest tasks may be missing: {}", all.join(", ")));
    }
    if view.truncated {
        note("there are more: these are the newest");
    }
    common.print(&view, found)
}

fn found(view: &FoundView, screen: &Screen) -> String {
    if view.tasks.is_empty() {
        return "no tasks".to_owned();
    }
    let mut list = Listing::new(&[
        Column::new("task", 0),
        Column::new("status", 0),
        Column::text("type", 1, 8),
        Column::new("created", 2),
        Column::new("ended", 4),
        Column::text("worker", 5, 8),
        Column::text("error", 3, 12),
    ]);
    for task in &view.tasks {
        let error = task.error.as_ref().map(|error| format!("{}: {}", error.code, error.message));
        list.row([
            task.task_id.to_string().into(),
            Shown::coloured(task.status.as_str(), colour(task.status)),
            task.task_type.as_str().into(),
            shown(task.created_at).into(),
            task.end_time.map(shown).unwrap_or_default().into(),
            task.worker_id.as_deref().unwrap_or_default().into(),
            error.unwrap_or_default().into(),
        ]);
    }
    list.show(screen)
}

/// Arguments of `dualtrack review`.
#[derive(Clone, Debug, Args)]
#[command(after_help = super::EXIT_CODES)]
pub struct ReviewArgs {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: ReviewCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum ReviewCommand {
    /// Tasks that failed for good and that nobody has decided about
    #[command(
        after_help = "Example:\n  dualtrack review list --code TIMEOUT_DEADLINE\n\nDecide with dualtrack task review, or task replay."
    )]
    List(Box<Filter>),
}

/// Runs it.
pub async fn review(args: ReviewArgs) -> Result<(), Failure> {
    let ReviewArgs { common, command: ReviewCommand::List(filter) } = args;
    list::review(*filter, &common).await
}
