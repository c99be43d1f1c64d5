//! `GET /api/v1/task/{id}`, at once or once it is terminal.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::owner::{Answer, Command, TaskSeen};
use coordinator::surface::Peers;
use event_log::EventLog;
use futures::future::{Either, select};
use rest_contract::{Code, Problem};
use service_kit::{Clock, Shutdown};
use snapshot_store::SnapshotStore;
use task_events::TaskId;

use super::parameters::{Part, query, task_of, wait_ms};
use super::view::view_of;
use crate::problems::{Answered, Failure, no_such_task};
use crate::{Edge, reply};

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn task(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let task = task_of(id)?;
        let wait = query(request.uri(), &["wait"])?.get("wait").map_or(Ok(0), |text| wait_ms(text))?;
        let seen = if wait == 0 {
            edge.seen(task).await?
        } else {
            let shutdown = request.extensions().get::<Shutdown>().cloned().unwrap_or_default();
            edge.awaited(task, wait, &shutdown).await?
        };
        reply::json(StatusCode::OK, &view_of(&seen.row, seen.as_of))
    }

    /// The task as its owner sees it.
    pub(crate) async fn seen(&self, task: TaskId) -> Result<TaskSeen, Failure> {
        self.known_partition(task)?;
        let answer = self.surface.about(task, Command::Get { task }).await;
        self.seen_of(answer, task).await
    }

    // A server that shuts down does not wait for tasks.
    async fn awaited(&self, task: TaskId, wait: u64, shutdown: &Shutdown) -> Result<TaskSeen, Failure> {
        self.known_partition(task)?;
        let waits = Box::pin(self.surface.await_task(task, wait));
        match select(waits, shutdown.requested()).await {
            Either::Left((answer, _)) => self.seen_of(answer, task).await,
            Either::Right(_) => {
                let text = "the instance shuts down and waits no longer; ask again";
                Err(Problem::new(Code::Draining, text).fact("task_id", task.to_string()).into())
            }
        }
    }

    /// Refuses the id of a partition that there is not, for which no owner ever comes.
    pub(crate) fn known_partition(&self, task: TaskId) -> Result<(), Failure> {
        if task.partition().0 < self.surface.partitions() { Ok(()) } else { Err(no_such_task(task)) }
    }

    async fn seen_of(&self, answer: Answer, task: TaskId) -> Result<TaskSeen, Failure> {
        if let Answer::Task(seen) = answer { Ok(*seen) } else { Err(self.refusal(answer, task).await) }
    }
}
