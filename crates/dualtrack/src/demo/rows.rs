//! The snapshot track of the demo: what people see of a task must be what the log says of it.

use anyhow::Context as _;
use service_kit::{Clock as _, SystemClock};
use snapshot_store::{EmbeddedConfig, EmbeddedStore, SnapshotStore};
use task_events::PartitionId;

use super::account::Account;
use super::files::Places;
use super::{DemoArgs, PARTITIONS, suite};

/// Rows held against the log.
pub struct Rows {
    /// Tasks whose row tells their last state.
    pub right: usize,
    /// First task whose row does not, and why.
    pub wrong: Option<String>,
    /// Partitions that a next owner need not fold from the start.
    pub checkpointed: usize,
}

/// Reads the row of every task of the account, and how many partitions have a checkpoint.
pub async fn compare(args: &DemoArgs, places: &Places, account: &Account) -> anyhow::Result<Rows> {
    if args.stack {
        return held_against(&suite::settings(args)?.store.connect().await?, account).await;
    }
    let store = EmbeddedStore::open(EmbeddedConfig::new(places.data.join("store"), || SystemClock.wall_ms()))?;
    let rows = held_against(&store, account).await;
    store.close();
    rows
}

async fn held_against(store: &impl SnapshotStore, account: &Account) -> anyhow::Result<Rows> {
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
    Ok(rows)
}
