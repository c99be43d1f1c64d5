//! Endpoints of those who create and read tasks.

use axum::Router;
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
}
