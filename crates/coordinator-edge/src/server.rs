//! The server: accepts connections, bounds what each of them may cost, and drains them at the end.
//! It knows no endpoint.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use coordinator::surface::Peers;
use event_log::EventLog;
use futures::FutureExt as _;
use futures::future::{Either, select};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rest_contract::{Code, Problem};
use service_kit::{Clock, Shutdown};
use snapshot_store::SnapshotStore;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tower_http::catch_panic::CatchPanicLayer;

use crate::problems::{Failure, defect};
use crate::{Edge, router};

/// Most bytes of a request's head, and so of what is read ahead of a connection (security: 16 KiB).
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Pause after the machine refused a connection (no descriptors left), ms.
const ACCEPT_PAUSE_MS: u64 = 50;

/// Serves until shutdown is requested, then finishes the requests under way, within
/// [`crate::EdgeConfig::drain_ms`]. What waits on purpose (`?wait=`, polls) hears of the shutdown.
///
/// # Errors
/// The listener's; and an address other than loopback without
/// [`crate::EdgeConfig::insecure`]: there is no authentication yet.
pub async fn serve<L, S, C, P>(listener: TcpListener, edge: Edge<L, S, C, P>, shutdown: Shutdown) -> io::Result<()>
where
    L: EventLog,
    S: SnapshotStore,
    C: Clock,
    P: Peers,
{
    let address = listener.local_addr()?;
    refuse_strangers(address, edge.config.insecure)?;
    let app = router(edge.clone()).layer(CatchPanicLayer::custom(panicked)).layer(Extension(shutdown.clone()));
    let service = TowerToHyperService::new(app);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(edge.config.header_ms))
        .max_buf_size(MAX_HEAD_BYTES);
    let opened = edge.metrics.counter("http_connections_total");
    let refused = edge.metrics.counter("http_connections_refused_total");
    let current = edge.metrics.counter("http_connections");
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let busy = Arc::new(busy());
    loop {
        while connections.try_join_next().is_some() {}
        current.set(u64::try_from(connections.len()).unwrap_or(u64::MAX));
        let accepted = match select(Box::pin(listener.accept()), shutdown.requested()).await {
            Either::Left((accepted, _)) => accepted,
            Either::Right(_) => break,
        };
        let Ok((stream, _)) = accepted else {
            edge.metrics.alarm("http_accept", "a connection cannot be accepted");
            edge.clock.sleep_until(edge.clock.boot_ms() + ACCEPT_PAUSE_MS).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        if connections.len() >= edge.config.max_connections {
            refused.add(1);
            turn_away(&stream, &busy);
            continue;
        }
        opened.add(1);
        // An answer is one small write: waiting for more to send with it only costs time.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(Duration::from_millis(edge.config.write_ms)));
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service.clone());
        // How a connection ended is its client's matter.
        connections.spawn(graceful.watch(connection).map(drop));
    }
    drop(listener);
    let until = edge.clock.boot_ms() + edge.config.drain_ms;
    // What is left at the deadline is dropped with the set.
    select(Box::pin(graceful.shutdown()), Box::pin(edge.clock.sleep_until(until))).await;
    Ok(())
}

fn refuse_strangers(address: SocketAddr, insecure: bool) -> io::Result<()> {
    if insecure || address.ip().is_loopback() {
        return Ok(());
    }
    let why =
        format!("{address} can be reached from other machines and nobody is authenticated yet: insecure must be set");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

// The whole answer to a connection that is one too many.
fn busy() -> Vec<u8> {
    let problem = Problem::new(Code::Overloaded, "too many connections are open");
    let body = serde_json::to_vec(&problem.fact("retry_after_ms", 1000)).unwrap_or_default();
    let mut answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend(body);
    answer
}

// It goes into the socket's own buffer or nowhere: nothing waits for a client that is turned away.
fn turn_away(stream: &TcpStream, answer: &[u8]) {
    let _ = stream.try_write(answer);
}

fn panicked(why: Box<dyn std::any::Any + Send + 'static>) -> Response<Body> {
    let text = why.downcast_ref::<&str>().copied().or_else(|| why.downcast_ref::<String>().map(String::as_str));
    let failure: Failure = defect(format!("a handler panicked: {}", text.unwrap_or("without a text")));
    failure.into_response()
}
