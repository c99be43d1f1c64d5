//! What an embedded store needs from time to time.

use event_log::EventLog;
use service_kit::{Clock as _, SystemClock};
use snapshot_store::EmbeddedStore;
use task_events::PartitionId;

/// Pause between two rounds, ms.
const EVERY_MS: u64 = 60_000;

/// Entries settled while writes wait.
const SWEPT_AT_ONCE: usize = 2_000;

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
        SystemClock.sleep_until(SystemClock.boot_ms().saturating_add(EVERY_MS)).await;
    }
}
