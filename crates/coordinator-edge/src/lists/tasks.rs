//! `GET /api/v1/tasks`.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{ListOrder, PageEnd, TasksPage};
use service_kit::Clock;
use snapshot_store::{SnapshotStore, TaskSummary};
use task_events::TaskId;

use super::cursor::Cursors;
use super::item::item;
use super::partition::List;
use super::query::{Asked, OF_TASKS, asked};
use crate::problems::{Answered, Failure};
use crate::upstream::events::store_failure;
use crate::{Edge, reply};

/// Under this name instances share the secret of cursors.
const SECRET: &str = "list_cursors";

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn tasks(State(edge): State<Self>, request: Request) -> Answered {
        let (tasks, page) = edge.listed(asked(request.uri(), "tasks", &OF_TASKS)?, false).await?;
        let status = status_of(&page);
        reply::json(status, &TasksPage { tasks: tasks.into_iter().map(item).collect(), page })
    }

    /// The page that a query asks for.
    pub(super) async fn listed(&self, asked: Asked, review: bool) -> Result<(Vec<TaskSummary>, PageEnd), Failure> {
        let Asked { filter, low, high, order, limit, cursor, list } = asked;
        let cursors = Cursors::new(self.cursor_secret().await?, list);
        let list = List { review, filter, low, high, oldest_first: order == ListOrder::Oldest };
        let list = match cursor {
            Some(text) => list.rest(TaskId::from_raw(cursors.read(&text)?).unwrap_or(TaskId::ZERO)),
            None => list,
        };
        let page = self.page(&list, limit).await.map_err(store_failure)?;
        let end = PageEnd {
            next_cursor: page.last.map(|last| cursors.at(last.raw())),
            looked_at: page.looked_at,
            looked_to: page.last.map(TaskId::unix_ms),
            unanswered: page.unanswered,
        };
        Ok((page.tasks, end))
    }

    /// What cursors are authenticated with.
    pub(crate) async fn cursor_secret(&self) -> Result<[u8; 32], Failure> {
        let agree = || async {
            let proposed: Vec<u8> = (0..4).flat_map(|_| self.random().to_be_bytes()).collect();
            self.store.secret(SECRET, proposed.try_into().unwrap_or_default()).await
        };
        self.secret().get_or_try_init(agree).await.copied().map_err(store_failure)
    }
}

pub(super) fn status_of(page: &PageEnd) -> StatusCode {
    if page.unanswered.is_empty() { StatusCode::OK } else { StatusCode::MULTI_STATUS }
}
