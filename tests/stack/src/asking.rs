//! Tasks that a drill creates itself, beside the load, and what it waits for.

use std::collections::BTreeSet;

use rest_contract::CreateBatch;
use serde_json::{Value, json};
use task_events::{Kind, TaskId, TaskState};

use crate::drill::Drill;
use crate::history::Outcome;
use crate::load;
use crate::world::until;

impl Drill {
    /// Creates tasks whose handlers take so long, ms.
    ///
    /// # Panics
    /// One is refused.
    pub async fn create_long(&self, count: u64, ms: u64) -> BTreeSet<TaskId> {
        self.create(count, &json!({ "ms": ms })).await
    }

    /// Creates tasks whose first handler writes lines to the sink until it is stopped.
    ///
    /// # Panics
    /// One is refused.
    pub async fn create_writing(&self, count: u64) -> BTreeSet<TaskId> {
        self.create(count, &json!({ "ms": 0, "lines": true })).await
    }

    async fn create(&self, count: u64, payload: &Value) -> BTreeSet<TaskId> {
        let ops = self.history.invoke(count, false);
        let batch = CreateBatch { tasks: ops.clone().map(|op| load::told(op, payload)).collect() };
        let answer = self.client(1).create_batch(&batch, None).await.expect("an answer");
        let task = |item: &rest_contract::BatchItem| -> TaskId {
            let id = item.task_id.as_ref().unwrap_or_else(|| panic!("{item:?}"));
            id.parse().expect("an id")
        };
        let tasks: Vec<TaskId> = answer.items.iter().map(task).collect();
        assert_eq!(tasks.len() as u64, count, "one answer for each");
        for (op, task) in ops.zip(&tasks) {
            self.history.created(op, Outcome::Ok(*task));
        }
        tasks.into_iter().collect()
    }

    /// Reads on until each of these tasks is in this state.
    ///
    /// # Panics
    /// They never are.
    pub async fn all_in(&mut self, tasks: &BTreeSet<TaskId>, state: TaskState) {
        let journal = tokio::sync::Mutex::new(&mut self.journal);
        until(&format!("all are {}", state.as_str()), || async {
            let mut journal = journal.lock().await;
            journal.advance().await.ok()?;
            let open = journal.open_tasks();
            tasks.iter().all(|task| open.get(task).is_some_and(|core| core.state == state)).then_some(())
        })
        .await;
    }

    /// Reads on until so many attempts more than now have ended as a success.
    ///
    /// # Panics
    /// They never do.
    pub async fn more_completed(&mut self, more: usize) {
        let journal = tokio::sync::Mutex::new(&mut self.journal);
        let goal = {
            let mut journal = journal.lock().await;
            journal.advance().await.expect("the log");
            journal.accepted(Kind::TaskCompleted).count() + more
        };
        until("tasks end", || async {
            let mut journal = journal.lock().await;
            journal.advance().await.ok()?;
            (journal.accepted(Kind::TaskCompleted).count() >= goal).then_some(())
        })
        .await;
    }
}
