//! Engine and replayer processes: the production services over simulated ports.

use std::sync::Arc;
use std::time::Duration;

use auto_replay::ReplayConfig;
use fold_start::StoredCheckpoints;
use service_kit::{Entropy, Metrics, Shutdown, Standings};
use task_core::Rules;
use task_core::decide::RetryPolicy;
use task_engine::EngineConfig;
use task_events::{Incarnation, Text};
use verdict_writer::FoldSource;

use crate::clock::SimClock;
use crate::hub::Hub;
use crate::ports::log::SimLog;
use crate::ports::store::SimStore;
use crate::rng::Rng;

/// Longest backoff of the engine, ms.
pub const CAP_MS: u64 = 2_000;

/// A process of the engine or the replayer.
pub struct Verdicts {
    /// Name.
    pub instance: Text,
    /// This start.
    pub incarnation: Incarnation,
    /// Topic.
    pub log: SimLog,
    /// Clock.
    pub clock: SimClock,
    /// Shared part, for the auditor.
    pub hub: Hub,
    /// Interval of checkpoints.
    pub checkpoint_every: u64,
    /// Rules of the fold.
    pub rules: &'static Rules,
    /// Seed of jitter.
    pub random: u64,
    /// Counters and alarms.
    pub metrics: Metrics,
}

/// Random numbers of a process.
pub struct Seeded(pub Rng);

impl Entropy for Seeded {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

impl Verdicts {
    fn source(&self) -> FoldSource {
        let checkpoints = StoredCheckpoints {
            log: self.log.clone(),
            store: SimStore::new(self.hub.clone()),
            clock: self.clock.clone(),
            rules: self.rules,
            metrics: self.metrics.clone(),
        };
        FoldSource { checkpoints: Arc::new(checkpoints), every: self.checkpoint_every, spans: Default::default() }
    }

    /// Runs the engine until the process is killed.
    pub async fn engine(self) {
        let mut config = EngineConfig::new(self.instance.clone(), self.incarnation);
        config.policy = RetryPolicy { base_ms: 50, cap_ms: CAP_MS, version: 1 };
        config.leave_within = Duration::from_millis(500);
        let deps = task_engine::Deps {
            source: self.source(),
            log: self.log,
            clock: self.clock,
            metrics: self.metrics,
            standings: Standings::default(),
            entropy: Box::new(Seeded(Rng::new(self.random))),
        };
        let ended = task_engine::run(deps, config, Shutdown::default()).await;
        gave_up(&self.hub, &self.instance, &format!("{ended:?}"));
    }

    /// Runs the replayer until the process is killed.
    pub async fn replayer(self) {
        let mut config = ReplayConfig::new(self.instance.clone(), self.incarnation);
        (config.guard_wait_ms, config.guard_reread_ms) = (1_500, 50);
        config.leave_within = Duration::from_millis(500);
        let deps = auto_replay::Deps {
            source: self.source(),
            log: self.log,
            store: SimStore::new(self.hub.clone()),
            clock: self.clock,
            metrics: self.metrics,
            standings: Standings::default(),
        };
        let ended = auto_replay::run(deps, config, Shutdown::default()).await;
        gave_up(&self.hub, &self.instance, &format!("{ended:?}"));
    }
}

/// Nothing in here asks a service to stop, so one that ends has given up.
pub fn gave_up(hub: &Hub, who: &str, how: &str) {
    hub.lock().audit.find(20, format!("{who} gave up: {how}"), None, None);
}
