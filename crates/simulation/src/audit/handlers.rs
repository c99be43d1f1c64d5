//! Handlers of all workers, on true time: no two inside the guard for one task (invariant 7) or for
//! one concurrency key, each attempt entered once.

use task_events::{ExecEpoch, ExecutionId, TaskCreated, TaskId, Text};

use super::{Audit, Map, Set};

/// What handlers did.
#[derive(Default)]
pub struct Handlers {
    entered: Set<ExecutionId>,
    /// Highest attempt of a task that acted, and when.
    highest: Map<TaskId, (ExecEpoch, u64)>,
    /// Creator and concurrency key.
    keys: Map<TaskId, (Text, Text)>,
    /// Acts of handlers so far.
    pub acts: u64,
}

impl Audit {
    /// A handler is entered.
    pub fn entered(&mut self, now: u64, task: TaskId, execution: ExecutionId, epoch: ExecEpoch) {
        self.now = now;
        if !self.handlers.entered.insert(execution) {
            self.find(7, format!("attempt {epoch} of task {task} was entered twice"), Some(task), None);
        }
        self.acted(now, task, epoch);
    }

    /// A handler passed its guard and acts.
    pub fn acted(&mut self, now: u64, task: TaskId, epoch: ExecEpoch) {
        self.now = now;
        self.handlers.acts += 1;
        match self.handlers.highest.get(&task).copied() {
            Some((highest, since)) if highest > epoch => {
                let what = format!(
                    "attempt {epoch} of task {task} acts although attempt {highest} has acted {} µs ago",
                    now - since
                );
                self.find(7, what, Some(task), None);
            }
            Some((highest, _)) if highest == epoch => {}
            Some(_) | None => {
                self.handlers.highest.insert(task, (epoch, now));
            }
        }
    }

    /// Two handlers are inside at once.
    pub fn beside(&mut self, now: u64, (task, epoch): (TaskId, ExecEpoch), (other, before): (TaskId, ExecEpoch)) {
        self.now = now;
        let key = self.handlers.keys.get(&task);
        if task == other {
            let what = format!("attempts {before} and {epoch} of task {task} are inside at once");
            self.find(7, what, Some(task), None);
        } else if let Some((creator, key)) = key
            && self.handlers.keys.get(&other) == self.handlers.keys.get(&task)
        {
            let what = format!("tasks {other} and {task} of {creator}'s key {key} are inside at once");
            self.find(7, what, Some(task), None);
        }
    }

    /// A task was born.
    pub(super) fn note_key(&mut self, task: TaskId, created: &TaskCreated) {
        if let Some(key) = &created.concurrency_key {
            self.handlers.keys.insert(task, (created.creator.clone(), key.clone()));
        }
    }
}
