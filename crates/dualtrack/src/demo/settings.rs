//! The settings of the demo's server.

use anyhow::Context as _;

use super::files::Places;
use super::{DemoArgs, LogKind, PARTITIONS};

/// Writes them. Leases are short enough to be watched running out: the resume after a kill waits for
/// them.
pub fn write(args: &DemoArgs, places: &Places) -> anyhow::Result<()> {
    let data = serde_json::to_string(&places.data).context("the work folder's name is no UTF-8")?;
    let log = match args.log {
        LogKind::Embedded => String::new(),
        LogKind::Kafka => {
            let bootstrap = args.bootstrap.as_deref().context("--log kafka needs --bootstrap HOST:PORT")?;
            let text = |text: &str| serde_json::Value::from(text).to_string();
            format!("[log]\nkind = \"kafka\"\nbootstrap = {}\ntopic = {}\n\n", text(bootstrap), text(&args.topic))
        }
    };
    let text = format!(
        "{log}[dev]\ndata = {data}\npartitions = {PARTITIONS}\n\n\
         [coordinator]\nlease_ms = 3000\nlease_max_ms = 3000\nheartbeat_ms = 1000\n\n\
         [lock]\nttl_ms = 3000\n\n\
         [task_engine]\nbackoff_base_ms = 100\n"
    );
    std::fs::write(&places.settings, text).with_context(|| format!("cannot write {}", places.settings.display()))
}
