//! One coordinator, put together: owners, command surface, edge, and the way to its peers.

use assignment_lock::{AssignmentLock, Board};
use coordinator::owner::{Freeze, Identity, OwnerConfig, OwnerRules, Ports};
use coordinator::service::Service;
use coordinator::surface::Surface;
use coordinator_edge::{Edge, EdgeConfig, EdgeParts, HttpPeers, NoClient};
use event_log::EventLog;
use parking_lot::Mutex;
use service_kit::{Metrics, Shutdown, Standings, SystemClock, SystemEntropy};
use snapshot_store::SnapshotStore;
use spans::Spans;
use task_events::{Incarnation, Text};

/// What a coordinator is made of.
pub struct Parts<L, S, K> {
    /// The topic.
    pub log: L,
    /// The snapshot track.
    pub store: S,
    /// Assignment locks, and the board beside them.
    pub lock: K,
    /// Name of the instance.
    pub instance: Text,
    /// This start of its process.
    pub incarnation: Incarnation,
    /// Where other instances reach it.
    pub url: Text,
    /// Settings of its owners, validated.
    pub owner: OwnerConfig,
    /// After a shutdown request connections are closed at the latest after this, ms.
    pub drain_ms: u64,
    /// Addresses other than loopback may be served.
    pub insecure: bool,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// Where spans go.
    pub spans: Spans,
    /// Requested once it hands over and will end.
    pub leaving: Shutdown,
    /// Other services of this process, by the names of their groups.
    pub beside: Vec<(&'static str, Standings)>,
}

type Way<L> = HttpPeers<L, SystemClock>;

/// A coordinator that does not run yet.
pub struct Coordinator<L, S, K> {
    /// Its command surface.
    pub surface: Surface<SystemClock, Way<L>>,
    /// Its owners: [`Service::run`].
    pub service: Service<L, S, K, SystemClock, SystemEntropy, Way<L>>,
    /// Its REST: [`coordinator_edge::serve`].
    pub edge: Edge<L, S, SystemClock, Way<L>>,
    /// Stops its threads where they stand, as SIGSTOP would stop its process.
    pub freeze: Freeze,
    /// Who it is: for the board ([`coordinator::board::keep_board`]).
    pub identity: Identity,
}

/// Puts a coordinator together. On the runtime that it will run on.
///
/// # Errors
/// There is no HTTP client for other instances.
pub fn assemble<L, S, K>(parts: Parts<L, S, K>) -> Result<Coordinator<L, S, K>, NoClient>
where
    L: EventLog,
    S: SnapshotStore,
    K: AssignmentLock + Board,
{
    let Parts {
        log,
        store,
        lock,
        instance,
        incarnation,
        url,
        owner,
        drain_ms,
        insecure,
        metrics,
        spans,
        leaving,
        beside,
    } = parts;
    let peers = HttpPeers::new(instance.clone(), log.clone(), SystemClock, metrics.clone())?.with_board(lock.clone());
    let surface = Surface::with_peers(log.partition_count(), SystemClock, peers);
    let freeze = Freeze::default();
    let identity = Identity { instance: instance.clone(), incarnation, url };
    let config = EdgeConfig {
        drain_ms,
        insecure,
        lease_ms: owner.lease_ms,
        heartbeat_ms: owner.heartbeat_ms,
        ..EdgeConfig::default()
    };
    let service = Service {
        ports: Ports { log: log.clone(), store: store.clone(), lock, clock: SystemClock },
        cfg: owner,
        rules: OwnerRules::STANDARD,
        fold_rules: &task_core::STANDARD,
        identity: identity.clone(),
        entropy: SystemEntropy::default(),
        metrics: metrics.clone(),
        spans: spans.clone(),
        freeze: freeze.clone(),
        surface: surface.clone(),
    };
    let edge = Edge::new(EdgeParts {
        surface: surface.clone(),
        log,
        store,
        clock: SystemClock,
        entropy: Mutex::new(Box::new(SystemEntropy::default())),
        metrics,
        spans,
        instance,
        leaving,
        beside,
        config,
    });
    Ok(Coordinator { surface, service, edge, freeze, identity })
}
