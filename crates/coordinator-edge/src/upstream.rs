//! Endpoints of those who create and read tasks.

mod asked;
mod batch;
mod change;
mod create;
pub(crate) mod events;
mod find;
mod meaning;
mod operations;
pub(crate) mod parameters;
mod read;
mod result;
pub(crate) mod validate;
mod view;
mod why;

use coordinator::surface::Peers;
use event_log::EventLog;
use service_kit::Clock;
use snapshot_store::SnapshotStore;

use crate::Edge;
use crate::api::Routes;

/// Group of the document.
const TAG: &str = "tasks";

pub(crate) fn routes<L, S, C, P>() -> Routes<Edge<L, S, C, P>>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    Routes::new()
        .post(TAG, "/api/v1/task/create", Edge::<L, S, C, P>::create, operations::create())
        .post(TAG, "/api/v1/task/create-batch", Edge::<L, S, C, P>::create_batch, operations::create_batch())
        .get(TAG, "/api/v1/task/{id}", Edge::<L, S, C, P>::task, operations::get())
        .get(TAG, "/api/v1/task/{id}/events", Edge::<L, S, C, P>::events, operations::events())
        .get(TAG, "/api/v1/task/{id}/why", Edge::<L, S, C, P>::why, operations::why())
        .get(TAG, "/api/v1/task/{id}/result", Edge::<L, S, C, P>::result, operations::result())
        .post(TAG, "/api/v1/task/{id}/cancel", Edge::<L, S, C, P>::cancel, operations::cancel())
        .post(TAG, "/api/v1/task/{id}/replay", Edge::<L, S, C, P>::replay, operations::replay())
        .get(TAG, "/api/v1/trace/{trace_id}", Edge::<L, S, C, P>::by_trace, operations::by_trace())
        .get(TAG, "/api/v1/business/{key}", Edge::<L, S, C, P>::by_business_key, operations::by_business_key())
}
