//! Settings of the engine.

use std::time::Duration;

use task_core::decide::RetryPolicy;
use task_events::{Producer, Service, Text};

/// Largest ceiling of a backoff, ms: one day.
pub const MAX_BACKOFF_CAP_MS: u64 = 86_400_000;

/// Settings of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Who writes.
    pub producer: Producer,
    /// Where this instance answers, for the group's description; may be empty.
    pub url: String,
    /// When a task may run again.
    pub policy: RetryPolicy,
    /// Time a clean stop takes at most.
    pub leave_within: Duration,
}

impl EngineConfig {
    /// Standard settings.
    pub fn new(instance: Text, incarnation: task_events::Incarnation) -> Self {
        Self {
            producer: Producer { service: Service::TaskEngine, instance, incarnation },
            url: String::new(),
            policy: RetryPolicy::default(),
            leave_within: Duration::from_secs(5),
        }
    }

    /// Settings that cannot work.
    ///
    /// # Errors
    /// Names the settings and their values.
    pub fn check(&self) -> Result<(), InvalidConfig> {
        let RetryPolicy { base_ms, cap_ms, version } = self.policy;
        if base_ms > cap_ms {
            return Err(InvalidConfig(format!("base_ms {base_ms} must not exceed cap_ms {cap_ms}")));
        }
        if cap_ms > MAX_BACKOFF_CAP_MS {
            return Err(InvalidConfig(format!("cap_ms {cap_ms} must not exceed one day, {MAX_BACKOFF_CAP_MS}")));
        }
        if version == 0 {
            return Err(InvalidConfig("version of the policy must be at least 1, is 0".into()));
        }
        if self.producer.service != Service::TaskEngine || self.producer.instance.is_empty() {
            return Err(InvalidConfig(format!(
                "producer must be a named TASK_ENGINE, is {} {:?}",
                self.producer.service, self.producer.instance
            )));
        }
        Ok(())
    }
}

/// Settings that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid engine settings: {0}")]
pub struct InvalidConfig(pub String);
