//! The program: connects the real ports, serves with its probes beside it, leaves its group.

use event_log::EventLog;
use fold_start::StoredCheckpoints;
use service_host::prover::{self, Finding};
use service_host::sections::{ServiceSection, TelemetrySection};
use service_host::{CLOSE, EngineError, Probes, Program, RunError, Running, Started, connected};
use service_kit::{Metrics, Shutdown, Standings, SystemClock};
use snapshot_store::SnapshotStore;
use spans::Spans;
use task_events::{Incarnation, Text};
use tokio::net::TcpListener;
use verdict_writer::FoldSource;

use crate::Settings;

/// What the replayer runs on.
pub struct Deps<L, S> {
    /// The topic.
    pub log: L,
    /// The snapshot track.
    pub store: S,
    /// Where its probes answer.
    pub listener: TcpListener,
    /// Name of the instance.
    pub instance: Text,
    /// Where others see its probes.
    pub url: String,
    /// This start of the process.
    pub incarnation: Incarnation,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// Where spans go.
    pub spans: Spans,
}

/// Plans until `shutdown` is requested, then leaves its group.
///
/// # Errors
/// A part of it ended by itself, or did not end in time.
pub async fn run<L, S>(deps: Deps<L, S>, settings: &Settings, shutdown: Shutdown) -> Result<(), RunError>
where
    L: EventLog,
    S: SnapshotStore,
{
    let Deps { log, store, listener, instance, url, incarnation, metrics, spans } = deps;
    let (standings, stop_service) = (Standings::default(), Shutdown::default());
    let rules = &task_core::STANDARD;
    let checkpoints = StoredCheckpoints {
        log: log.clone(),
        store: store.clone(),
        clock: SystemClock,
        rules,
        metrics: metrics.clone(),
    };
    let replayer = auto_replay::Deps {
        log: log.clone(),
        store,
        clock: SystemClock,
        metrics: metrics.clone(),
        standings: standings.clone(),
        source: FoldSource::new(checkpoints).tracing(spans),
    };
    let mut config = settings.auto_replay.replayer(instance.clone(), incarnation);
    config.url = url;
    let service = tokio::spawn(auto_replay::run(replayer, config, stop_service.clone()));
    let probes =
        Probes { service: auto_replay::GROUP, instance, log, metrics, standings, insecure: settings.service.insecure };
    let (http, leaving, stop_http) = probes.serve(listener);
    Running { service, http, leaving, stop_service, stop_http }.until(&shutdown).await
}

/// `dualtrack-auto-replay`.
#[derive(Debug)]
pub struct ReplayProgram;

impl Program for ReplayProgram {
    const NAME: &'static str = "dualtrack-auto-replay";
    const ABOUT: &'static str =
        "Auto-replay of Dualtrack: what remains to be done of a broken-off task? On Kafka and Cassandra";
    type Settings = Settings;

    fn common(settings: &Settings) -> (&ServiceSection, &TelemetrySection) {
        (&settings.service, &settings.telemetry)
    }

    async fn prove(settings: &Settings) -> Result<Vec<Finding>, EngineError> {
        let mut findings = prover::log(&settings.log, Self::NAME).await?;
        findings.extend(prover::store(&settings.store).await?);
        Ok(findings)
    }

    async fn serve(started: Started<Settings>) -> Result<(), RunError> {
        let (shutdown, settings) = (&started.shutdown, &started.settings);
        let log = connected(shutdown, || settings.log.connect_unhurried(Self::NAME)).await?;
        let store = connected(shutdown, || settings.store.connect()).await?;
        started.announce(Self::NAME, &format!("{}, {}", settings.log, settings.store));
        let Started { settings, listener, instance, url, incarnation, metrics, spans, shutdown } = started;
        let deps =
            Deps { log: log.clone(), store, listener, instance: instance.into(), url, incarnation, metrics, spans };
        let ended = run(deps, &settings, shutdown).await;
        log.close(CLOSE).await;
        ended
    }
}
