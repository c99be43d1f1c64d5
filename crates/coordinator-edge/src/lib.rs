//! The coordinator's edge: what comes in by HTTP is parsed and checked here, asked of the owner
//! through the command surface, and answered; nothing is decided here (design.md §2, §8).
//!
//! [`serve`] accepts connections; [`router`] is what answers them: `upstream` (those who create and
//! read tasks), `lists` (many tasks at once), `operate` (queues, workers), `registry` (the schema), `stream` (the log as it
//! grows), `worker` (those who run them), `probes` (health and metrics), `internal` (other
//! instances). Whatever is refused leaves as RFC 9457 problem+json, by one table in `problems`; `api` is
//! the table of endpoints, of which the router and the OpenAPI document are made.

#![expect(
    clippy::result_large_err,
    reason = "a problem is made once for a request that is refused; a box would only move it"
)]

mod api;
mod body;
mod edge;
mod internal;
pub mod json;
mod lists;
pub mod metrics;
mod operate;
mod peers;
mod probes;
mod problems;
mod registry;
mod reply;
mod server;
mod stream;
mod upstream;
mod verdict;
mod worker;

use axum::{Router, middleware};
use coordinator::surface::Peers;
use event_log::EventLog;
use rest_contract::{Code, Problem};
use service_kit::Clock;
use snapshot_store::SnapshotStore;

pub use edge::{Edge, EdgeConfig, EdgeParts};
pub use peers::{HttpPeers, NoClient};
pub use server::serve;

use api::Routes;
use problems::Failure;

/// Every endpoint, for one edge.
pub fn router<L, S, C, P>(edge: Edge<L, S, C, P>) -> Router
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    routes()
        .into_router()
        .merge(internal::router())
        .fallback(no_such_path)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(edge.clone(), metrics::measure::<L, S, C, P>))
        .with_state(edge)
}

/// The OpenAPI document of every endpoint (`/internal/v1` apart), as `GET /openapi.json` serves it.
pub fn openapi<L, S, C, P>() -> String
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    api::text(routes::<L, S, C, P>().described())
}

fn routes<L, S, C, P>() -> Routes<Edge<L, S, C, P>>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    upstream::routes()
        .merge(lists::routes())
        .merge(operate::routes())
        .merge(registry::routes())
        .merge(stream::routes())
        .merge(worker::routes())
        .merge(probes::routes())
}

async fn no_such_path(uri: axum::http::Uri) -> Failure {
    Failure(Problem::new(Code::NoSuchPath, format!("there is nothing at {}", uri.path())))
}

async fn method_not_allowed(method: axum::http::Method, uri: axum::http::Uri) -> Failure {
    Failure(Problem::new(Code::MethodNotAllowed, format!("{} does not take {method}", uri.path())))
}
