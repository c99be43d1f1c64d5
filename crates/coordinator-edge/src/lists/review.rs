//! `GET /api/v1/review`: what failed for good and waits for somebody's decision.

use axum::extract::{Request, State};
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::ReviewPage;
use service_kit::Clock;
use snapshot_store::SnapshotStore;

use super::item::review_item;
use super::query::{OF_REVIEW, asked};
use super::tasks::status_of;
use crate::problems::Answered;
use crate::{Edge, reply};

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn review(State(edge): State<Self>, request: Request) -> Answered {
        let (tasks, page) = edge.listed(asked(request.uri(), "review", &OF_REVIEW)?, true).await?;
        let status = status_of(&page);
        reply::json(status, &ReviewPage { items: tasks.into_iter().map(review_item).collect(), page })
    }
}
