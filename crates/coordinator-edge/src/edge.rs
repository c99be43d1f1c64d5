//! What the edge works with. Every handler gets an [`Edge`]; what differs between deployments is in
//! its parts.

use std::ops::Deref;
use std::sync::Arc;

use coordinator::surface::{NoPeers, Surface};
use parking_lot::Mutex;
use service_http::Limits;
use service_http::probes::Seen;
use service_kit::{Clock, Entropy, Metrics, Shutdown, Standings};
use spans::Spans;
use task_events::Text;
use tokio::sync::OnceCell;

use crate::stream::Streams;

/// Limits of the server. Durations in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeConfig {
    /// A request's headers arrive within this, counted from the end of the request before: also how
    /// long an idle connection is kept. Clients that keep connections must let go of them earlier.
    pub header_ms: u64,
    /// A request's body arrives within this.
    pub body_ms: u64,
    /// A client that takes nothing of an answer for this long is cut off: what is sent must not wait
    /// in memory for somebody who does not read.
    pub write_ms: u64,
    /// Connections at a time; one more is told `overloaded` and closed.
    pub max_connections: usize,
    /// After a shutdown request connections are closed at the latest after this.
    pub drain_ms: u64,
    /// Addresses other than loopback may be served (there is no authentication yet).
    pub insecure: bool,
    /// Lease told to workers that register; as the owners'.
    pub lease_ms: u64,
    /// Heartbeat interval told to workers that register; as the owners'.
    pub heartbeat_ms: u64,
}

impl Default for EdgeConfig {
    fn default() -> Self {
        let owner = coordinator::owner::OwnerConfig::default();
        let Limits { header_ms, write_ms, max_connections, drain_ms, insecure } = Limits::default();
        Self {
            header_ms,
            body_ms: 10_000,
            write_ms,
            max_connections,
            drain_ms,
            insecure,
            lease_ms: owner.lease_ms,
            heartbeat_ms: owner.heartbeat_ms,
        }
    }
}

impl EdgeConfig {
    /// What connections may cost.
    pub const fn limits(&self) -> Limits {
        let Self { header_ms, write_ms, max_connections, drain_ms, insecure, .. } = *self;
        Limits { header_ms, write_ms, max_connections, drain_ms, insecure }
    }
}

/// Parts of an [`Edge`].
pub struct EdgeParts<L, S, C, P = NoPeers> {
    /// The way to the owners.
    pub surface: Surface<C, P>,
    /// The log, read at known offsets only.
    pub log: L,
    /// Rows and payloads.
    pub store: S,
    /// Clock.
    pub clock: C,
    /// Where trace ids come from.
    pub entropy: Mutex<Box<dyn Entropy>>,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// Where spans of requests go.
    pub spans: Spans,
    /// Name of this instance.
    pub instance: Text,
    /// Once it is requested the instance is not ready any more and its answers send clients elsewhere:
    /// it hands its partitions over, and will be stopped.
    pub leaving: Shutdown,
    /// Other services of this process, by the names of their groups: its metrics tell how far their folds are.
    pub beside: Vec<(&'static str, Standings)>,
    /// Limits.
    pub config: EdgeConfig,
}

/// The edge of one instance. Clones share its parts.
pub struct Edge<L, S, C, P = NoPeers>(Arc<Inner<L, S, C, P>>);

struct Inner<L, S, C, P> {
    parts: EdgeParts<L, S, C, P>,
    progress: Seen,
    /// Secret of cursors, once it is known.
    secret: OnceCell<[u8; 32]>,
    streams: Streams,
}

impl<L, S, C, P> Clone for Edge<L, S, C, P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L, S, C, P> Deref for Edge<L, S, C, P> {
    type Target = EdgeParts<L, S, C, P>;

    fn deref(&self) -> &Self::Target {
        &self.0.parts
    }
}

impl<L, S, C: Clock, P> Edge<L, S, C, P> {
    /// An edge of these parts.
    pub fn new(parts: EdgeParts<L, S, C, P>) -> Self {
        Self(Arc::new(Inner { parts, progress: Seen::default(), secret: OnceCell::new(), streams: Streams::default() }))
    }

    /// How far partitions were when they were last seen to move.
    pub(crate) fn progress(&self) -> &Seen {
        &self.0.progress
    }

    /// The secret of cursors, which the instances agree on by the store.
    pub(crate) fn secret(&self) -> &OnceCell<[u8; 32]> {
        &self.0.secret
    }

    /// Streams of events.
    pub(crate) fn streams(&self) -> &Streams {
        &self.0.streams
    }

    /// A number nobody can guess.
    pub(crate) fn random(&self) -> u64 {
        self.entropy.lock().next_u64()
    }
}
