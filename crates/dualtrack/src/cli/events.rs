//! `dualtrack events tail`: the log as it grows, one line a record. A connection that breaks while it
//! follows is opened again behind the last record that was shown.

use std::pin::pin;

use clap::{Args, Subcommand};
use comfy_table::Color;
use futures::StreamExt as _;
use rest_client::contract::{Retry, StreamFrom, StreamMessage, StreamQuery, StreamRecord};
use rest_client::{Client, ClientError};
use serde_json::Value;
use service_kit::{Clock as _, SystemClock};
use task_events::{Kind, TaskId, Text};

use super::failure::note;
use super::history::summary;
use super::listing::cut;
use super::screen::{Screen, plain};
use super::times::{Moment, shown};
use super::{Common, Failure, Output, print_line, unwritten};

/// Without `--follow`, and without a beginning, it begins so long ago, ms (10 min).
const LATELY_MS: u64 = 600_000;

/// First pause before a connection is opened again, ms; it doubles …
const FIRST_PAUSE_MS: u64 = 100;

/// … up to this.
const LONGEST_PAUSE_MS: u64 = 5_000;

/// Screens below this width get the time of day alone, and no offsets.
const NARROW: u16 = 100;

/// Arguments of `dualtrack events`.
#[derive(Clone, Debug, Args)]
#[command(after_help = super::EXIT_CODES)]
pub struct EventsArgs {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: EventsCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum EventsCommand {
    /// Show records of the log, and with --follow go on as they come
    #[command(after_help = HELP)]
    Tail(Box<TailArgs>),
}

const HELP: &str = "\
Examples:
  dualtrack events tail --follow --kind TaskFailed,TaskLost
  dualtrack events tail --from -1h --worker packer-7 --output json | jq -r .event.kind
  dualtrack events tail --partition 3 --offset 4711 --verdict | head

As JSON each line is a record with its cursor: --cursor goes on exactly behind it.";

#[derive(Clone, Debug, Args)]
struct TailArgs {
    /// Go on as records come, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Begin at: start, now, -DURATION (-1h), Unix ms, or 2026-11-30T08:00:00Z [default: now with --follow, else -10m]
    #[arg(long, value_name = "TIME", value_parser = From::parse, allow_hyphen_values = true, conflicts_with_all = ["offset", "cursor"])]
    from: Option<From>,
    /// Only this partition, with --offset
    #[arg(long, value_name = "N", requires = "offset", allow_negative_numbers = true)]
    partition: Option<u16>,
    /// Begin at this offset of --partition
    #[arg(long, value_name = "N", requires = "partition", allow_negative_numbers = true)]
    offset: Option<u64>,
    /// Begin behind a record seen before
    #[arg(long, conflicts_with = "offset")]
    cursor: Option<String>,
    /// Of these kinds, such as TaskFailed,TaskLost
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    kinds: Vec<Kind>,
    /// Of this task
    #[arg(long)]
    task: Option<TaskId>,
    /// Of this trace
    #[arg(long)]
    trace: Option<Text>,
    /// That name this worker
    #[arg(long)]
    worker: Option<Text>,
    /// Rejected and quarantined records too, with the verdict on each
    #[arg(long)]
    verdict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Start,
    Now,
    Moment(Moment),
}

impl From {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "start" => Ok(Self::Start),
            "now" => Ok(Self::Now),
            text => Moment::parse(text).map(Self::Moment).map_err(|why| format!("{why}, start or now")),
        }
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    let known = Kind::ALL.iter().copied().find(|kind| kind.as_str().eq_ignore_ascii_case(text));
    known.ok_or_else(|| {
        let all: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("there is no such kind; there are {}", all.join(", "))
    })
}

/// Runs it.
pub async fn run(args: EventsArgs) -> Result<(), Failure> {
    let EventsArgs { common, command: EventsCommand::Tail(args) } = args;
    let from = match (args.from, args.partition.zip(args.offset), args.cursor) {
        (_, _, Some(cursor)) => StreamFrom::Cursor(cursor),
        (_, Some((partition, offset)), None) => StreamFrom::Offset { partition, offset },
        (Some(From::Start), None, None) => StreamFrom::Start,
        (Some(From::Now), None, None) => StreamFrom::Now,
        (Some(From::Moment(at)), None, None) => StreamFrom::Time(at.unix_ms(SystemClock.wall_ms())),
        (None, None, None) if args.follow => StreamFrom::Now,
        (None, None, None) => StreamFrom::Time(Moment::Ago(LATELY_MS).unix_ms(SystemClock.wall_ms())),
    };
    let query = StreamQuery {
        from,
        kinds: args.kinds,
        task: args.task,
        trace: args.trace,
        worker: args.worker,
        all_verdicts: args.verdict,
        until_now: !args.follow,
    };
    let mut tail = Tail { client: common.client()?, query, follow: args.follow, common, pause_ms: FIRST_PAUSE_MS };
    tail.run().await
}

struct Tail {
    client: Client,
    query: StreamQuery,
    follow: bool,
    common: Common,
    pause_ms: u64,
}

/// How a connection ended.
enum Ended {
    /// There is nothing more to read.
    Done,
    /// What it says cannot be written.
    Unwritten(std::io::Error),
    /// It may be opened again.
    Broken(ClientError),
}

impl Tail {
    async fn run(&mut self) -> Result<(), Failure> {
        let mut was_open = false;
        loop {
            let error = match self.once(&mut was_open).await {
                Ok(Ended::Done) => return Ok(()),
                Ok(Ended::Unwritten(why)) => return unwritten(why),
                Ok(Ended::Broken(error)) | Err(error) => error,
            };
            // What was never there is an error; what was there may come back.
            if !was_open || !self.follow || error.retry() == Retry::Never {
                return Err(Failure::call(error, ""));
            }
            note(&format!("dualtrack: {}; going on behind the last record", plain(&error.to_string())));
            SystemClock.sleep_until(SystemClock.boot_ms().saturating_add(self.pause_ms)).await;
            self.pause_ms = self.pause_ms.saturating_mul(2).min(LONGEST_PAUSE_MS);
        }
    }

    async fn once(&mut self, was_open: &mut bool) -> Result<Ended, ClientError> {
        let mut messages = pin!(self.client.events_stream(&self.query).await?);
        *was_open = true;
        loop {
            match messages.next().await {
                None | Some(Ok(StreamMessage::Reached { .. })) => return Ok(Ended::Done),
                Some(Err(error)) => return Ok(Ended::Broken(error)),
                Some(Ok(StreamMessage::End(problem))) => return Ok(Ended::Broken(ClientError::Problem(problem))),
                Some(Ok(StreamMessage::Record { cursor, record })) => {
                    if let Err(why) = self.show(&cursor, &record) {
                        return Ok(Ended::Unwritten(why));
                    }
                    self.query.from = StreamFrom::Cursor(cursor);
                    self.pause_ms = FIRST_PAUSE_MS;
                }
            }
        }
    }

    fn show(&self, cursor: &str, record: &StreamRecord) -> std::io::Result<()> {
        match self.common.output {
            Output::Table => print_line(&line(record, self.query.all_verdicts, &Screen::here())),
            Output::Json => {
                let mut json = serde_json::to_value(record)?;
                json["cursor"] = cursor.into();
                print_line(&json.to_string())
            }
        }
    }
}

/// A record in one line that fits the screen.
pub fn line(record: &StreamRecord, verdicts: bool, screen: &Screen) -> String {
    let field = |name: &str| record.event.as_ref().and_then(|event| event.get(name));
    let text = |name: &str| field(name).and_then(Value::as_str).unwrap_or_default();
    let time = shown(record.broker_time);
    let mut parts = Vec::new();
    if screen.width.is_some_and(|width| width < NARROW) {
        // Day and milliseconds are left out.
        parts.push(time.get(11..19).unwrap_or(&time).to_owned());
    } else {
        parts.push(time);
        parts.push(format!("{:>8}", format!("{}/{}", record.partition, record.offset)));
    }
    let accepted = record.verdict == "accepted" && record.reason.is_none();
    if verdicts || !accepted {
        parts.push(match &record.reason {
            Some(reason) => format!("{}({reason})", record.verdict),
            None => record.verdict.to_string(),
        });
    }
    parts.push(if record.event.is_none() { "?".to_owned() } else { text("kind").to_owned() });
    parts.push(text("task_id").to_owned());
    parts.push(field("body").map(summary).unwrap_or_default());
    let line = plain(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "));
    let line = screen.width.map_or_else(|| line.clone(), |width| cut(&line, usize::from(width)));
    if screen.colour && !accepted { painted(&line, Color::Red, screen) } else { line }
}

fn painted(line: &str, colour: Color, screen: &Screen) -> String {
    let mut table = Screen { width: None, ..*screen }.frameless();
    table.add_row([screen.coloured(line, colour)]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn a_line_fits_its_screen_and_says_what_did_not_count() {
        let record = StreamRecord {
            partition: 3,
            offset: 4_711,
            broker_time: 1_795_999_119_960,
            verdict: "rejected".into(),
            reason: Some("stale_epoch".into()),
            event: Some(serde_json::json!({"kind": "TaskCompleted", "task_id": "380345723523694592",
                "body": {"note": "订单\u{1b}处理", "steps_done": [1]}})),
        };
        let wide = line(&record, false, &Screen { width: None, colour: false });
        assert_eq!(
            wide,
            "2026-11-30 00:38:39.960Z   3/4711 rejected(stale_epoch) TaskCompleted 380345723523694592 note=订单\u{fffd}处理 steps_done×1"
        );
        for width in [40, 80, 120] {
            let text = line(&record, true, &Screen { width: Some(width), colour: false });
            assert!(text.width() <= usize::from(width) && text.contains("rejected"), "{text}");
        }
        let accepted = StreamRecord { verdict: "accepted".into(), reason: None, ..record };
        assert!(!line(&accepted, false, &Screen { width: None, colour: true }).contains("accepted"));
        assert!(line(&accepted, true, &Screen { width: None, colour: true }).contains("accepted"));
    }

    #[test]
    fn beginnings_are_read() {
        assert_eq!(From::parse("start"), Ok(From::Start));
        assert_eq!(From::parse("-1h"), Ok(From::Moment(Moment::Ago(3_600_000))));
        assert!(From::parse("yesterday").expect_err("none").contains("start or now"));
        assert_eq!(kind("tasklost"), Ok(Kind::TaskLost));
        assert!(kind("TaskGone").expect_err("none").contains("TaskLost"));
    }
}
