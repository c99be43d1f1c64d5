//! The program: connects the real ports, serves, hands over.

use assignment_lock::{AssignmentLock, Board};
use coordinator::board::keep_board;
use event_log::EventLog;
use futures::future::{Either, FutureExt as _, select};
use service_host::prover::{self, Finding};
use service_host::sections::{ServiceSection, TelemetrySection};
use service_host::{CLOSE, EngineError, Program, RunError, Running, Started, connected};
use service_kit::{Clock as _, Metrics, Shutdown, SystemClock};
use snapshot_store::SnapshotStore;
use spans::Spans;
use task_events::{Incarnation, Text};
use tokio::net::TcpListener;

use crate::upkeep::keep_up;
use crate::{Coordinator, Parts, Settings, assemble};

/// After a shutdown request connections are closed at the latest after this, ms.
const DRAIN_MS: u64 = 4_000;

/// Longest the board may take to forget this instance, ms.
const BOARD_MS: u64 = 500;

/// What a coordinator runs on.
pub struct Deps<L, S, K> {
    /// The topic.
    pub log: L,
    /// The snapshot track.
    pub store: S,
    /// Assignment locks, and the board beside them.
    pub lock: K,
    /// Where REST answers.
    pub listener: TcpListener,
    /// Name of the instance.
    pub instance: Text,
    /// Where others reach it.
    pub url: Text,
    /// This start of the process.
    pub incarnation: Incarnation,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// Where spans go.
    pub spans: Spans,
}

/// Serves until `shutdown` is requested, then hands over.
///
/// # Errors
/// A part of it ended by itself, or did not end in time.
pub async fn run<L, S, K>(deps: Deps<L, S, K>, settings: &Settings, shutdown: Shutdown) -> Result<(), RunError>
where
    L: EventLog,
    S: SnapshotStore,
    K: AssignmentLock + Board,
{
    let Deps { log, store, lock, listener, instance, url, incarnation, metrics, spans } = deps;
    let leaving = Shutdown::default();
    let parts = Parts {
        log,
        store,
        lock: lock.clone(),
        instance,
        incarnation,
        url,
        owner: settings.owner(),
        drain_ms: DRAIN_MS,
        insecure: settings.service.insecure,
        metrics: metrics.clone(),
        spans,
        leaving: leaving.clone(),
        beside: Vec::new(),
    };
    let coordinator = assemble(parts).map_err(|why| RunError::Threads(why.to_string()))?;
    let Coordinator { surface, service, edge, identity, .. } = coordinator;
    let (stop_service, stop_http) = (Shutdown::default(), Shutdown::default());
    let board = tokio::spawn(keep_board(lock, surface, SystemClock, identity, metrics, stop_service.clone()));
    let service = tokio::spawn(service.run(stop_service.clone()));
    let http = tokio::spawn(coordinator_edge::serve(listener, edge, stop_http.clone()));
    let ended = Running { service, http, leaving, stop_service, stop_http }.until(&shutdown).await;
    // It takes its entry down when the service stops; nobody waits long for a board that does not answer.
    let patience = SystemClock.sleep_until(SystemClock.boot_ms().saturating_add(BOARD_MS));
    if let Either::Right((_, board)) = select(board, patience.boxed()).await {
        board.abort();
    }
    ended
}

/// `dualtrack-coordinator`.
#[derive(Debug)]
pub struct CoordinatorProgram;

impl Program for CoordinatorProgram {
    const NAME: &'static str = "dualtrack-coordinator";
    const ABOUT: &'static str =
        "Coordinator of Dualtrack: owns partitions, answers REST; on Kafka, Cassandra and Redis";
    type Settings = Settings;

    fn common(settings: &Settings) -> (&ServiceSection, &TelemetrySection) {
        (&settings.service, &settings.telemetry)
    }

    async fn prove(settings: &Settings) -> Result<Vec<Finding>, EngineError> {
        let mut findings = prover::log(&settings.log, Self::NAME).await?;
        findings.extend(prover::store(&settings.store).await?);
        findings.extend(prover::lock(&settings.lock).await?);
        Ok(findings)
    }

    async fn serve(started: Started<Settings>) -> Result<(), RunError> {
        let (shutdown, settings) = (&started.shutdown, &started.settings);
        let log = connected(shutdown, || settings.log.connect(Self::NAME)).await?;
        let store = connected(shutdown, || settings.store.connect()).await?;
        let lock = settings.lock.connect()?;
        started.announce(Self::NAME, &format!("{}, {}, {}", settings.log, settings.store, settings.lock));
        let Started { settings, listener, instance, url, incarnation, metrics, spans, shutdown } = started;
        let (instance, url) = (instance.into(), url.into());
        let upkeep = tokio::spawn(keep_up(store.clone(), log.clone()));
        let deps = Deps { log: log.clone(), store, lock, listener, instance, url, incarnation, metrics, spans };
        let ended = run(deps, &settings, shutdown).await;
        upkeep.abort();
        log.close(CLOSE).await;
        ended
    }
}
