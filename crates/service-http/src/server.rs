//! The server: accepts connections, bounds what each of them may cost, and drains them at the end.
//! It knows no endpoint.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::middleware::map_response_with_state;
use axum::response::Response;
use futures::FutureExt as _;
use futures::future::{Either, select};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rest_contract::{Code, Problem};
use service_kit::{Clock, Metrics, Shutdown};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;

use crate::metrics::{HTTP_CONNECTIONS, HTTP_CONNECTIONS_OPENED, HTTP_CONNECTIONS_REFUSED};

/// Most bytes of a request's head, and so of what is read ahead of a connection (security: 16 KiB).
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Pause after the machine refused a connection (no descriptors left), ms.
const ACCEPT_PAUSE_MS: u64 = 50;

/// What connections may cost. Durations in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A request's headers arrive within this, counted from the end of the request before: also how
    /// long an idle connection is kept. Clients that keep connections must let go of them earlier.
    pub header_ms: u64,
    /// A client that takes nothing of an answer for this long is cut off: what is sent must not wait
    /// in memory for somebody who does not read.
    pub write_ms: u64,
    /// Connections at a time; one more is told `overloaded` and closed.
    pub max_connections: usize,
    /// After a shutdown request connections are closed at the latest after this.
    pub drain_ms: u64,
    /// Addresses other than loopback may be served (there is no authentication yet).
    pub insecure: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { header_ms: 5_000, write_ms: 10_000, max_connections: 10_000, drain_ms: 10_000, insecure: false }
    }
}

/// What a server runs with.
pub struct Server<C> {
    /// What connections may cost.
    pub limits: Limits,
    /// Clock.
    pub clock: C,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// Once it is requested each answer says that its connection ends with it, so that clients go
    /// elsewhere before this server stops.
    pub leaving: Shutdown,
}

/// Serves until shutdown is requested, then finishes the requests under way, within
/// [`Limits::drain_ms`].
///
/// # Errors
/// The listener's; and an address other than loopback without [`Limits::insecure`]: there is no
/// authentication yet.
pub async fn serve<C: Clock>(
    listener: TcpListener,
    app: Router,
    server: Server<C>,
    shutdown: Shutdown,
) -> io::Result<()> {
    let Server { limits, clock, metrics, leaving } = server;
    refuse_strangers(listener.local_addr()?, limits.insecure)?;
    let service = TowerToHyperService::new(app.layer(map_response_with_state(leaving, say_goodbye)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits.header_ms))
        .max_buf_size(MAX_HEAD_BYTES);
    let opened = metrics.counter(&HTTP_CONNECTIONS_OPENED);
    let refused = metrics.counter(&HTTP_CONNECTIONS_REFUSED);
    let current = metrics.gauge(&HTTP_CONNECTIONS);
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
            metrics.alarm("http_accept", "a connection cannot be accepted");
            clock.sleep_until(clock.boot_ms() + ACCEPT_PAUSE_MS).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        if connections.len() >= limits.max_connections {
            refused.add(1);
            turn_away(&stream, &busy);
            continue;
        }
        opened.add(1);
        // An answer is one small write: waiting for more to send with it only costs time.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(Duration::from_millis(limits.write_ms)));
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service.clone());
        // How a connection ended is its client's matter.
        connections.spawn(graceful.watch(connection).map(drop));
    }
    drop(listener);
    let until = clock.boot_ms() + limits.drain_ms;
    // What is left at the deadline is dropped with the set.
    select(Box::pin(graceful.shutdown()), Box::pin(clock.sleep_until(until))).await;
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

async fn say_goodbye(State(leaving): State<Shutdown>, mut response: Response) -> Response {
    if leaving.is_requested() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
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
