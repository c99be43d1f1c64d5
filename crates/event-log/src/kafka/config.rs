//! Settings of the Kafka adapter. Every librdkafka option that matters is set here explicitly
//! and printed at start: its defaults differ from what the binding's documentation says.

use std::fmt;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;

use crate::LogError;

/// Settings of one client of the topic; see each field for its range.
#[derive(Clone, PartialEq, Eq)]
pub struct KafkaConfig {
    /// `host:port[,host:port…]`.
    pub bootstrap: String,
    /// Name of the topic.
    pub topic: String,
    /// Client id of everything but group members, which bring their own. Shown in broker logs.
    pub client_id: String,
    /// Partitions the topic must have, 1–1,024.
    pub partitions: u16,
    /// How long the producer waits to fill a request, ms. Default 0: latency first; under load
    /// requests fill by themselves, since at most five are in flight.
    pub linger_ms: u32,
    /// `none`, `lz4`, `zstd` or `gzip`. Default `lz4`.
    pub compression: String,
    /// After this an append that was not acknowledged is `Unknown`, 1 s – 120 s. Default 30 s.
    pub delivery_timeout: Duration,
    /// How long any single request may take, 100 ms – 60 s. Default 10 s.
    pub request_timeout: Duration,
    /// Most records on their way; more is answered `NotSent`. Default 100,000, half of the
    /// client's own queue, which therefore never fills.
    pub max_in_flight: usize,
    /// Most bytes on their way. Default 128 MiB; the client's own queue is four times that.
    pub max_in_flight_bytes: usize,
    /// Largest record, key and headers included. Default 2 MiB + 64 KiB.
    pub max_record_bytes: usize,
    /// How long a fetch waits at the end of the log, 1–500 ms; also how long a newly opened tail
    /// may wait for its first fetch. Default 50 ms.
    pub fetch_wait: Duration,
    /// Bytes for which a fetch waits, as long as it may, 1 B – 1 MiB. Default 1: the newest record at once. Who
    /// does not need that asks for more, and the broker answers it less often.
    pub fetch_min_bytes: u32,
    /// Bytes that one tail holds for a slow reader before its partition is paused. Default 8 MiB.
    pub tail_buffer_bytes: usize,
    /// Check the crc32c of fetched batches (audit-report does). Default true: it costs little.
    pub check_crcs: bool,
    /// Silence after which a member is dropped from its group, 1 s – 60 s. Default 6 s.
    pub session_timeout: Duration,
    /// Time a member has to release a revoked partition, below 50 s. Default 3 s.
    pub revoke_deadline: Duration,
    /// Further librdkafka options (`security.protocol`, …); they win over those set here.
    pub extra: Vec<(String, String)>,
}

impl KafkaConfig {
    /// The defaults for a topic.
    pub fn new(bootstrap: impl Into<String>, topic: impl Into<String>, partitions: u16) -> Self {
        Self {
            bootstrap: bootstrap.into(),
            topic: topic.into(),
            client_id: "dualtrack".into(),
            partitions,
            linger_ms: 0,
            compression: "lz4".into(),
            delivery_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(10),
            max_in_flight: 100_000,
            max_in_flight_bytes: 128 << 20,
            max_record_bytes: (2 << 20) + (64 << 10),
            fetch_wait: Duration::from_millis(50),
            fetch_min_bytes: 1,
            tail_buffer_bytes: 8 << 20,
            check_crcs: true,
            session_timeout: Duration::from_secs(6),
            revoke_deadline: Duration::from_secs(3),
            extra: Vec::new(),
        }
    }

    pub(super) fn check(&self) -> Result<(), LogError> {
        let within = |name: &str, value: Duration, low: u64, high: u64| {
            let range = Duration::from_millis(low)..=Duration::from_millis(high);
            if range.contains(&value) {
                return Ok(());
            }
            Err(LogError::Refused(format!("{name} = {} ms is not in {low}..={high} ms", value.as_millis())))
        };
        if self.partitions == 0 || self.partitions > task_events::MAX_PARTITIONS {
            let text = format!("partitions = {} is not in 1..={}", self.partitions, task_events::MAX_PARTITIONS);
            return Err(LogError::Refused(text));
        }
        within("delivery_timeout", self.delivery_timeout, 1_000, 120_000)?;
        within("request_timeout", self.request_timeout, 100, 60_000)?;
        within("fetch_wait", self.fetch_wait, 1, 500)?;
        if !(1..=1 << 20).contains(&self.fetch_min_bytes) {
            let text = format!("fetch_min_bytes = {} is not in 1..={}", self.fetch_min_bytes, 1 << 20);
            return Err(LogError::Refused(text));
        }
        within("session_timeout", self.session_timeout, 1_000, 60_000)?;
        // The revocation waits inside poll, which must come back before max.poll.interval.ms.
        within("revoke_deadline", self.revoke_deadline, 0, 50_000)
    }

    pub(super) fn producer(&self) -> ClientConfig {
        let queue_records = self.max_in_flight.saturating_mul(2);
        let queue_kib = (self.max_in_flight_bytes / 1024).saturating_mul(4).clamp(1024, 2_097_151);
        self.client(
            &self.client_id,
            &[
                ("enable.idempotence", "true".into()),
                ("acks", "all".into()),
                ("max.in.flight.requests.per.connection", "5".into()),
                ("retries", "2147483647".into()),
                ("retry.backoff.ms", "50".into()),
                ("linger.ms", self.linger_ms.to_string()),
                ("batch.size", "1000000".into()),
                ("batch.num.messages", "10000".into()),
                ("compression.type", self.compression.clone()),
                ("delivery.timeout.ms", ms(self.delivery_timeout)),
                ("request.timeout.ms", ms(self.request_timeout.min(self.delivery_timeout))),
                ("queue.buffering.max.messages", queue_records.to_string()),
                ("queue.buffering.max.kbytes", queue_kib.to_string()),
                ("message.max.bytes", self.max_record_bytes.to_string()),
            ],
        )
    }

    /// Consumer of explicitly assigned partitions; it never joins a group.
    pub(super) fn reader(&self, fetch_wait: Duration) -> ClientConfig {
        let mut options = self.consumer_options(fetch_wait);
        // librdkafka wants a group id to assign anything at all; nothing is ever committed to it.
        options.push(("group.id", "dualtrack-unused".into()));
        self.client(&self.client_id, &options)
    }

    /// Consumer that is a member of a group and reads nothing.
    pub(super) fn member(&self, group: &str, client_id: &str) -> ClientConfig {
        let mut options = self.consumer_options(Duration::from_millis(500));
        let heartbeat = (self.session_timeout / 20).clamp(Duration::from_millis(100), Duration::from_secs(3));
        options.extend([
            ("group.id", group.to_owned()),
            ("group.protocol", "classic".into()),
            ("partition.assignment.strategy", "cooperative-sticky".into()),
            ("session.timeout.ms", ms(self.session_timeout)),
            ("heartbeat.interval.ms", ms(heartbeat)),
            ("max.poll.interval.ms", "60000".into()),
            ("queued.min.messages", "1".into()),
        ]);
        self.client(client_id, &options)
    }

    fn consumer_options(&self, fetch_wait: Duration) -> Vec<(&'static str, String)> {
        vec![
            ("enable.auto.commit", "false".into()),
            ("enable.auto.offset.store", "false".into()),
            ("auto.offset.reset", "error".into()),
            ("isolation.level", "read_uncommitted".into()),
            ("check.crcs", self.check_crcs.to_string()),
            ("enable.partition.eof", "false".into()),
            ("allow.auto.create.topics", "false".into()),
            ("fetch.min.bytes", self.fetch_min_bytes.to_string()),
            ("fetch.wait.max.ms", ms(fetch_wait)),
            ("fetch.queue.backoff.ms", "50".into()),
            ("fetch.error.backoff.ms", "100".into()),
            ("queued.max.messages.kbytes", "65536".into()),
            ("fetch.message.max.bytes", "1048576".into()),
        ]
    }

    /// Options of every kind of client, then those of this one, then the user's own.
    pub(super) fn client(&self, client_id: &str, options: &[(&str, String)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set_log_level(RDKafkaLogLevel::Warning);
        config
            .set("bootstrap.servers", &self.bootstrap)
            .set("client.id", client_id)
            .set("socket.keepalive.enable", "true")
            .set("socket.nagle.disable", "true")
            .set("socket.timeout.ms", ms(self.request_timeout))
            .set("socket.connection.setup.timeout.ms", "5000")
            .set("reconnect.backoff.ms", "50")
            .set("reconnect.backoff.max.ms", "1000")
            .set("topic.metadata.refresh.interval.ms", "60000")
            .set("statistics.interval.ms", "0")
            .set("log.connection.close", "false");
        for (name, value) in options {
            config.set(*name, value);
        }
        for (name, value) in &self.extra {
            config.set(name, value);
        }
        config
    }

    /// Whether an option's value must not be printed.
    pub(super) fn is_secret(name: &str) -> bool {
        ["password", "secret", "private", "key.pem", "certificate", "jaas", "oauthbearer.config", "username"]
            .iter()
            .any(|part| name.contains(part))
    }
}

impl fmt::Debug for KafkaConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaConfig")
            .field("bootstrap", &self.bootstrap)
            .field("topic", &self.topic)
            .field("client_id", &self.client_id)
            .field("partitions", &self.partitions)
            .finish_non_exhaustive()
    }
}

/// Says what a client runs with; secrets are left out.
pub(super) fn print(kind: &str, config: &ClientConfig) {
    let mut options: Vec<String> = config
        .config_map()
        .iter()
        .map(|(name, value)| {
            let shown = if KafkaConfig::is_secret(name) { "[redacted]" } else { value };
            format!("{name}={shown}")
        })
        .collect();
    options.sort_unstable();
    tracing::info!(client = kind, options = %options.join(" "), "kafka client options");
}

fn ms(duration: Duration) -> String {
    duration.as_millis().to_string()
}
