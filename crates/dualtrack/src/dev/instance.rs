//! One coordinator of the process: its runtime, its REST port, its surface, its freeze hook.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};

use assignment_lock::MemoryLock;
use coordinator::board::keep_board;
use coordinator::owner::Freeze;
use coordinator::surface::Surface;
use coordinator_edge::HttpPeers;
use dualtrack_coordinator::{Coordinator, Parts, assemble};
use event_log::EmbeddedLog;
use fold_start::StoredCheckpoints;
use futures::future::{Either, select};
use service_kit::{Clock as _, Metrics, Shutdown, Standings, SystemClock, SystemEntropy};
use snapshot_store::EmbeddedStore;
use spans::Spans;
use task_events::{Incarnation, Text};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use verdict_writer::FoldSource;

use super::{DevError, DevLog, Settings, upkeep};

/// The command surface of an instance.
pub type DevSurface<L = EmbeddedLog> = Surface<SystemClock, HttpPeers<L, SystemClock>>;

/// What the instances share.
pub(super) struct Shared<L> {
    pub settings: Settings,
    pub log: L,
    pub store: EmbeddedStore,
    pub lock: MemoryLock,
    pub incarnation: Incarnation,
    pub tell: UnboundedSender<Ended>,
    pub spans: Spans,
    /// Of the first instance, which engine and replayer share.
    pub metrics: Metrics,
}

/// A service that ended although nobody asked it to.
#[derive(Debug)]
pub(super) struct Ended {
    pub service: String,
    pub why: String,
}

/// One coordinator.
pub struct Instance<L: DevLog = EmbeddedLog> {
    name: Text,
    address: SocketAddr,
    surface: DevSurface<L>,
    freeze: Freeze,
    metrics: Metrics,
    engine: Standings,
    replayer: Standings,
    stop_edge: Shutdown,
    stop_service: Shutdown,
    edge: Option<JoinHandle<()>>,
    service: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

impl<L: DevLog> Instance<L> {
    pub(super) fn start(number: usize, listener: TcpListener, shared: &Shared<L>) -> Result<Self, DevError> {
        let settings = &shared.settings;
        let name: Text = format!("coordinator-{number}").into();
        let address = listener.local_addr().map_err(|why| DevError::Threads(why.to_string()))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(settings.dev.worker_threads)
            .thread_name(name.as_str())
            .enable_all()
            .build()
            .map_err(|why| DevError::Threads(why.to_string()))?;
        let metrics = if number == 1 { shared.metrics.clone() } else { Metrics::default() };
        let inside = runtime.enter();
        let (stop_edge, stop_service) = (Shutdown::default(), Shutdown::default());
        let [engine, replayer] = [Standings::default(), Standings::default()];
        let coordinator = assemble(Parts {
            log: shared.log.clone(),
            store: shared.store.clone(),
            lock: shared.lock.clone(),
            instance: name.clone(),
            incarnation: shared.incarnation,
            url: format!("http://{address}").into(),
            owner: settings.owner(),
            drain_ms: super::EDGE_DRAIN_MS,
            insecure: settings.dev.insecure,
            metrics: metrics.clone(),
            spans: shared.spans.clone(),
            leaving: stop_edge.clone(),
            beside: vec![(task_engine::GROUP, engine.clone()), (auto_replay::GROUP, replayer.clone())],
        });
        let Coordinator { surface, service, edge, freeze, identity } =
            coordinator.map_err(|why| DevError::Threads(why.to_string()))?;
        let listener = tokio::net::TcpListener::from_std(listener);
        let listener = listener.map_err(|why| DevError::Threads(why.to_string()))?;
        drop(inside);
        if !settings.archive.enabled {
            metrics.alarm(
                "nothing_is_kept",
                "archive.enabled = false: log and store are volatile, a restart loses all tasks",
            );
        }
        runtime.spawn(keep_board(
            shared.lock.clone(),
            surface.clone(),
            SystemClock,
            identity,
            metrics.clone(),
            stop_service.clone(),
        ));
        let service = watch(&runtime, shared, name.to_string(), service.run(stop_service.clone()));
        let serve = coordinator_edge::serve(listener, edge, stop_edge.clone());
        let edge = watch(&runtime, shared, format!("REST of {name}"), serve);
        let (edge, service, runtime) = (Some(edge), Some(service), Some(runtime));
        Ok(Self {
            name,
            address,
            surface,
            freeze,
            metrics,
            engine,
            replayer,
            stop_edge,
            stop_service,
            edge,
            service,
            runtime,
        })
    }

    /// Runs engine, replayer and the store's upkeep on this instance's threads.
    pub(super) fn start_projections(&mut self, shared: &Shared<L>, stop: &Shutdown) {
        let Some(runtime) = &self.runtime else { return };
        let Shared { log, store, incarnation, .. } = shared;
        let (clock, metrics) = (SystemClock, self.metrics.clone());
        let (rules, log, store) = (&task_core::STANDARD, log.clone(), store.clone());
        let checkpoints =
            StoredCheckpoints { log: log.clone(), store: store.clone(), clock, rules, metrics: metrics.clone() };
        let source = FoldSource::new(checkpoints).tracing(shared.spans.clone());
        let deps = task_engine::Deps {
            log: log.clone(),
            clock,
            metrics: metrics.clone(),
            standings: self.engine.clone(),
            entropy: Box::new(SystemEntropy::default()),
            source: source.clone(),
        };
        let config = shared.settings.engine("task-engine-1".into(), *incarnation);
        watch(runtime, shared, "task-engine".into(), task_engine::run(deps, config, stop.clone()));
        let standings = self.replayer.clone();
        let deps = auto_replay::Deps { log: log.clone(), store: store.clone(), clock, metrics, standings, source };
        let config = auto_replay::ReplayConfig::new("auto-replay-1".into(), *incarnation);
        watch(runtime, shared, "auto-replay".into(), auto_replay::run(deps, config, stop.clone()));
        runtime.spawn(upkeep::keep_up(store, log));
    }

    /// Its name, as events and the group show it.
    pub fn name(&self) -> &Text {
        &self.name
    }

    /// Where its REST answers.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its command surface.
    pub const fn surface(&self) -> &DevSurface<L> {
        &self.surface
    }

    /// Stops its threads where they stand, as SIGSTOP would stop its process.
    pub const fn freeze(&self) -> &Freeze {
        &self.freeze
    }

    /// Its counters and alarms.
    pub const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Accepts no more connections; what waits on purpose is answered.
    pub(super) fn stop_taking(&self) {
        self.freeze.thaw();
        self.stop_edge.request();
    }

    /// Waits until the requests under way are answered.
    pub(super) async fn join_edge(&mut self, within_ms: u64) -> Option<&'static str> {
        join(self.edge.take(), within_ms, "requests under way").await
    }

    /// Hands over every partition, with a checkpoint, and leaves the group.
    pub(super) async fn hand_over(&mut self, within_ms: u64) -> Option<&'static str> {
        self.stop_service.request();
        join(self.service.take(), within_ms, "hand-over of partitions").await
    }

    pub(super) fn take_runtime(&mut self) -> Option<Runtime> {
        self.runtime.take()
    }
}

impl<L: DevLog> Drop for Instance<L> {
    fn drop(&mut self) {
        self.freeze.thaw();
        // A plain drop would wait for its threads, which is a panic inside another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

// What is left at the deadline is dropped with its runtime.
async fn join(task: Option<JoinHandle<()>>, within_ms: u64, what: &'static str) -> Option<&'static str> {
    let until = SystemClock.sleep_until(SystemClock.boot_ms().saturating_add(within_ms));
    match select(task?, Box::pin(until)).await {
        Either::Left(_) => None,
        Either::Right(_) => Some(what),
    }
}

// Runs a service and tells when it ends by itself: by an error, or a panic.
fn watch<L, E: std::fmt::Display + Send + 'static>(
    runtime: &Runtime,
    shared: &Shared<L>,
    service: String,
    run: impl Future<Output = Result<(), E>> + Send + 'static,
) -> JoinHandle<()> {
    let (inner, tell) = (runtime.spawn(run), shared.tell.clone());
    runtime.spawn(async move {
        let why = match inner.await {
            Ok(Ok(())) => return,
            Ok(Err(why)) => why.to_string(),
            Err(why) if why.is_panic() => "it panicked: a defect, please report it".to_owned(),
            Err(_) => return,
        };
        tracing::error!(service, why, "a service ended");
        // Nobody listens any more during a stop.
        let _ = tell.send(Ended { service, why });
    })
}
