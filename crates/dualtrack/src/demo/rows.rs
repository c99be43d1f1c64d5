//! The snapshot track of the demo: what people see of a task must be what the log says of it.

use std::path::Path;

use anyhow::Context as _;
use service_kit::{Clock as _, SystemClock};
use snapshot_store::{EmbeddedConfig, EmbeddedStore, SnapshotStore as _};
use task_events::PartitionId;

use super::PARTITIONS;
use super::account::Account;

/// Rows held against the log.
pub struct Rows {
    /// Tasks whose row tells their last state.
    pub right: usize,
    /// First task whose row does not, and why.
    pub wrong: Option<String>,
    /// Partitions that a next owner need not fold from the start.
    pub checkpointed: usize,
}

/// Opens the store below the work folder.
pub fn open(dir: &Path) -> anyhow::Result<EmbeddedStore> {
    Ok(EmbeddedStore::open(EmbeddedConfig::new(dir, || SystemClock.wall_ms()))?)
}

/// Reads the row of every task of the account, and how many partitions have a checkpoint.
pub async fn compare(dir: &Path, account: &Account) -> anyhow::Result<Rows> {
    let store = open(dir)?;
    let ids: Vec<_> = account.tasks.keys().copied().collect();
    let found = store.snapshots(ids).await.context("cannot read the rows of the tasks")?;
    let mut rows = Rows { right: 0, wrong: None, checkpointed: 0 };
    for ((id, task), row) in account.tasks.iter().zip(found) {
        let seen = row.map_or("no row", |row| row.core.state.as_str());
        if seen == task.state.as_str() {
            rows.right += 1;
        } else {
            rows.wrong.get_or_insert(format!("{id} is {} in the log, {seen} in its row", task.state.as_str()));
        }
    }
    for p in 0..PARTITIONS {
        let checkpoints = store.checkpoints(PartitionId(p)).await.context("cannot read the checkpoints")?;
        rows.checkpointed += usize::from(!checkpoints.is_empty());
    }
    store.close();
    Ok(rows)
}
