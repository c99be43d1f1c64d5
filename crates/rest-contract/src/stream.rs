//! `GET /api/v1/events/stream`: what the log takes, as server-sent events.
//!
//! Each message of the type `record` is one record; its SSE id is the position behind it in all
//! partitions, so that `Last-Event-ID` (or `cursor=`) goes on exactly there. Records of one partition
//! come in its order; those of several are interleaved as they are read. Comments keep the connection
//! alive. A message of the type `end` is the last one and says why, as a problem.
//!
//! With `until=now` the stream ends with what the log held when it was opened: its last message is of the
//! type `reached` then, and its SSE id goes on behind it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use task_events::{Kind, TaskId, Text};

use crate::problem::Problem;

/// SSE type of a message that is a [`StreamRecord`].
pub const RECORD_MESSAGE: &str = "record";

/// SSE type of a message that is the last one; its data is a [`Problem`].
pub const END_MESSAGE: &str = "end";

/// SSE type of the last message of a stream until now: all of it was shown. Its data is an empty object.
pub const REACHED_MESSAGE: &str = "reached";

/// Where a stream begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StreamFrom {
    /// With what comes from now on.
    #[default]
    Now,
    /// With the oldest record that is there (`from=start`).
    Start,
    /// With the first record at or after this time, Unix ms (`from=MS`).
    Time(i64),
    /// At an offset of one partition, which is then the only one (`partition=P&offset=N`).
    Offset {
        /// Partition.
        partition: u16,
        /// Offset of the first record.
        offset: u64,
    },
    /// Behind a message received before: its SSE id (`cursor=`).
    Cursor(String),
}

/// What is streamed. Every filter that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamQuery {
    /// Where it begins.
    pub from: StreamFrom,
    /// Any of these kinds (`kind=TaskCreated,TaskLost`); all if it is empty.
    pub kinds: Vec<Kind>,
    /// Records of this task.
    pub task: Option<TaskId>,
    /// Records of this trace.
    pub trace: Option<Text>,
    /// Records that name this worker.
    pub worker: Option<Text>,
    /// Rejected and quarantined records too, each with its verdict (`verdict=all`).
    pub all_verdicts: bool,
    /// Ends with what is there when it is opened (`until=now`), instead of going on as records come.
    pub until_now: bool,
}

impl StreamQuery {
    /// Its parameters, as they stand in the URL.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        match &self.from {
            StreamFrom::Now => {}
            StreamFrom::Start => found.push(("from", "start".to_owned())),
            StreamFrom::Time(at) => found.push(("from", at.to_string())),
            StreamFrom::Offset { partition, offset } => {
                found.push(("partition", partition.to_string()));
                found.push(("offset", offset.to_string()));
            }
            StreamFrom::Cursor(cursor) => found.push(("cursor", cursor.clone())),
        }
        if !self.kinds.is_empty() {
            let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.as_str()).collect();
            found.push(("kind", kinds.join(",")));
        }
        found.extend(self.task.map(|task| ("task", task.to_string())));
        found.extend(self.trace.as_ref().map(|trace| ("trace", trace.to_string())));
        found.extend(self.worker.as_ref().map(|worker| ("worker", worker.to_string())));
        if self.all_verdicts {
            found.push(("verdict", "all".to_owned()));
        }
        if self.until_now {
            found.push(("until", "now".to_owned()));
        }
        found
    }
}

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamRecord {
    /// Partition.
    pub partition: u16,
    /// Offset in it.
    pub offset: u64,
    /// Broker time, Unix ms.
    pub broker_time: i64,
    /// `accepted`, `rejected` or `quarantined`.
    pub verdict: Text,
    /// Why it was rejected or quarantined.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Text>,
    /// The event, envelope and body; absent for what cannot be decoded.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub event: Option<Value>,
}

/// A message of the stream, as a client hands it on.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamMessage {
    /// A record, with the cursor that goes on behind it.
    Record {
        /// What [`StreamFrom::Cursor`] takes.
        cursor: String,
        /// The record.
        record: Box<StreamRecord>,
    },
    /// Everything was shown that was there when a stream until now was opened; the last message.
    Reached {
        /// What [`StreamFrom::Cursor`] takes, to go on behind it.
        cursor: String,
    },
    /// The stream is over: the server drains, or the reader was too slow. Go on with the last cursor.
    End(Box<Problem>),
}
