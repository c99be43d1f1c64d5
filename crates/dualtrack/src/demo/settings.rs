//! The settings of the demo's server.

use anyhow::Context as _;

use super::files::Places;
use super::{DemoArgs, PARTITIONS};

/// Writes them. Leases are short enough to be watched running out: the resume after a kill waits for
/// them.
pub fn write(_: &DemoArgs, places: &Places) -> anyhow::Result<()> {
    let data = serde_json::to_string(&places.data).context("the work folder's name is no UTF-8")?;
    let text = format!(
        "[dev]\ndata = {data}\npartitions = {PARTITIONS}\n\n\
         [coordinator]\nlease_ms = 3000\nlease_max_ms = 3000\nheartbeat_ms = 1000\n\n\
         [task_engine]\nbackoff_base_ms = 100\n"
    );
    std::fs::write(&places.settings, text).with_context(|| format!("cannot write {}", places.settings.display()))
}
