//! Lists of tasks: `GET /api/v1/tasks` and `GET /api/v1/review`, and the decisions about what is in
//! the latter.
//!
//! A list is merged from what owners have in memory (open tasks, and closed ones whose row the store
//! may not show yet) and the store's lists of ended tasks, in the order of ids, which never change:
//! that is why a task shows once, whatever happens to it between two pages.

mod cursor;
mod decide;
mod gone;
mod item;
mod merge;
mod partition;
mod query;
mod review;
mod tasks;

use axum::Router;
use axum::routing::{get, post};
use coordinator::surface::Peers;
use event_log::EventLog;
use service_kit::Clock;
use snapshot_store::SnapshotStore;

use crate::Edge;

pub(crate) fn router<L, S, C, P>() -> Router<Edge<L, S, C, P>>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    Router::new()
        .route("/api/v1/tasks", get(Edge::<L, S, C, P>::tasks))
        .route("/api/v1/review", get(Edge::<L, S, C, P>::review))
        .route("/api/v1/review/{id}", post(Edge::<L, S, C, P>::decide))
}
