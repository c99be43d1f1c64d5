//! What a batch consists of.

use bytes::Bytes;
use rest_contract::{Answered, Verdict};
use task_events::{ExecutionId, TaskId, Text};
use worker_protocol::{Heartbeat, Report};

use crate::PayloadKey;
use crate::http::wire;

/// List of the batch that an item stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::http) enum Sort {
    Payload,
    Report,
    Heartbeat,
}

/// Items of one lane arrive in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// Reports and payloads of a task.
    Reports(TaskId),
    /// Heartbeats of an attempt: they do not wait for reports, or a slow report would end its lease.
    Heartbeats(ExecutionId),
}

/// An item, written already.
#[derive(Debug)]
pub(in crate::http) struct Item {
    pub(super) sort: Sort,
    pub(super) lane: Lane,
    pub(super) json: Bytes,
}

/// Answer to an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::http) enum Reply {
    /// Whether the payload is stored.
    Stored(bool),
    /// What the owner says.
    Answered(Answered),
}

impl Item {
    pub(in crate::http) fn payload(task: TaskId, key: &PayloadKey, bytes: Bytes) -> Self {
        let json = written(&wire::payload(task, key, bytes));
        Self { sort: Sort::Payload, lane: Lane::Reports(task), json }
    }

    pub(in crate::http) fn report(task: TaskId, report: Report, token: Text) -> Self {
        Self { sort: Sort::Report, lane: Lane::Reports(task), json: written(&wire::report(report, token)) }
    }

    pub(in crate::http) fn heartbeat(beat: Heartbeat, token: Text) -> Self {
        let lane = Lane::Heartbeats(beat.attempt.execution_id);
        Self { sort: Sort::Heartbeat, lane, json: written(&wire::heartbeat(beat, token)) }
    }
}

// Strings, numbers and lists of them: nothing that JSON could not hold. Were it otherwise, the
// coordinator would refuse the item.
fn written(value: &impl serde::Serialize) -> Bytes {
    serde_json::to_vec(value).map_or_else(|_| Bytes::from_static(b"null"), Bytes::from)
}

/// The answer to an item that the coordinator will never take: the attempt cannot go on.
pub(super) const fn refused(sort: Sort) -> Reply {
    match sort {
        Sort::Payload => Reply::Stored(false),
        Sort::Report | Sort::Heartbeat => {
            Reply::Answered(Answered { answer: Verdict::Fenced, lease_ms: None, cancel_requested: false })
        }
    }
}
