//! What the store needs from time to time.

use event_log::EventLog;
use service_kit::{Clock as _, SystemClock};
use snapshot_store::CassandraStore;
use task_events::PartitionId;

/// Pause between two rounds, ms: a partition has two checkpoints and one a day.
const EVERY_MS: u64 = 3_600_000;

/// Removes checkpoints that the log's start has passed, every hour for as long as it is polled. Every
/// coordinator does so for every partition: repeating it changes nothing.
pub async fn keep_up(store: CassandraStore, log: impl EventLog) {
    loop {
        SystemClock.sleep_until(SystemClock.boot_ms().saturating_add(EVERY_MS)).await;
        for partition in (0..log.partition_count()).map(PartitionId) {
            // A log or a store that is away now is asked again in an hour.
            if let Ok(range) = log.range(partition).await
                && let Err(error) = store.forget_checkpoints(partition, range.start).await
            {
                tracing::warn!(%error, %partition, "old checkpoints stay for now");
            }
        }
    }
}
