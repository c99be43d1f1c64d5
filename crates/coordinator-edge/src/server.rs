//! The edge as a server: its routes on the accept loop that every program shares.

use std::io;

use axum::Extension;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use coordinator::surface::Peers;
use event_log::EventLog;
use service_http::Server;
use service_kit::{Clock, Shutdown};
use snapshot_store::SnapshotStore;
use tokio::net::TcpListener;
use tower_http::catch_panic::CatchPanicLayer;

use crate::problems::{Failure, defect};
use crate::{Edge, router};

/// Serves until shutdown is requested, then finishes the requests under way, within
/// [`crate::EdgeConfig::drain_ms`]. What waits on purpose (`?wait=`, polls) hears of the shutdown.
///
/// # Errors
/// Those of [`service_http::serve`].
pub async fn serve<L, S, C, P>(listener: TcpListener, edge: Edge<L, S, C, P>, shutdown: Shutdown) -> io::Result<()>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    let server = Server {
        limits: edge.config.limits(),
        clock: edge.clock.clone(),
        metrics: edge.metrics.clone(),
        leaving: edge.leaving.clone(),
    };
    let app = router(edge).layer(CatchPanicLayer::custom(panicked)).layer(Extension(shutdown.clone()));
    service_http::serve(listener, app, server, shutdown).await
}

fn panicked(why: Box<dyn std::any::Any + Send + 'static>) -> Response<Body> {
    let text = why.downcast_ref::<&str>().copied().or_else(|| why.downcast_ref::<String>().map(String::as_str));
    let failure: Failure = defect(format!("a handler panicked: {}", text.unwrap_or("without a text")));
    failure.into_response()
}
