//! The probes of a program without an edge: an HTTP server beside its service.

use std::io;

use event_log::EventLog;
use service_http::probes::{Probed, router};
use service_http::{Limits, Server};
use service_kit::{Metrics, Shutdown, Standings, SystemClock};
use task_events::Text;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Requests under way get this long at the end, ms: a probe waits for the log a second at most.
const DRAIN_MS: u64 = 1_500;

/// Connections at a time: probes and scrapers are few.
const CONNECTIONS: usize = 100;

/// What the probes look at.
pub struct Probes<L> {
    /// The service, as its group is called.
    pub service: &'static str,
    /// Name of the instance.
    pub instance: Text,
    /// Asked for the ends of partitions.
    pub log: L,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// How far the service's folds are.
    pub standings: Standings,
    /// Addresses other than loopback may be served.
    pub insecure: bool,
}

impl<L: EventLog> Probes<L> {
    /// Serves them on a task of their own; what to request once the service leaves, and what ends them.
    pub fn serve(self, listener: TcpListener) -> (JoinHandle<io::Result<()>>, Shutdown, Shutdown) {
        let Self { service, instance, log, metrics, standings, insecure } = self;
        let (leaving, stop) = (Shutdown::default(), Shutdown::default());
        let app = router(Probed {
            service,
            instance: instance.to_string(),
            log,
            clock: SystemClock,
            metrics: metrics.clone(),
            standings,
            leaving: leaving.clone(),
        });
        let limits = Limits { drain_ms: DRAIN_MS, max_connections: CONNECTIONS, insecure, ..Limits::default() };
        let server = Server { limits, clock: SystemClock, metrics, leaving: leaving.clone() };
        (tokio::spawn(service_http::serve(listener, app, server, stop.clone())), leaving, stop)
    }
}
