//! Settings, validated: what `config.default.toml` documents.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::ValueEnum;
use coordinator::owner::OwnerConfig;
use dualtrack_coordinator::CoordinatorSection;
use dualtrack_task_engine::EngineSection;
use serde::{Deserialize, Serialize};
use service_host::sections::{OnUnavailable, TelemetrySection};
use service_host::{ProgramSettings, Rule, SettingsError};
use task_engine::EngineConfig;
use task_events::{Incarnation, MAX_PARTITIONS, Text};

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The process.
    pub dev: DevSettings,
    /// The event track.
    pub log: LogSettings,
    /// What is kept.
    pub archive: ArchiveSettings,
    /// Owners.
    pub coordinator: CoordinatorSection,
    /// Locks.
    pub lock: LockSettings,
    /// Retries.
    pub task_engine: EngineSection,
    /// What the process tells of itself.
    pub telemetry: TelemetrySection,
}

/// `[dev]`: the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DevSettings {
    /// Folder of log and store.
    pub data: PathBuf,
    /// Where REST answers, `HOST:PORT`.
    pub listen: String,
    /// Addresses other than loopback are served.
    pub insecure: bool,
    /// Partitions of the log, 1 to 1,024.
    pub partitions: u16,
    /// Coordinators, 1 or 2.
    pub instances: u16,
    /// Threads of each instance, 1 to 64.
    pub worker_threads: usize,
}

/// `[log]`: the event track.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// Where it is.
    pub kind: LogKind,
    /// Kafka's `HOST:PORT`, with `kafka`.
    pub bootstrap: String,
    /// Topic, with `kafka`; made if it is not there.
    pub topic: String,
}

/// `log.kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LogKind {
    /// In the folder.
    Embedded,
    /// A topic of a real Kafka; rows and checkpoints stay in the folder.
    Kafka,
}

/// `[archive]`: what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveSettings {
    /// `false`: log and store are volatile, nothing is kept.
    pub enabled: bool,
}

/// `[lock]`: locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockSettings {
    /// What to do while the lock server is away.
    pub on_unavailable: OnUnavailable,
    /// Time to live of a lock, ms; at most the lease.
    pub ttl_ms: u64,
}

impl Settings {
    /// Addresses to listen on, one for each instance.
    ///
    /// # Errors
    /// What is no address, or has no next port.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, SettingsError> {
        let listen = &self.dev.listen;
        let refuse = |rule| SettingsError::Setting { key: "dev.listen".into(), value: listen.clone(), rule };
        let first = match listen.strip_prefix("localhost:") {
            Some(port) => port.parse().ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            None => listen.parse().ok(),
        };
        let first = first.ok_or_else(|| refuse("it must be IP:PORT, such as 127.0.0.1:7420 or [::1]:7420"))?;
        let next = |n: u16| match first.port() {
            0 => Ok(first),
            port => {
                let port = port.checked_add(n).ok_or_else(|| refuse("the second instance needs the next port"))?;
                Ok(SocketAddr::new(first.ip(), port))
            }
        };
        (0..self.dev.instances).map(next).collect()
    }

    /// Settings of the owners.
    pub fn owner(&self) -> OwnerConfig {
        self.coordinator.owner(self.lock.ttl_ms, self.lock.on_unavailable)
    }

    /// Settings of the engine.
    pub fn engine(&self, instance: Text, incarnation: Incarnation) -> EngineConfig {
        self.task_engine.engine(instance, incarnation)
    }
}

impl ProgramSettings for Settings {
    const DEFAULTS: &'static str = include_str!("config.default.toml");

    fn rules(&self) -> Vec<Rule> {
        let (dev, log) = (&self.dev, &self.log);
        let mut rules = vec![
            Rule::one((1..=MAX_PARTITIONS).contains(&dev.partitions), "dev.partitions", dev.partitions, "1 to 1024"),
            Rule::one((1..=2).contains(&dev.instances), "dev.instances", dev.instances, "1 or 2"),
            Rule::one((1..=64).contains(&dev.worker_threads), "dev.worker_threads", dev.worker_threads, "1 to 64"),
        ];
        match self.addresses() {
            Err(broken) => rules.push(Rule::broken(broken)),
            Ok(addresses) => rules.push(Rule::two(
                dev.insecure || addresses.iter().all(|address| address.ip().is_loopback()),
                ("dev.listen", &dev.listen),
                ("dev.insecure", dev.insecure),
                "only loopback addresses are served without --insecure, since nobody is authenticated yet",
            )),
        }
        let kind = match log.kind {
            LogKind::Embedded => "embedded",
            LogKind::Kafka => "kafka",
        };
        rules.extend([
            Rule::two(
                log.kind == LogKind::Embedded || !log.bootstrap.is_empty(),
                ("log.kind", kind),
                ("log.bootstrap", format!("{:?}", log.bootstrap)),
                "kafka needs HOST:PORT of a broker",
            ),
            Rule::two(
                log.kind == LogKind::Embedded || self.archive.enabled,
                ("log.kind", kind),
                ("archive.enabled", self.archive.enabled),
                "archive.enabled = false keeps nothing, a topic keeps everything: use log.kind = embedded",
            ),
        ]);
        rules.extend(self.coordinator.rules(self.lock.ttl_ms));
        rules.extend(self.task_engine.rules());
        rules.extend(self.telemetry.rules());
        rules
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use service_host::{Origin, Sources};
    use task_core::decide::RetryPolicy;

    use super::*;

    fn flags(flags: &[(&str, &str)]) -> Sources {
        let flags = flags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Sources { flags, ..Sources::default() }
    }

    fn refusal(sources: &Sources) -> String {
        sources.load::<Settings>().and_then(|settings| settings.validate()).expect_err("refused").to_string()
    }

    #[test]
    fn the_documented_defaults_are_those_of_the_code() {
        let settings = Settings::defaults().expect("the defaults load");
        settings.validate().expect("and are valid");
        assert_eq!(settings.owner(), OwnerConfig::default());
        let engine: EngineConfig = settings.engine("e".into(), Incarnation(1));
        assert_eq!(engine.policy, RetryPolicy::default());
        assert_eq!(format!("http://{}", settings.dev.listen), crate::dev::DEFAULT_URL);
    }

    #[test]
    fn later_layers_win_and_print_as_they_are_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("c.toml");
        std::fs::write(&file, "[coordinator]\nlease_ms = 70000\nheartbeat_ms = 9000\n[dev]\npartitions = 3\n")
            .expect("a file");
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let environment = BTreeMap::from([
            variable("DUALTRACK_COORDINATOR__LEASE_MS", "80000"),
            variable("DUALTRACK_DEV__PARTITIONS", "5"),
            variable("DUALTRACK_LOCK__ON_UNAVAILABLE", "pause"),
            variable("DUALTRACK_LOG", "info"),
            variable("HOME", "/root"),
        ]);
        let sources = Sources {
            file: Some(file),
            environment,
            ..flags(&[("dev.partitions", "7"), ("archive.enabled", "false")])
        };
        let settings: Settings = sources.load().expect("settings");
        let c = settings.coordinator;
        assert_eq!((c.lease_ms, c.heartbeat_ms, settings.dev.partitions), (80_000, 9_000, 7));
        assert_eq!((settings.lock.on_unavailable, settings.archive.enabled), (OnUnavailable::Pause, false));
        let printed = dir.path().join("printed.toml");
        std::fs::write(&printed, settings.to_toml()).expect("a file");
        assert_eq!(
            Sources { file: Some(printed), ..Sources::default() }.load::<Settings>().expect("settings"),
            settings
        );
    }

    #[test]
    fn each_value_says_where_it_came_from() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("c.toml");
        std::fs::write(&file, "[coordinator]\nlease_ms = 70000\nheartbeat_ms = 9000\n[dev]\npartitions = 3\n")
            .expect("a file");
        let sources = Sources {
            file: Some(file.clone()),
            environment: [("DUALTRACK_COORDINATOR__LEASE_MS".to_owned(), "80000".to_owned())].into(),
            flags: vec![("dev.partitions".to_owned(), "7".to_owned())],
        };
        let all = sources.explain::<Settings>().expect("settings");
        let of = |key: &str| all.iter().find(|setting| setting.key == key).expect("known");
        assert_eq!(of("dev.partitions").from, Origin::Flag);
        assert_eq!(of("coordinator.lease_ms").from, Origin::Variable("DUALTRACK_COORDINATOR__LEASE_MS".to_owned()));
        assert_eq!(of("coordinator.lease_ms").value, 80_000);
        assert_eq!(of("coordinator.heartbeat_ms").from, Origin::File(file));
        assert_eq!(of("lock.ttl_ms").from, Origin::Default);
    }

    #[test]
    fn a_lease_that_cannot_be_renewed_is_refused_with_both_keys() {
        for (lease, fine) in [("30000", false), ("59000", false), ("90000", true)] {
            let sources = flags(&[("coordinator.heartbeat_ms", "30000"), ("coordinator.lease_ms", lease)]);
            if fine {
                sources.load::<Settings>().and_then(|settings| settings.validate()).expect("90 s are three heartbeats");
                continue;
            }
            let text = refusal(&sources);
            assert!(text.contains(&format!("lease_ms = {lease}")) && text.contains("heartbeat_ms = 30000"), "{text}");
        }
    }

    #[test]
    fn ranges_are_named() {
        for (key, value, word) in [
            ("dev.partitions", "0", "1 to 1024"),
            ("dev.partitions", "1025", "1 to 1024"),
            ("dev.instances", "3", "1 or 2"),
            ("dev.worker_threads", "0", "1 to 64"),
            ("dev.listen", "nowhere", "IP:PORT"),
            ("dev.listen", "0.0.0.0:7420", "--insecure"),
            ("dev.listen", "[::]:7420", "--insecure"),
            ("lock.ttl_ms", "60001", "coordinator.lease_ms"),
            ("task_engine.backoff_base_ms", "300001", "cap_ms"),
        ] {
            let text = refusal(&flags(&[(key, value)]));
            assert!(text.contains(word) && text.contains(value), "{key}: {text}");
        }
        let two = refusal(&flags(&[("dev.instances", "2"), ("dev.listen", "127.0.0.1:65535")]));
        assert!(two.contains("next port"), "{two}");
        flags(&[("dev.listen", "0.0.0.0:7420"), ("dev.insecure", "true")])
            .load::<Settings>()
            .expect("settings")
            .validate()
            .expect("said so");
    }
}
