//! Settings of the program: what `config.default.toml` documents.

use coordinator::owner::{ConfigConflict, LockUnavailablePolicy, OwnerConfig};
use serde::{Deserialize, Serialize};
use service_host::sections::{LockSection, LogSection, OnUnavailable, ServiceSection, StoreSection, TelemetrySection};
use service_host::{ProgramSettings, Rule};

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The process.
    pub service: ServiceSection,
    /// The event track.
    pub log: LogSection,
    /// The snapshot track.
    pub store: StoreSection,
    /// Locks.
    pub lock: LockSection,
    /// What the process says.
    pub telemetry: TelemetrySection,
    /// Owners.
    pub coordinator: CoordinatorSection,
}

/// `[coordinator]`: what a deployment may set of an [`OwnerConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is the OwnerConfig field of its name, documented there")]
pub struct CoordinatorSection {
    pub lease_ms: u64,
    pub lease_max_ms: u64,
    pub heartbeat_ms: u64,
    pub lease_margin_percent: u64,
    pub lease_margin_ms: u64,
    pub not_started_ms: u64,
    pub cancel_grace_ms: u64,
    pub proof_ms: u64,
    pub renew_ms: u64,
    pub request_ms: u64,
    pub max_in_flight: usize,
    pub owed_bytes: usize,
    pub row_lag_ms: u64,
    pub pen_lag_ms: u64,
    pub max_open_tasks: usize,
    pub optimistic_start: bool,
}

impl CoordinatorSection {
    /// Settings of the owners, beside those of their locks.
    pub fn owner(&self, lock_ttl_ms: u64, on_unavailable: OnUnavailable) -> OwnerConfig {
        OwnerConfig {
            lease_ms: self.lease_ms,
            lease_max_ms: self.lease_max_ms,
            heartbeat_ms: self.heartbeat_ms,
            lease_margin_percent: self.lease_margin_percent,
            lease_margin_ms: self.lease_margin_ms,
            not_started_ms: self.not_started_ms,
            cancel_grace_ms: self.cancel_grace_ms,
            proof_ms: self.proof_ms,
            renew_ms: self.renew_ms,
            request_ms: self.request_ms,
            max_in_flight: self.max_in_flight,
            owed_bytes: self.owed_bytes,
            row_lag_ms: self.row_lag_ms,
            pen_lag_ms: self.pen_lag_ms,
            max_open_tasks: self.max_open_tasks,
            optimistic_start: self.optimistic_start,
            lock_unavailable: match on_unavailable {
                OnUnavailable::FenceOnly => LockUnavailablePolicy::FenceOnly,
                OnUnavailable::Pause => LockUnavailablePolicy::Pause,
            },
            lock_ttl_ms,
            ..OwnerConfig::default()
        }
    }

    /// What must hold between leases, heartbeats and locks.
    pub fn rules(&self, lock_ttl_ms: u64) -> Vec<Rule> {
        let owner = self.owner(lock_ttl_ms, OnUnavailable::FenceOnly).rules();
        let mut rules: Vec<_> = owner
            .into_iter()
            .map(|(holds, ConfigConflict { first, first_value, second, second_value, rule })| {
                let key = |name: &str| format!("coordinator.{name}");
                Rule::two(holds, (&key(first), first_value), (&key(second), second_value), rule)
            })
            .collect();
        rules.push(Rule::one(lock_ttl_ms > 0, "lock.ttl_ms", lock_ttl_ms, "above 0"));
        rules.push(Rule::two(
            lock_ttl_ms <= self.lease_ms,
            ("lock.ttl_ms", lock_ttl_ms),
            ("coordinator.lease_ms", self.lease_ms),
            "the lock of an attempt that is over must go away: at most coordinator.lease_ms",
        ));
        rules
    }
}

impl Settings {
    /// Settings of the owners.
    pub fn owner(&self) -> OwnerConfig {
        self.coordinator.owner(self.lock.ttl_ms, self.lock.on_unavailable)
    }
}

impl ProgramSettings for Settings {
    const DEFAULTS: &'static str = include_str!("../config.default.toml");

    fn rules(&self) -> Vec<Rule> {
        let mut rules = self.service.rules();
        rules.extend(self.log.rules());
        rules.extend(self.store.rules());
        rules.extend(self.lock.rules());
        rules.extend(self.telemetry.rules());
        rules.extend(self.coordinator.rules(self.lock.ttl_ms));
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_defaults_are_those_of_the_code() {
        let settings = Settings::defaults().expect("the defaults load");
        settings.validate().expect("and are valid");
        assert_eq!(settings.owner(), OwnerConfig::default());
    }
}
