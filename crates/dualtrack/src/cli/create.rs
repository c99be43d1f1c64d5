//! `dualtrack task create`.

use std::io::Read as _;
use std::time::Duration;

use clap::Args;
use rest_client::contract::{CreateRequest, Created, Retry, TaskView, TimeoutsBody};
use rest_client::{Client, ClientError};
use serde_json::value::RawValue;
use service_kit::{Clock as _, SystemClock};
use task_events::{TaskId, TaskState, Text};

use super::failure::note;
use super::import::{self, ImportArgs};
use super::list::label;
use super::times::{Moment, duration_ms};
use super::{Common, Failure, Output, say, show};

/// Longest single wait of the server, ms.
const SLICE_MS: u64 = 30_000;

/// Failures in a row, a pause apart, before a wait is given up.
const TRIES: u32 = 20;

/// Pause after a failure, ms.
const PAUSE_MS: u64 = 500;

/// Arguments of `task create`.
#[derive(Clone, Debug, Args)]
pub struct CreateArgs {
    /// Handler that runs it
    #[arg(long = "type", value_name = "TYPE", required_unless_present = "from")]
    task_type: Option<Text>,
    /// Parameters: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", default_value = "{}", allow_hyphen_values = true)]
    payload: String,
    /// Idempotency key: sending the same again yields the same task
    #[arg(long, conflicts_with = "from")]
    key: Option<String>,
    /// Queue it waits in [default: the type]
    #[arg(long)]
    queue: Option<Text>,
    /// 0 to 9, 9 first [default: 4]
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u8).range(0..=9))]
    priority: Option<u8>,
    /// Approved retries after failures [default: 3]
    #[arg(long, allow_negative_numbers = true)]
    max_retries: Option<u32>,
    /// When it fails for good: +DURATION (+30s, +2h), Unix ms, or 2026-11-30T08:00:00Z
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = Moment::parse)]
    deadline: Option<Moment>,
    /// Before which it is not handed out: as --deadline
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = Moment::parse)]
    not_before: Option<Moment>,
    /// Longest life of one attempt [default: 1h]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration_ms)]
    start_to_close: Option<u64>,
    /// Order number or the like
    #[arg(long)]
    business_key: Option<Text>,
    /// For search; more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(Text, Text)>,
    /// Tasks with equal keys run one at a time
    #[arg(long)]
    concurrency_key: Option<Text>,
    /// Client it is created for [default: default]
    #[arg(long)]
    creator: Option<Text>,
    /// Wait until it ends, or for so long
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = false, value_parser = duration_ms, conflicts_with = "from")]
    #[expect(clippy::option_option, reason = "clap's form of an option whose value may be left out")]
    wait: Option<Option<u64>>,
    #[command(flatten)]
    import: ImportArgs,
}

/// Creates a task, and waits for its end if that was asked for.
pub async fn run(args: CreateArgs, common: &Common) -> Result<(), Failure> {
    if let Some(from) = args.import.from.clone() {
        let CreateArgs { import, .. } = &args;
        let import = import.clone();
        return import::run(&from, import, defaults(args)?, common).await;
    }
    let client = common.client()?;
    let (key, wait) = (args.key.clone(), args.wait);
    let ask = match &key {
        Some(_) => "send the same again with the same --key: at most one task comes of it",
        None => "it may have been created: with a --key it could be sent again without creating a second task",
    };
    let created = client.create(&request(args)?, key.as_deref()).await.map_err(|error| Failure::call(error, ask))?;
    let Some(wait) = wait else { return common.print(&created, |created, _| text(created)) };
    if common.output == Output::Table {
        say(&text(&created))?;
    }
    let view = ended(&client, created.task_id, wait).await?;
    common.print(&view, show::task)?;
    if common.output == Output::Table && view.status == TaskState::Success {
        note(&format!("`dualtrack task result {}` prints its result", view.task_id));
    }
    judge(&view)
}

fn text(created: &Created) -> String {
    let note = if created.duplicate { " (it was there before: same key)" } else { "" };
    format!("{}{note}", created.task_id)
}

// What every line of a file has unless it says otherwise. A moment that is counted from now would be
// another one at each repetition, and the line another request under the same key.
fn defaults(args: CreateArgs) -> Result<CreateRequest, Failure> {
    for (flag, moment) in [("--deadline", args.deadline), ("--not-before", args.not_before)] {
        if let Some(Moment::In(_) | Moment::Ago(_)) = moment {
            let text = "with --from give a moment that stays the same when the file is sent again, such as";
            return Err(Failure::Usage(format!("{flag} counts from now: {text} 2026-11-30T08:00:00Z or Unix ms")));
        }
    }
    if args.payload == "-" {
        return Err(Failure::Usage("--payload - and --from cannot be used together: name a file with @".to_owned()));
    }
    request(args)
}

fn request(args: CreateArgs) -> Result<CreateRequest, Failure> {
    let now = SystemClock.wall_ms();
    let payload = payload(&args.payload)?;
    let timeouts =
        args.start_to_close.map(|ms| TimeoutsBody { start_to_close_ms: Some(ms), schedule_to_start_ms: None });
    Ok(CreateRequest {
        task_type: args.task_type.unwrap_or_default(),
        payload: Some(payload),
        queue: args.queue,
        creator: args.creator,
        priority: args.priority,
        not_before: args.not_before.map(|moment| moment.unix_ms(now)),
        deadline: args.deadline.map(|moment| moment.unix_ms(now)),
        timeouts,
        max_retries: args.max_retries,
        business_key: args.business_key,
        labels: args.labels.into_iter().collect(),
        concurrency_key: args.concurrency_key,
        ..CreateRequest::default()
    })
}

fn payload(source: &str) -> Result<Box<RawValue>, Failure> {
    let unreadable = |why: std::io::Error| Failure::Usage(format!("--payload {source}: {why}"));
    let bytes = match source.strip_prefix('@') {
        Some(path) => std::fs::read(path).map_err(unreadable)?,
        None if source == "-" => {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes).map_err(unreadable)?;
            bytes
        }
        None => source.as_bytes().to_vec(),
    };
    // The bytes between the first and the last are kept as they are, digit by digit.
    serde_json::from_slice(&bytes).map_err(|why| {
        let is_word = source.starts_with(char::is_alphabetic);
        let quotes =
            if is_word { format!("; a text has quotes in JSON: --payload '\"{source}\"'") } else { String::new() };
        Failure::Usage(format!("--payload is no JSON text: {why}{quotes}"))
    })
}

/// The task once it has ended, or as it is after the wait.
pub async fn ended(client: &Client, task: TaskId, wait_ms: Option<u64>) -> Result<TaskView, Failure> {
    let until = wait_ms.map(|ms| SystemClock.boot_ms().saturating_add(ms));
    let mut failures = 0;
    loop {
        let left = until.map_or(SLICE_MS, |until| until.saturating_sub(SystemClock.boot_ms()));
        match client.get(task, Some(Duration::from_millis(left.min(SLICE_MS)))).await {
            Ok(view) if view.status.is_terminal() || left == 0 => return Ok(view),
            Ok(_) => failures = 0,
            Err(error) => {
                failures += 1;
                if failures == TRIES || error.retry() != Retry::Later || left == 0 {
                    return Err(lost_sight(error, task));
                }
                SystemClock.sleep_until(SystemClock.boot_ms().saturating_add(PAUSE_MS)).await;
            }
        }
    }
}

fn lost_sight(error: ClientError, task: TaskId) -> Failure {
    Failure::call(error, format!("the task goes on without you: look with `dualtrack task show {task}`"))
}

/// Whether the task ended well, as an exit code.
pub fn judge(view: &TaskView) -> Result<(), Failure> {
    match view.status {
        TaskState::Success => Ok(()),
        TaskState::FailedPermanently | TaskState::Cancelled => Err(Failure::Negative(format!(
            "the task ended in {}: `dualtrack task events {}` tells how",
            view.status.as_str(),
            view.task_id
        ))),
        TaskState::Created
        | TaskState::Assigned
        | TaskState::Executing
        | TaskState::Failed
        | TaskState::Lost
        | TaskState::RetryApproved
        | TaskState::ReplayPlanned
        | TaskState::Retrying => Err(Failure::NotYet(format!(
            "the task is {} and has not ended: `dualtrack task why {}` tells what it waits for",
            view.status.as_str(),
            view.task_id
        ))),
    }
}
