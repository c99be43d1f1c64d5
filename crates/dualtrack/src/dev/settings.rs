//! Settings, validated: what `config.default.toml` documents.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::ValueEnum;
use coordinator::owner::{LockUnavailablePolicy, OwnerConfig};
use serde::{Deserialize, Serialize};
use task_core::decide::RetryPolicy;
use task_engine::EngineConfig;
use task_events::{Incarnation, Text};

use super::DevError;

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
    pub coordinator: CoordinatorSettings,
    /// Locks.
    pub lock: LockSettings,
    /// Retries.
    pub task_engine: EngineSettings,
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

/// `[coordinator]`: what a deployment may set of an [`OwnerConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is the OwnerConfig field of its name, documented there")]
pub struct CoordinatorSettings {
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

/// `[lock]`: locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockSettings {
    /// What to do while the lock server is away.
    pub on_unavailable: OnUnavailable,
    /// Time to live of a lock, ms; at most the lease.
    pub ttl_ms: u64,
}

/// `lock.on_unavailable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnavailable {
    /// Hand out, fenced by the log.
    FenceOnly,
    /// Hand out nothing.
    Pause,
}

/// `[task_engine]`: retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSettings {
    /// First pause before a retry, ms.
    pub backoff_base_ms: u64,
    /// Longest, ms.
    pub backoff_cap_ms: u64,
}

impl Settings {
    /// Addresses to listen on, one for each instance.
    ///
    /// # Errors
    /// [`DevError::Setting`] for what is no address, or has no next port.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, DevError> {
        let listen = &self.dev.listen;
        let refuse = |rule| DevError::Setting { key: "dev.listen", value: listen.clone(), rule };
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
        let c = self.coordinator;
        OwnerConfig {
            lease_ms: c.lease_ms,
            lease_max_ms: c.lease_max_ms,
            heartbeat_ms: c.heartbeat_ms,
            lease_margin_percent: c.lease_margin_percent,
            lease_margin_ms: c.lease_margin_ms,
            not_started_ms: c.not_started_ms,
            cancel_grace_ms: c.cancel_grace_ms,
            proof_ms: c.proof_ms,
            renew_ms: c.renew_ms,
            request_ms: c.request_ms,
            max_in_flight: c.max_in_flight,
            owed_bytes: c.owed_bytes,
            row_lag_ms: c.row_lag_ms,
            pen_lag_ms: c.pen_lag_ms,
            max_open_tasks: c.max_open_tasks,
            optimistic_start: c.optimistic_start,
            lock_unavailable: match self.lock.on_unavailable {
                OnUnavailable::FenceOnly => LockUnavailablePolicy::FenceOnly,
                OnUnavailable::Pause => LockUnavailablePolicy::Pause,
            },
            lock_ttl_ms: self.lock.ttl_ms,
            ..OwnerConfig::default()
        }
    }

    /// Settings of the engine.
    pub fn engine(&self, instance: Text, incarnation: Incarnation) -> EngineConfig {
        let standard = EngineConfig::new(instance, incarnation);
        let EngineSettings { backoff_base_ms: base_ms, backoff_cap_ms: cap_ms } = self.task_engine;
        EngineConfig { policy: RetryPolicy { base_ms, cap_ms, ..standard.policy }, ..standard }
    }
}
