//! The snapshot track of the demo: what people see of a task must be what the log says of it.

use std::path::Path;

use anyhow::Context as _;
use event_log::EventLog;
use service_kit::{Clock as _, SystemClock};
use snapshot_store::{EmbeddedConfig, EmbeddedStore, SnapshotStore as _};
use task_events::PartitionId;

use super::PARTITIONS;
use super::account::Account;

/// Pause of the upkeep, ms.
const UPKEEP_EVERY_MS: u64 = 60_000;

/// Entries settled while writes wait.
const SWEPT_AT_ONCE: usize = 2_000;

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

/// Gives back the space of what has expired, and of checkpoints that the log's start has passed,
/// every minute for as long as it is polled.
pub async fn keep_up(store: EmbeddedStore, log: impl EventLog) {
    loop {
        let now_ms = SystemClock.wall_ms();
        let mut settled = SWEPT_AT_ONCE;
        while settled == SWEPT_AT_ONCE {
            settled = store.sweep(now_ms, SWEPT_AT_ONCE).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "expired rows stay for now");
                0
            });
        }
        for partition in (0..log.partition_count()).map(PartitionId) {
            // A log or a store that is away now is asked again in a minute.
            if let Ok(range) = log.range(partition).await
                && let Err(error) = store.forget_checkpoints(partition, range.start).await
            {
                tracing::warn!(%error, %partition, "old checkpoints stay for now");
            }
        }
        SystemClock.sleep_until(SystemClock.boot_ms().saturating_add(UPKEEP_EVERY_MS)).await;
    }
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
