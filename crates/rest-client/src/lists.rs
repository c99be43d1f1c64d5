//! Lists of tasks, page by page, and what people decide about the failed ones.

use rest_contract::{ReviewPage, ReviewRequest, Reviewed, TasksPage, TasksQuery};
use task_events::TaskId;

use crate::client::{Answer, Client};
use crate::transport::Call;

const REVIEW: &str = "/api/v1/review";

impl Client {
    /// One page of tasks. The next one is asked for with its `next_cursor` in the same query.
    pub async fn tasks(&self, query: &TasksQuery) -> Answer<TasksPage> {
        let mut call = Call::get("/api/v1/tasks", &[]);
        call.query = query.parameters();
        self.call(call, &[200, 207]).await
    }

    /// One page of the tasks that failed for good and wait for somebody's decision. Of the query's
    /// filters type, queue, creator and code are taken; others are refused.
    pub async fn review(&self, query: &TasksQuery) -> Answer<ReviewPage> {
        let mut call = Call::get(REVIEW, &[]);
        call.query = query.parameters();
        self.call(call, &[200, 207]).await
    }

    /// Puts a decision about a closed task on record.
    pub async fn decide(&self, task: TaskId, request: &ReviewRequest) -> Answer<Reviewed> {
        self.post(REVIEW, &[&task.to_string()], request, None, &[200]).await
    }
}
