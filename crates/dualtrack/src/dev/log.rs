//! The log `dualtrack dev` runs on: a folder, or a real Kafka.

use std::future::Future;
use std::time::Duration;

use event_log::{EmbeddedLog, EventLog, KafkaConfig, KafkaLog, LogError, TopicSpec, ensure_topic};

use super::Settings;

/// What a Kafka client gets to send what it holds, ms.
const CLOSE_MS: u64 = 5_000;

/// A log that is closed when everything that used it has ended.
pub trait DevLog: EventLog {
    /// Writes what is queued and lets go of the log.
    fn end(self) -> impl Future<Output = ()> + Send;
}

impl DevLog for EmbeddedLog {
    async fn end(self) {
        // It waits for its last sync. A panic there has been answered to everyone who waited.
        let _ = tokio::task::spawn_blocking(move || self.close()).await;
    }
}

impl DevLog for KafkaLog {
    async fn end(self) {
        if !self.close(Duration::from_millis(CLOSE_MS)).await {
            tracing::warn!("the Kafka client did not end in {CLOSE_MS} ms; the outcome of what it held is unknown");
        }
    }
}

/// Opens the topic, making it if it is not there.
pub(super) async fn kafka(settings: &Settings) -> Result<KafkaLog, LogError> {
    let mut config = KafkaConfig::new(&settings.log.bootstrap, &settings.log.topic, settings.dev.partitions);
    "dualtrack-dev".clone_into(&mut config.client_id);
    let spec = TopicSpec::single_node();
    ensure_topic(&config, &spec).await?;
    KafkaLog::open(config, &spec).await
}
