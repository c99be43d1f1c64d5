//! The settings of the demo's server.

use anyhow::Context as _;
use dualtrack::dev::{LogKind, Settings};
use service_host::{ProgramSettings as _, Sources};

use super::files::Places;
use super::{DemoArgs, PARTITIONS};

/// What differs from the defaults: leases short enough to be watched running out, since the resume after a
/// kill waits for them.
pub const CHOSEN: [(&str, &str); 5] = [
    ("coordinator.lease_ms", "3000"),
    ("coordinator.lease_max_ms", "3000"),
    ("coordinator.heartbeat_ms", "1000"),
    ("lock.ttl_ms", "3000"),
    ("task_engine.backoff_base_ms", "100"),
];

/// Writes those of `dualtrack dev`.
pub fn write(args: &DemoArgs, places: &Places) -> anyhow::Result<()> {
    places.data.to_str().context("the work folder's name is no UTF-8")?;
    let flags = CHOSEN.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let mut settings: Settings = Sources { flags, ..Sources::default() }.load()?;
    settings.dev.data.clone_from(&places.data);
    settings.dev.partitions = PARTITIONS;
    if args.log == LogKind::Kafka {
        settings.log.kind = LogKind::Kafka;
        settings.log.bootstrap = args.bootstrap.clone().context("--log kafka needs --bootstrap HOST:PORT")?;
        settings.log.topic.clone_from(&args.topic);
    }
    std::fs::write(&places.settings, settings.to_toml())
        .with_context(|| format!("cannot write {}", places.settings.display()))
}
