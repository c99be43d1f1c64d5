//! Which tasks a list shows. One meaning for tasks in memory and for those in the store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use snapshot_store::TaskSummary;
use task_core::Row;
use task_events::{TaskState, Text};

/// What must hold for a task to be shown; nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFilter {
    /// Any of these, if there is one.
    pub states: Vec<TaskState>,
    /// Handler.
    pub task_type: Option<Text>,
    /// Queue.
    pub queue: Option<Text>,
    /// Client that created it.
    pub creator: Option<Text>,
    /// Worker of the last attempt.
    pub worker: Option<Text>,
    /// Code of the last failure.
    pub code: Option<Text>,
    /// Labels, each with this value.
    pub labels: BTreeMap<Text, Text>,
}

struct Facts<'a> {
    state: TaskState,
    task_type: &'a Text,
    queue: &'a Text,
    creator: &'a Text,
    worker: &'a Text,
    code: Option<&'a Text>,
    labels: &'a BTreeMap<Text, Text>,
}

impl TaskFilter {
    /// Whether it shows every task.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it shows this task of the store.
    pub fn takes(&self, task: &TaskSummary) -> bool {
        self.holds(&Facts {
            state: task.state,
            task_type: &task.task_type,
            queue: &task.queue,
            creator: &task.creator,
            worker: &task.worker_id,
            code: task.error_code.as_ref(),
            labels: &task.labels,
        })
    }

    /// Whether it shows this task of the owner's memory.
    pub(super) fn takes_row(&self, state: TaskState, row: &Row) -> bool {
        self.holds(&Facts {
            state,
            task_type: &row.created.task_type,
            queue: &row.created.queue,
            creator: &row.created.creator,
            worker: &row.worker_id,
            code: row.error_code.as_ref(),
            labels: &row.created.labels,
        })
    }

    fn holds(&self, facts: &Facts<'_>) -> bool {
        let is = |wanted: &Option<Text>, there: &Text| wanted.as_ref().is_none_or(|wanted| wanted == there);
        (self.states.is_empty() || self.states.contains(&facts.state))
            && is(&self.task_type, facts.task_type)
            && is(&self.queue, facts.queue)
            && is(&self.creator, facts.creator)
            && is(&self.worker, facts.worker)
            && self.code.as_ref().is_none_or(|code| facts.code == Some(code))
            && self.labels.iter().all(|(label, value)| facts.labels.get(label) == Some(value))
    }
}
