//! `dualtrack dev`: all services in one process on embedded ports (design.md §11).
//!
//! [`Dev::start`] opens log and store in one folder, gives each coordinator its own runtime and REST
//! port, and runs engine and replayer beside the first. The services still meet only in the topic;
//! what they share is the ports. [`Dev::stop`] answers what is in flight, hands everything over and
//! closes both.

mod command;
mod error;
mod folder;
mod instance;
mod log;
mod settings;
mod upkeep;

use std::net::SocketAddr;
use std::time::Duration;

use assignment_lock::MemoryLock;
use event_log::{EmbeddedLog, KafkaLog};
use service_host::ProgramSettings as _;
use service_kit::{Clock as _, Entropy as _, Metrics, Shutdown, SystemClock, SystemEntropy};
use snapshot_store::EmbeddedStore;
use task_events::Incarnation;
use telemetry::Exporting;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub use command::{DevArgs, run};
pub use error::DevError;
pub use instance::{DevSurface, Instance};
pub use log::DevLog;
pub use settings::{ArchiveSettings, DevSettings, LockSettings, LogKind, LogSettings, Settings};
pub use upkeep::keep_up;

use folder::Folder;
use instance::{Ended, Shared};

/// Where `dualtrack dev` listens and the command line asks, unless told otherwise.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7420";

/// Pause between looks at who owns what, ms.
const LOOK_AGAIN_MS: u64 = 5;

/// Longest an edge gets for the requests under way, ms; then it closes the connections that are left, be it of
/// a client that sends a byte a second …
const EDGE_DRAIN_MS: u64 = 4_000;

/// … and what it gets until all that is done, ms: more, or which comes first would be chance.
const EDGE_END_MS: u64 = 5_000;

/// Longest an instance gets to hand its partitions over, ms.
const HAND_OVER_MS: u64 = 2_500;

/// What a runtime's threads get to end, ms.
const THREADS_MS: u64 = 500;

/// Everything in one process. Dropping it stops without a hand-over, as a crash would.
pub struct Dev<L: DevLog = EmbeddedLog> {
    instances: Vec<Instance<L>>,
    services: Shutdown,
    log: L,
    store: EmbeddedStore,
    folder: Folder,
    ended: UnboundedReceiver<Ended>,
    exporting: Option<Exporting>,
}

impl Dev {
    /// Opens the folder and starts everything. Blocks while log and store are opened; no runtime is
    /// needed around it.
    ///
    /// # Errors
    /// Settings that contradict each other, a folder in use or damaged, a port that is taken.
    pub fn start(settings: &Settings) -> Result<Self, DevError> {
        settings.validate()?;
        let listeners = listen(settings)?;
        let folder = Folder::open(settings)?;
        let log = folder.log(settings)?;
        Self::assemble(settings, listeners, folder, log)
    }
}

impl Dev<KafkaLog> {
    /// The same on the topic that `log.bootstrap` and `log.topic` name; rows and checkpoints are in the
    /// folder.
    ///
    /// # Errors
    /// Those of [`Dev::start`], and what keeps the topic from being used.
    pub async fn start_on_kafka(settings: &Settings) -> Result<Self, DevError> {
        settings.validate()?;
        let listeners = listen(settings)?;
        let folder = Folder::open(settings)?;
        let log = log::kafka(settings).await?;
        Self::assemble(settings, listeners, folder, log)
    }
}

impl<L: DevLog> Dev<L> {
    fn assemble(
        settings: &Settings,
        listeners: Vec<std::net::TcpListener>,
        folder: Folder,
        log: L,
    ) -> Result<Self, DevError> {
        let store = folder.store()?;
        let clock = SystemClock;
        let incarnation = Incarnation::new(clock.wall_ms(), SystemEntropy::default().next_u64() as u32);
        let (tell, ended) = unbounded_channel();
        let metrics = Metrics::default();
        // What becomes of spans the first instance counts.
        let (spans, exporting) = settings.telemetry.export("dualtrack-dev", "dev-1", &metrics)?;
        let shared = Shared {
            settings: settings.clone(),
            log: log.clone(),
            store: store.clone(),
            lock: MemoryLock::new(move || clock.boot_ms()),
            incarnation,
            tell,
            spans,
            metrics,
        };
        let mut instances = Vec::new();
        for (number, listener) in (1..).zip(listeners) {
            instances.push(Instance::start(number, listener, &shared)?);
        }
        let services = Shutdown::default();
        if let Some(first) = instances.first_mut() {
            first.start_projections(&shared, &services);
        }
        Ok(Self { instances, services, log, store, folder, ended, exporting })
    }

    /// The coordinators, the first of which engine and replayer run beside.
    pub fn instances(&self) -> &[Instance<L>] {
        &self.instances
    }

    /// Where REST answers, by instance.
    pub fn urls(&self) -> Vec<String> {
        self.instances.iter().map(Instance::url).collect()
    }

    /// The shared log.
    pub fn log(&self) -> &L {
        &self.log
    }

    /// The shared store.
    pub fn store(&self) -> &EmbeddedStore {
        &self.store
    }

    /// Waits until every partition has an owner that read its claim back.
    ///
    /// # Errors
    /// A service ended instead.
    pub async fn ready(&mut self) -> Result<(), DevError> {
        loop {
            if let Ok(ended) = self.ended.try_recv() {
                return Err(ended.into());
            }
            let owned: std::collections::BTreeSet<_> =
                self.instances.iter().flat_map(|i| i.surface().owned()).collect();
            if owned.len() == usize::from(event_log::EventLog::partition_count(&self.log)) {
                return Ok(());
            }
            SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_AGAIN_MS).await;
        }
    }

    /// Waits until a service ends although nobody asked it to; pending for ever otherwise.
    pub async fn failure(&mut self) -> DevError {
        match self.ended.recv().await {
            Some(ended) => ended.into(),
            None => std::future::pending().await,
        }
    }

    /// Answers what is in flight, hands every partition over with a checkpoint, and closes log and
    /// store: within about ten seconds, whatever happens.
    ///
    /// # Errors
    /// Names what did not end in time. Nothing is lost by that: the log has everything.
    pub async fn stop(mut self) -> Result<(), DevError> {
        let mut late = Vec::new();
        self.instances.iter().for_each(Instance::stop_taking);
        self.services.request();
        for instance in &mut self.instances {
            late.extend(instance.join_edge(EDGE_END_MS).await);
        }
        // One after the other: what the second hands over the first takes and hands over in its turn.
        for instance in self.instances.iter_mut().rev() {
            late.extend(instance.hand_over(HAND_OVER_MS).await);
        }
        let runtimes: Vec<_> = self.instances.iter_mut().filter_map(Instance::take_runtime).collect();
        let Self { log, store, folder, exporting, .. } = self;
        let closed = tokio::task::spawn_blocking(move || {
            for runtime in runtimes {
                runtime.shutdown_timeout(Duration::from_millis(THREADS_MS));
            }
            store.close();
            let left = exporting.map_or(0, Exporting::end);
            if left > 0 {
                tracing::warn!(left, "the collector did not take the last spans in time");
            }
        });
        if closed.await.is_err() {
            late.push("store");
        }
        log.end().await;
        drop(folder);
        if late.is_empty() { Ok(()) } else { Err(DevError::Late(late)) }
    }
}

// Bound before anything is opened: a port that is taken costs nobody a recovery.
fn listen(settings: &Settings) -> Result<Vec<std::net::TcpListener>, DevError> {
    let addresses: Vec<SocketAddr> = settings.addresses()?;
    addresses
        .into_iter()
        .map(|address| {
            let taken = |why: std::io::Error| DevError::Listen { address, why: why.to_string() };
            let listener = std::net::TcpListener::bind(address).map_err(taken)?;
            listener.set_nonblocking(true).map_err(taken)?;
            Ok(listener)
        })
        .collect()
}
