//! Settings of the replayer.

use std::time::Duration;

use task_events::{Incarnation, Producer, Service, Text};

/// Settings of the replayer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayConfig {
    /// Who writes.
    pub producer: Producer,
    /// Where this instance answers, for the group's description; may be empty.
    pub url: String,
    /// Longest wait for a snapshot row to catch up, ms (design.md §10: at most 5 s).
    pub guard_wait_ms: u64,
    /// Wait before a row that is behind is read again, ms; doubled each time, up to 1 s.
    pub guard_reread_ms: u64,
    /// Tasks per batched read.
    pub batch: usize,
    /// Batched reads at a time, per partition.
    pub parallel: usize,
    /// Time a clean stop takes at most.
    pub leave_within: Duration,
}

impl ReplayConfig {
    /// Standard settings.
    pub fn new(instance: Text, incarnation: Incarnation) -> Self {
        Self {
            producer: Producer { service: Service::AutoReplay, instance, incarnation },
            url: String::new(),
            guard_wait_ms: 5_000,
            guard_reread_ms: 100,
            batch: 100,
            parallel: 4,
            leave_within: Duration::from_secs(5),
        }
    }

    /// Settings that cannot work.
    ///
    /// # Errors
    /// Names the settings and their values.
    pub fn check(&self) -> Result<(), InvalidConfig> {
        let Self { guard_wait_ms, guard_reread_ms, batch, parallel, .. } = self;
        if *guard_wait_ms > 5_000 || *guard_reread_ms == 0 || guard_reread_ms > guard_wait_ms {
            return Err(InvalidConfig(format!(
                "guard_reread_ms {guard_reread_ms} must be in 1..=guard_wait_ms {guard_wait_ms}, and that at most 5000"
            )));
        }
        if !(1..=100).contains(batch) || *parallel == 0 {
            return Err(InvalidConfig(format!("batch {batch} must be in 1..=100 and parallel {parallel} at least 1")));
        }
        if self.producer.service != Service::AutoReplay || self.producer.instance.is_empty() {
            return Err(InvalidConfig(format!(
                "producer must be a named AUTO_REPLAY, is {} {:?}",
                self.producer.service, self.producer.instance
            )));
        }
        Ok(())
    }
}

/// Settings that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid replayer settings: {0}")]
pub struct InvalidConfig(pub String);
