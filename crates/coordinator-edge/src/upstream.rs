//! Endpoints of those who create and read tasks.

mod batch;
mod change;
mod create;
pub(crate) mod events;
mod find;
mod meaning;
pub(crate) mod parameters;
mod read;
mod result;
pub(crate) mod validate;
mod view;
mod why;

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
        .route("/api/v1/task/create", post(Edge::<L, S, C, P>::create))
        .route("/api/v1/task/create-batch", post(Edge::<L, S, C, P>::create_batch))
        .route("/api/v1/task/{id}", get(Edge::<L, S, C, P>::task))
        .route("/api/v1/task/{id}/events", get(Edge::<L, S, C, P>::events))
        .route("/api/v1/task/{id}/why", get(Edge::<L, S, C, P>::why))
        .route("/api/v1/task/{id}/result", get(Edge::<L, S, C, P>::result))
        .route("/api/v1/task/{id}/cancel", post(Edge::<L, S, C, P>::cancel))
        .route("/api/v1/task/{id}/replay", post(Edge::<L, S, C, P>::replay))
        .route("/api/v1/trace/{trace_id}", get(Edge::<L, S, C, P>::by_trace))
        .route("/api/v1/business/{key}", get(Edge::<L, S, C, P>::by_business_key))
}
