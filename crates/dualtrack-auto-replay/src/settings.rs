//! Settings of the program: what `config.default.toml` documents.

use auto_replay::ReplayConfig;
use serde::{Deserialize, Serialize};
use service_host::sections::{LogSection, ServiceSection, StoreSection, TelemetrySection};
use service_host::{ProgramSettings, Rule};
use task_events::{Incarnation, Text};

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The process.
    pub service: ServiceSection,
    /// The event track.
    pub log: LogSection,
    /// The snapshot track: rows, and checkpoints.
    pub store: StoreSection,
    /// What the process says.
    pub telemetry: TelemetrySection,
    /// Plans.
    pub auto_replay: ReplaySection,
}

/// `[auto_replay]`: plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaySection {
    /// Longest wait for a snapshot row to catch up, ms.
    pub guard_wait_ms: u64,
    /// Wait before a row that is behind is read again, ms; doubled each time, up to 1 s.
    pub guard_reread_ms: u64,
    /// Tasks per batched read.
    pub batch: usize,
    /// Batched reads at a time, per partition.
    pub parallel: usize,
}

impl ReplaySection {
    /// Settings of the replayer.
    pub fn replayer(&self, instance: Text, incarnation: Incarnation) -> ReplayConfig {
        let Self { guard_wait_ms, guard_reread_ms, batch, parallel } = *self;
        let standard = ReplayConfig::new(instance, incarnation);
        ReplayConfig { guard_wait_ms, guard_reread_ms, batch, parallel, ..standard }
    }

    /// What must hold of plans.
    pub fn rules(&self) -> Vec<Rule> {
        let Self { guard_wait_ms, guard_reread_ms, batch, parallel } = *self;
        vec![
            Rule::one((1..=5_000).contains(&guard_wait_ms), "auto_replay.guard_wait_ms", guard_wait_ms, "1 to 5000"),
            Rule::two(
                (1..=guard_wait_ms).contains(&guard_reread_ms),
                ("auto_replay.guard_reread_ms", guard_reread_ms),
                ("auto_replay.guard_wait_ms", guard_wait_ms),
                "a row is read again within the wait, and not at once",
            ),
            Rule::one((1..=100).contains(&batch), "auto_replay.batch", batch, "1 to 100"),
            Rule::one((1..=64).contains(&parallel), "auto_replay.parallel", parallel, "1 to 64"),
        ]
    }
}

impl ProgramSettings for Settings {
    const DEFAULTS: &'static str = include_str!("../config.default.toml");

    fn rules(&self) -> Vec<Rule> {
        let mut rules = self.service.rules();
        rules.extend(self.log.rules());
        rules.extend(self.store.rules());
        rules.extend(self.telemetry.rules());
        rules.extend(self.auto_replay.rules());
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
        let standard = ReplayConfig::new("r".into(), Incarnation(1));
        assert_eq!(settings.auto_replay.replayer("r".into(), Incarnation(1)), standard);
    }
}
