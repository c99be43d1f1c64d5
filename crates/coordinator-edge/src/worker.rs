//! Endpoints of workers: what they say is checked and brought to the owner of its task.
//!
//! The run an attempt belongs to is part of the `attempt_token` given out here (see `token`): single
//! reports do not name it otherwise.

mod batch;
mod fields;
mod operations;
mod payloads;
mod polling;
mod single;
mod token;
mod wire;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{MAX_BODY_BYTES, MAX_PAYLOAD_BYTES, MAX_SLOTS, MAX_WAIT_MS, Pong, Register, Registered};
use service_kit::Clock;
use snapshot_store::SnapshotStore;

use crate::api::Routes;
use crate::problems::Answered;
use crate::{Edge, reply};

/// Group of the document.
const TAG: &str = "workers";

pub(crate) fn routes<L, S, C, P>() -> Routes<Edge<L, S, C, P>>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    Routes::new()
        .get(TAG, "/coordinator/v1/ping", ping, operations::ping())
        .post(TAG, "/coordinator/v1/workers/register", register, operations::register())
        .post(TAG, "/coordinator/v1/workers/{id}/poll", polling::poll, operations::poll())
        .post(TAG, "/coordinator/v1/task/{id}/heartbeat", single::heartbeat, operations::heartbeat())
        .post(TAG, "/coordinator/v1/task/{id}/result", single::result, operations::result())
        .get(TAG, "/coordinator/v1/task/{id}/payload", payloads::read, operations::payload())
        .post(TAG, "/coordinator/v1/reports", batch::reports, operations::reports())
}

async fn ping<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(State(edge): State<Edge<L, S, C, P>>) -> Answered {
    reply::json(StatusCode::OK, &Pong { instance: edge.instance.clone(), now: edge.clock.wall_ms() })
}

async fn register<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(
    State(edge): State<Edge<L, S, C, P>>,
    request: Request,
) -> Answered {
    let register: Register = edge.json(request, MAX_BODY_BYTES).await?;
    fields::name("/worker_id", &register.worker_id)?;
    fields::name("/handler_version", &register.handler_version)?;
    fields::queues("/queues", &register.queues)?;
    fields::within("/slots", register.slots, 1, MAX_SLOTS)?;
    let registered = Registered {
        instance: edge.instance.clone(),
        lease_ms: edge.config.lease_ms,
        heartbeat_ms: edge.config.heartbeat_ms,
        max_wait_ms: MAX_WAIT_MS,
        max_payload_bytes: MAX_PAYLOAD_BYTES,
    };
    reply::json(StatusCode::OK, &registered)
}
