//! `dualtrack task …`: one subcommand per endpoint.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::{Args, Subcommand, ValueEnum};
use rest_client::contract::{CancelRequest, ReplayRequest, ResultView, ReviewRequest};
use task_events::{ReplayFrom, ReviewOutcome, TaskId, Text};

use super::create::{CreateArgs, ended, judge};
use super::list::{self, ListArgs};
use super::times::duration_ms;
use super::{Common, Failure, Output, create, history, say_bytes, show, watch};

/// Arguments of `dualtrack task`.
#[derive(Clone, Debug, Args)]
#[command(after_help = super::EXIT_CODES)]
pub struct TaskArgs {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: TaskCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum TaskCommand {
    /// Create a task, or with --from one for each line of a file
    #[command(after_help = super::import::HELP)]
    Create(Box<CreateArgs>),
    /// List tasks, the newest first
    #[command(
        after_help = "Examples:\n  dualtrack task list --state FAILED,LOST --from -1h\n  dualtrack task list --label country=cn --all --output json | jq -r .task_id"
    )]
    List(Box<ListArgs>),
    /// Show a task
    #[command(after_help = "Example:\n  dualtrack task show 380345723523694592 --wait 30s")]
    Show {
        /// Task
        task: TaskId,
        /// Wait until it ends, or for so long; then the exit code tells how it ended
        #[arg(long, value_name = "DURATION", num_args = 0..=1, value_parser = duration_ms)]
        #[expect(clippy::option_option, reason = "clap's form of an option whose value may be left out")]
        wait: Option<Option<u64>>,
    },
    /// Every record of a task, with the verdict on each
    #[command(after_help = "Example:\n  dualtrack task events 380345723523694592")]
    Events {
        /// Task
        task: TaskId,
    },
    /// Show a task's records as they come until it ends; the exit code tells how
    #[command(after_help = "Example:\n  dualtrack task watch 380345723523694592 && echo well")]
    Watch {
        /// Task
        task: TaskId,
        /// Watch no longer than this
        #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration_ms)]
        wait: Option<u64>,
    },
    /// What a task waits for
    #[command(after_help = "Example:\n  dualtrack task why 380345723523694592")]
    Why {
        /// Task
        task: TaskId,
    },
    /// The result of a task, byte for byte
    #[command(after_help = "Example:\n  dualtrack task result 380345723523694592 | jq .")]
    Result {
        /// Task
        task: TaskId,
    },
    /// Ask for a task to be cancelled
    #[command(after_help = "Example:\n  dualtrack task cancel 380345723523694592 --reason \"ordered twice\"")]
    Cancel {
        /// Task
        task: TaskId,
        /// Why, for the record
        #[arg(long, default_value = "")]
        reason: Text,
    },
    /// Open a closed task again
    #[command(
        after_help = "Example:\n  dualtrack task replay 380345723523694592 --from step --step charge --reason \"bank is back\""
    )]
    Replay {
        /// Task
        task: TaskId,
        /// Run that is replayed [default: the last one]
        #[arg(long, allow_negative_numbers = true)]
        run: Option<u32>,
        /// Where to resume
        #[arg(long, value_enum, default_value = "failure")]
        from: From,
        /// Step to resume at, with --from step
        #[arg(long, required_if_eq("from", "step"))]
        step: Option<Text>,
        /// Why, for the record
        #[arg(long, default_value = "")]
        reason: Text,
    },
    /// Decide about a task that failed for good, so that it leaves `review list`
    #[command(
        after_help = "Example:\n  dualtrack task review 380345723523694592 --outcome abandoned --note \"customer is gone\""
    )]
    Review {
        /// Task
        task: TaskId,
        /// Run that was looked at [default: the last one]
        #[arg(long, allow_negative_numbers = true)]
        run: Option<u32>,
        /// What was decided
        #[arg(long, value_enum)]
        outcome: Decision,
        /// The decision that stands, to take it back
        #[arg(long, value_enum, value_name = "OUTCOME")]
        instead_of: Option<Decision>,
        /// Why, for the record
        #[arg(long, default_value = "")]
        note: Text,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Decision {
    /// It is well as it is.
    Accepted,
    /// It is given up.
    Abandoned,
}

impl Decision {
    const fn outcome(self) -> ReviewOutcome {
        match self {
            Self::Accepted => ReviewOutcome::Accepted,
            Self::Abandoned => ReviewOutcome::Abandoned,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// Where it failed.
    Failure,
    /// From the start, whatever was done before.
    Start,
    /// At a step.
    Step,
}

/// Runs it.
pub async fn run(args: TaskArgs) -> Result<(), Failure> {
    let TaskArgs { common, command } = args;
    let read = |error| Failure::call(error, "");
    match command {
        TaskCommand::Create(args) => create::run(*args, &common).await,
        TaskCommand::List(args) => list::tasks(*args, &common).await,
        TaskCommand::Watch { task, wait } => watch::run(task, wait, &common).await,
        TaskCommand::Show { task, wait: None } => {
            common.print(&common.client()?.get(task, None).await.map_err(read)?, show::task)
        }
        TaskCommand::Show { task, wait: Some(wait) } => {
            let view = ended(&common.client()?, task, wait).await?;
            common.print(&view, show::task)?;
            judge(&view)
        }
        TaskCommand::Events { task } => {
            common.print(&common.client()?.events(task).await.map_err(read)?, history::history)
        }
        TaskCommand::Why { task } => common.print(&common.client()?.why(task).await.map_err(read)?, show::why),
        TaskCommand::Result { task } => result(&common.client()?.result(task).await.map_err(read)?, &common),
        TaskCommand::Cancel { task, reason } => {
            let request = CancelRequest { actor: None, reason };
            let ask = format!("look with `dualtrack task show {task}`; asking again does no harm");
            let accepted = common.client()?.cancel(task, &request).await;
            let accepted = accepted.map_err(|error| Failure::call(error, ask))?;
            common.print(&accepted, |accepted, _| format!("{}: the cancel request is on record", accepted.task_id))
        }
        TaskCommand::Review { task, run, outcome, instead_of, note } => {
            let client = common.client()?;
            let run_no = match run {
                Some(run) => run,
                None => client.get(task, None).await.map_err(read)?.run_no,
            };
            let (outcome, instead_of) = (outcome.outcome(), instead_of.map(Decision::outcome));
            let request = ReviewRequest { run_no, outcome, instead_of, actor: None, note };
            let ask = format!("look with `dualtrack task events {task}`");
            let reviewed = client.decide(task, &request).await.map_err(|error| Failure::call(error, ask))?;
            common.print(&reviewed, |reviewed, _| format!("{}: the decision is on record", reviewed.task_id))
        }
        TaskCommand::Replay { task, run, from, step, reason } => {
            let client = common.client()?;
            let run_no = match run {
                Some(run) => run,
                None => client.get(task, None).await.map_err(read)?.run_no,
            };
            let from = match from {
                From::Failure => ReplayFrom::Failure,
                From::Start => ReplayFrom::Start,
                From::Step => ReplayFrom::Step,
            };
            let request = ReplayRequest { run_no, from, from_step: step, actor: None, reason };
            let ask = format!("look with `dualtrack task show {task}`: a run above {run_no} is the new one");
            let replayed = client.replay(task, &request).await.map_err(|error| Failure::call(error, ask))?;
            common.print(&replayed, |replayed, _| format!("{}: run {} is open", replayed.task_id, replayed.run_no))
        }
    }
}

// The bytes as the handler returned them, for a pipe; a line's end goes with JSON alone.
fn result(view: &ResultView, common: &Common) -> Result<(), Failure> {
    match (common.output, &view.result, &view.result_base64) {
        (Output::Table, None, Some(base64)) => {
            let bytes = BASE64_STANDARD.decode(base64);
            say_bytes(&bytes.map_err(|why| Failure::Local(format!("the server's Base64 cannot be read: {why}")))?)
        }
        (Output::Table | Output::Json, ..) => {
            common.print(view, |view, _| view.result.as_ref().map(|json| json.get().to_owned()).unwrap_or_default())
        }
    }
}
