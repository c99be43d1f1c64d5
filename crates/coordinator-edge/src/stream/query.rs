//! From the parameters of a stream to what is asked of it.

use axum::extract::Request;
use rest_contract::{Problem, StreamFrom};
use task_events::{Kind, PartitionId, TaskId, Text};

use super::filter::Filter;
use crate::problems::{Failure, bad_parameter};
use crate::upstream::parameters::{is_trace, query};
use crate::upstream::validate::name_of;

const KNOWN: [&str; 10] =
    ["from", "partition", "offset", "cursor", "kind", "task", "trace", "worker", "verdict", "until"];

/// What is asked of a stream.
#[derive(Debug)]
pub(super) struct Asked {
    pub from: StreamFrom,
    /// The only partition that is read.
    pub only: Option<PartitionId>,
    pub filter: Filter,
    /// It ends with what is there when it is opened.
    pub until_now: bool,
}

/// Reads a request; `Last-Event-ID`, which a browser sends by itself, is a cursor and goes first.
pub(super) fn asked(request: &Request, partitions: u16) -> Result<Asked, Failure> {
    let given = query(request.uri(), &KNOWN)?;
    let get = |name: &str| given.get(name).map(String::as_str);
    let last = request.headers().get("last-event-id").map(|value| {
        let shown = || String::from_utf8_lossy(value.as_bytes()).into_owned();
        value.to_str().map_err(|_| bad_parameter("Last-Event-ID", &shown(), "the id of a message of this stream"))
    });
    let last = last.transpose()?;
    let within = |partition: u16| partition < partitions;
    let partition = get("partition").map(|text| {
        let read = text.parse().ok().filter(|partition| within(*partition));
        read.ok_or_else(|| bad_parameter("partition", text, &format!("0 to {}", partitions.saturating_sub(1))))
    });
    let partition: Option<u16> = partition.transpose()?;
    let offset = get("offset").map(|text| text.parse().map_err(|_| bad_parameter("offset", text, "a number")));
    let from = match (last.or(get("cursor")), partition, offset.transpose()?, get("from")) {
        (Some(cursor), _, _, _) => StreamFrom::Cursor(cursor.to_owned()),
        (None, Some(partition), Some(offset), None) => StreamFrom::Offset { partition, offset },
        (None, None, Some(offset), _) => {
            return Err(bad_parameter("offset", &offset.to_string(), "given with its partition").into());
        }
        (None, Some(_), Some(_), Some(from)) => {
            return Err(bad_parameter("from", from, "absent beside offset").into());
        }
        (None, _, None, from) => beginning(from)?,
    };
    let filter = Filter {
        kinds: get("kind").map_or(Ok(Vec::new()), kinds)?,
        task: get("task").map(task).transpose()?,
        trace: get("trace").map(trace).transpose()?,
        worker: get("worker").map(worker).transpose()?,
        all_verdicts: match get("verdict") {
            None | Some("accepted") => false,
            Some("all") => true,
            Some(other) => return Err(bad_parameter("verdict", other, "accepted or all").into()),
        },
    };
    let until_now = match get("until") {
        None => false,
        Some("now") => true,
        Some(other) => return Err(bad_parameter("until", other, "now, or absent to go on as records come").into()),
    };
    let of_task = filter.task.map(TaskId::partition).filter(|partition| within(partition.0));
    let only = partition.map(PartitionId).or(of_task);
    Ok(Asked { from, only, filter, until_now })
}

fn beginning(from: Option<&str>) -> Result<StreamFrom, Problem> {
    match from {
        None | Some("now") => Ok(StreamFrom::Now),
        Some("start") => Ok(StreamFrom::Start),
        Some(text) => {
            let at = text.parse().ok().filter(|at: &i64| *at >= 0);
            at.map(StreamFrom::Time).ok_or_else(|| bad_parameter("from", text, "now, start, or a time in Unix ms"))
        }
    }
}

fn kinds(text: &str) -> Result<Vec<Kind>, Problem> {
    let must = "kinds of events, separated by commas: TaskCreated,TaskLost";
    text.split(',').map(|name| name.parse().map_err(|_| bad_parameter("kind", name, must))).collect()
}

fn task(text: &str) -> Result<TaskId, Problem> {
    text.parse().map_err(|_| bad_parameter("task", text, "a task id: a decimal number"))
}

fn trace(text: &str) -> Result<Text, Problem> {
    let good = Some(text).filter(|text| is_trace(text));
    good.map(Text::from).ok_or_else(|| bad_parameter("trace", text, "32 lower-case hexadecimal digits, not all 0"))
}

fn worker(text: &str) -> Result<Text, Problem> {
    let worker = Text::from(text);
    name_of("worker", &worker)?;
    Ok(worker)
}
