//! Settings of the program: what `config.default.toml` documents.

use serde::{Deserialize, Serialize};
use service_host::sections::{LogSection, ServiceSection, StoreSection, TelemetrySection};
use service_host::{ProgramSettings, Rule, SettingsError};
use task_core::decide::RetryPolicy;
use task_engine::EngineConfig;
use task_events::{Incarnation, Text};

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The process.
    pub service: ServiceSection,
    /// The event track.
    pub log: LogSection,
    /// The snapshot track: checkpoints.
    pub store: StoreSection,
    /// What the process says.
    pub telemetry: TelemetrySection,
    /// Retries.
    pub task_engine: EngineSection,
}

/// `[task_engine]`: retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSection {
    /// First pause before a retry, ms.
    pub backoff_base_ms: u64,
    /// Longest, ms.
    pub backoff_cap_ms: u64,
}

impl EngineSection {
    /// Settings of the engine.
    pub fn engine(&self, instance: Text, incarnation: Incarnation) -> EngineConfig {
        let standard = EngineConfig::new(instance, incarnation);
        let Self { backoff_base_ms: base_ms, backoff_cap_ms: cap_ms } = *self;
        EngineConfig { policy: RetryPolicy { base_ms, cap_ms, ..standard.policy }, ..standard }
    }

    /// What must hold of pauses.
    pub fn rules(&self) -> Vec<Rule> {
        let engine = self.engine("task-engine".into(), Incarnation(0));
        let RetryPolicy { base_ms, cap_ms, .. } = engine.policy;
        let mut rules = vec![Rule::two(
            base_ms <= cap_ms,
            ("task_engine.backoff_base_ms", base_ms),
            ("task_engine.backoff_cap_ms", cap_ms),
            "the first pause is not above the longest",
        )];
        let rest = engine.check().map_err(|why| SettingsError::Layer(format!("task_engine: {why}")));
        rules.extend(rest.err().filter(|_| base_ms <= cap_ms).map(Rule::broken));
        rules
    }
}

impl ProgramSettings for Settings {
    const DEFAULTS: &'static str = include_str!("../config.default.toml");

    fn rules(&self) -> Vec<Rule> {
        let mut rules = self.service.rules();
        rules.extend(self.log.rules());
        rules.extend(self.store.rules());
        rules.extend(self.telemetry.rules());
        rules.extend(self.task_engine.rules());
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
        assert_eq!(settings.task_engine.engine("e".into(), Incarnation(1)).policy, RetryPolicy::default());
    }
}
