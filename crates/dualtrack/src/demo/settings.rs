//! The settings of the demo's server.

use anyhow::Context as _;
use dualtrack::dev::{LogKind, Settings};

use super::files::Places;
use super::{DemoArgs, PARTITIONS};

/// Leases short enough to be watched running out: the resume after a kill waits for them.
const LEASE_MS: u64 = 3_000;

/// Writes them.
pub fn write(args: &DemoArgs, places: &Places) -> anyhow::Result<()> {
    places.data.to_str().context("the work folder's name is no UTF-8")?;
    let mut settings = Settings::defaults()?;
    settings.dev.data.clone_from(&places.data);
    settings.dev.partitions = PARTITIONS;
    if args.log == LogKind::Kafka {
        settings.log.kind = LogKind::Kafka;
        settings.log.bootstrap = args.bootstrap.clone().context("--log kafka needs --bootstrap HOST:PORT")?;
        settings.log.topic.clone_from(&args.topic);
    }
    settings.coordinator.lease_ms = LEASE_MS;
    settings.coordinator.lease_max_ms = LEASE_MS;
    settings.coordinator.heartbeat_ms = 1_000;
    settings.lock.ttl_ms = LEASE_MS;
    settings.task_engine.backoff_base_ms = 100;
    std::fs::write(&places.settings, settings.to_toml())
        .with_context(|| format!("cannot write {}", places.settings.display()))
}
