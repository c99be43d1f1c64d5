//! Tasks that ended, as lists show them (design.md §7): `tasks_by_time`, `failures_by_code` and
//! `review_queue`. Which of them a snapshot row stands in is one rule for all adapters, and pure.
//!
//! An entry is keyed by the task's id, so a later end overwrites it and nothing ever moves. While a
//! task is open again its entries stay as they are: whoever lists them asks the owner first, whose
//! word counts. What CQL has in its partition keys besides (the 5-minute bucket and the day of the id's
//! time) follows from the id.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use task_core::Review;
use task_events::{ErrorCategory, PartitionId, RunNo, TaskId, TaskState, Text};

use crate::SnapshotRow;
use crate::lifetimes::{LISTING_TTL_MS, listed_until_ms};

/// A task in a list: a row of `tasks_by_time`, or the same of an open task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSummary {
    /// Task.
    pub id: TaskId,
    /// State.
    pub state: TaskState,
    /// Run.
    pub run_no: RunNo,
    /// Event time of TaskCreated, Unix ms.
    pub created_at: i64,
    /// End of the run, Unix ms; `None` while it is open.
    pub completed_at: Option<i64>,
    /// Handler.
    pub task_type: Text,
    /// Queue.
    pub queue: Text,
    /// Client that created it.
    pub creator: Text,
    /// Worker of the last attempt; empty without one.
    pub worker_id: Text,
    /// Code of the last failure.
    pub error_code: Option<Text>,
    /// Its first 256 characters.
    pub error_summary: Option<Text>,
    /// Kind of failure.
    pub category: Option<ErrorCategory>,
    /// Step it failed in.
    pub failed_step: Option<Text>,
    /// Labels of the creator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Text, Text>,
    /// Whether people should look at its end, or have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

impl TaskSummary {
    /// Of a task, open or closed.
    pub fn of(snapshot: &SnapshotRow) -> Self {
        let (core, row) = (&snapshot.core, &snapshot.row);
        let ended = core.state.is_terminal();
        Self {
            id: core.id,
            state: core.state,
            run_no: core.run_no,
            created_at: row.created_at,
            completed_at: row.end_time.filter(|_| ended),
            task_type: row.created.task_type.clone(),
            queue: row.created.queue.clone(),
            creator: row.created.creator.clone(),
            worker_id: row.worker_id.clone(),
            error_code: row.error_code.clone(),
            error_summary: row.error_message.clone(),
            category: row.category,
            failed_step: row.failed_step.clone(),
            labels: row.created.labels.clone(),
            review: row.review.filter(|_| ended),
        }
    }

    /// Whether somebody has still to decide about its end.
    pub fn waits_for_review(&self) -> bool {
        self.review == Some(Review::Waiting)
    }
}

/// Which tasks are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndedList {
    /// `tasks_by_time`: every task that ended.
    All,
    /// `failures_by_code`: those whose last run ended with this code.
    Code(Text),
    /// `review_queue`: those that nobody has decided about yet.
    Review,
}

/// A part of a list: tasks of one partition with ids from `low` to `high`, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSpan {
    /// Of which list.
    pub list: EndedList,
    /// Partition.
    pub partition: PartitionId,
    /// Lowest id.
    pub low: TaskId,
    /// Highest id.
    pub high: TaskId,
    /// Begins at `low`, else at `high`.
    pub oldest_first: bool,
}

/// What lies in a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedPage {
    /// Tasks, in the order of the span.
    pub tasks: Vec<TaskSummary>,
    /// Entries that were looked at; those that have expired or are outdated are not among the tasks.
    pub looked_at: usize,
    /// Id of the last entry that was looked at, if there may be more behind it; `None`: that was all.
    pub looked_to: Option<TaskId>,
}

/// An entry that a snapshot row brings with it, and when it expires (Unix ms).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// `tasks_by_time`.
    ByTime(Box<TaskSummary>),
    /// `failures_by_code`; outdated once the task's `tasks_by_time` row says otherwise.
    Code(Text),
    /// `review_queue`; `false`: it was decided about, or is open again. Kept as a mark, so that a late
    /// writer of the former row cannot bring it back.
    Review(bool),
}

/// The entries of a row written with this timestamp; a function of what is written alone.
pub(crate) fn entries(snapshot: &SnapshotRow, timestamp_us: i64) -> Vec<(Entry, i64)> {
    let mut found = Vec::new();
    let again = snapshot.core.run_no > RunNo(1);
    if !snapshot.core.state.is_terminal() {
        if again {
            found.push((Entry::Review(false), (timestamp_us / 1_000).saturating_add(LISTING_TTL_MS)));
        }
        return found;
    }
    let until = listed_until_ms(snapshot);
    let summary = TaskSummary::of(snapshot);
    if summary.review.is_some() || again {
        found.push((Entry::Review(summary.waits_for_review()), until));
    }
    found.extend(summary.error_code.clone().map(|code| (Entry::Code(code), until)));
    found.push((Entry::ByTime(Box::new(summary)), until));
    found
}
