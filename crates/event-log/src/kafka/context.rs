//! What librdkafka says on the side: to the log, with the name of the client.

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;

/// Context of a client without callbacks of its own.
pub(super) struct Quiet(pub &'static str);

impl ClientContext for Quiet {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(self.0, level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(client = self.0, %error, reason, "kafka client error");
    }
}

impl ConsumerContext for Quiet {}

pub(super) fn log(client: &str, level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical | RDKafkaLogLevel::Error => {
            tracing::error!(client, facility, message, "librdkafka");
        }
        RDKafkaLogLevel::Warning => tracing::warn!(client, facility, message, "librdkafka"),
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => tracing::info!(client, facility, message, "librdkafka"),
        RDKafkaLogLevel::Debug => tracing::debug!(client, facility, message, "librdkafka"),
    }
}
