//! `GET /api/v1/task/{id}`, at once or once it is terminal: from the task's owner, or from its row while
//! there is none.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::owner::{Answer, Command, TaskSeen};
use coordinator::surface::Peers;
use event_log::EventLog;
use futures::future::{Either, select};
use rest_contract::{Code, Problem, TaskView};
use service_kit::{Clock, Shutdown};
use snapshot_store::{SnapshotRow, SnapshotStore};
use task_events::{Offset, TaskId};

use super::parameters::{Part, query, task_of, wait_ms};
use super::view::view_of;
use crate::problems::{Answered, Failure, no_such_task};
use crate::{Edge, reply};

/// A task, and whether it may be otherwise by now.
pub(super) struct Known {
    pub seen: TaskSeen,
    pub stale: bool,
}

impl Known {
    const fn fresh(seen: TaskSeen) -> Self {
        Self { seen, stale: false }
    }
}

fn is_ownerless(failure: &Failure) -> bool {
    failure.0.code == Code::OwnerUnavailable
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn task(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let task = task_of(id)?;
        let wait = query(request.uri(), &["wait"])?.get("wait").map_or(Ok(0), |text| wait_ms(text))?;
        let known = if wait == 0 {
            edge.known(task, |_| true).await?
        } else {
            let shutdown = request.extensions().get::<Shutdown>().cloned().unwrap_or_default();
            edge.known_end(task, wait, &shutdown).await?
        };
        let view = TaskView { stale: known.stale, ..view_of(&known.seen.row, known.seen.as_of) };
        reply::json(StatusCode::OK, &view)
    }

    /// The task as its owner sees it.
    pub(crate) async fn seen(&self, task: TaskId) -> Result<TaskSeen, Failure> {
        self.known_partition(task)?;
        let answer = self.surface.about(task, Command::Get { task }).await;
        self.seen_of(answer, task).await
    }

    /// The task as its owner sees it, or while there is none as its row tells, if the row is good enough.
    pub(super) async fn known(&self, task: TaskId, good: impl Fn(&SnapshotRow) -> bool) -> Result<Known, Failure> {
        self.known_partition(task)?;
        let answer = self.surface.seen(task).await;
        match self.seen_of(answer, task).await {
            Err(failure) if is_ownerless(&failure) => match self.stored(task, good).await {
                Some(known) => Ok(known),
                // What no row tells may come from a new owner, for which everything else waits as long.
                None => self.seen(task).await.map(Known::fresh),
            },
            seen => seen.map(Known::fresh),
        }
    }

    // The task once it is terminal: an end on record is what was waited for, whether an owner is there or not.
    async fn known_end(&self, task: TaskId, wait: u64, shutdown: &Shutdown) -> Result<Known, Failure> {
        self.known_partition(task)?;
        let ended = |row: &SnapshotRow| row.core.state.is_terminal();
        let started = self.clock.boot_ms();
        let mut answer = awaited(task, self.surface.await_of_owner(task, wait), shutdown).await?;
        if answer.is_away() {
            if let Some(known) = self.stored(task, ended).await {
                return Ok(known);
            }
            let left = wait.saturating_sub(self.clock.boot_ms().saturating_sub(started));
            answer = awaited(task, self.surface.await_task(task, left), shutdown).await?;
        }
        match self.seen_of(answer, task).await {
            Err(failure) if is_ownerless(&failure) => self.stored(task, ended).await.ok_or(failure),
            seen => seen.map(Known::fresh),
        }
    }

    // Of a task without a row nothing is known, not even that it does not exist: it may be owed.
    async fn stored(&self, task: TaskId, good: impl Fn(&SnapshotRow) -> bool) -> Option<Known> {
        let rows = self.store.snapshots(vec![task]).await.unwrap_or_default();
        let row = rows.into_iter().flatten().find(good)?;
        let as_of = Offset(row.row.applied_offset.0 + 1);
        Some(Known { seen: TaskSeen { row, as_of }, stale: true })
    }

    /// Refuses the id of a partition that there is not, for which no owner ever comes.
    pub(crate) fn known_partition(&self, task: TaskId) -> Result<(), Failure> {
        if task.partition().0 < self.surface.partitions() { Ok(()) } else { Err(no_such_task(task)) }
    }

    async fn seen_of(&self, answer: Answer, task: TaskId) -> Result<TaskSeen, Failure> {
        if let Answer::Task(seen) = answer { Ok(*seen) } else { Err(self.refusal(answer, task).await) }
    }
}

// A server that shuts down does not wait for tasks.
async fn awaited(task: TaskId, answer: impl Future<Output = Answer>, shutdown: &Shutdown) -> Result<Answer, Failure> {
    match select(Box::pin(answer), shutdown.requested()).await {
        Either::Left((answer, _)) => Ok(answer),
        Either::Right(_) => {
            let text = "the instance shuts down and waits no longer; ask again";
            Err(Problem::new(Code::Draining, text).fact("task_id", task.to_string()).into())
        }
    }
}
