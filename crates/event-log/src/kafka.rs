//! The real log: one Kafka topic through librdkafka. docs/adr/012-kafka-client-layout.md has the
//! reasons for the shape: one idempotent producer, manually assigned consumers for the tails on
//! poll threads of their own, and group members that read nothing.

mod batch;
mod config;
mod context;
mod convert;
mod describe;
mod lane;
mod member;
mod membership;
mod positions;
mod producer;
mod random;
mod route;
mod tail;
mod topic;
mod watch;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use task_events::{Offset, PartitionId};
use tokio::sync::oneshot;

pub use self::config::KafkaConfig;
pub use self::member::KafkaMember;
pub use self::tail::KafkaTail;
pub use self::topic::{TopicFinding, TopicSpec, check_topic, ensure_topic, topic_exists, topic_findings};
use crate::{AppendOutcome, EventLog, LogError, MemberInfo, MemberSpec, OffsetRange, OutRecord, RawRecord};

use self::lane::Lanes;
use self::producer::Producer;
use self::random::Reader;

/// An open Kafka log. Clones share its clients; they end when the last clone is gone, or in
/// order with [`KafkaLog::close`].
#[derive(Clone)]
pub struct KafkaLog {
    shared: Arc<Shared>,
}

struct Shared {
    config: KafkaConfig,
    producer: Arc<Producer>,
    lanes: Arc<Lanes>,
    reader: Reader,
}

impl KafkaLog {
    /// Checks the topic and creates the clients. The topic must be there, see [`ensure_topic`].
    ///
    /// # Errors
    /// [`LogError::Refused`]: invalid settings, or a topic that contradicts the contract.
    /// [`LogError::Unavailable`]: the cluster didn't answer.
    pub async fn open(config: KafkaConfig, spec: &TopicSpec) -> Result<Self, LogError> {
        check_topic(&config, spec).await?;
        blocking(move || {
            let producer = Producer::new(config.clone())?;
            let reader = Reader::new(config.clone())?;
            let lanes = Lanes::new(config.clone());
            Ok(Self { shared: Arc::new(Shared { config, producer, lanes, reader }) })
        })
        .await
    }

    /// Takes no more appends, waits until those on their way are answered, at most `deadline`;
    /// then ends all tails. `false`: some appends were still open and became unknown. Members
    /// leave by themselves. Never waits for a client to close: that happens on its own thread.
    pub async fn close(&self, deadline: Duration) -> bool {
        let producer = self.shared.producer.clone();
        let flushed = blocking(move || Ok(producer.close(deadline))).await.unwrap_or(false);
        self.shared.lanes.close();
        flushed
    }

    fn check(&self, partition: PartitionId) -> Result<(), LogError> {
        if partition.0 < self.shared.config.partitions {
            return Ok(());
        }
        Err(LogError::Refused(format!("partition {partition} is not one of {}", self.shared.config.partitions)))
    }

    async fn read<T: Send + 'static>(
        &self,
        partition: PartitionId,
        work: impl FnOnce(&Shared) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        self.check(partition)?;
        let shared = self.shared.clone();
        blocking(move || work(&shared)).await
    }
}

impl EventLog for KafkaLog {
    type Tail = KafkaTail;
    type Member = KafkaMember;

    fn partition_count(&self) -> u16 {
        self.shared.config.partitions
    }

    fn append(
        &self,
        partition: PartitionId,
        batch: Vec<OutRecord>,
    ) -> impl Future<Output = AppendOutcome> + Send + 'static {
        let (tx, rx) = oneshot::channel();
        match self.check(partition) {
            Err(error) => drop(tx.send(AppendOutcome::NotSent(error.to_string()))),
            Ok(()) if batch.is_empty() => drop(tx.send(AppendOutcome::Acknowledged)),
            Ok(()) => self.shared.producer.append(partition, &batch, tx),
        }
        async move { rx.await.unwrap_or_else(|_| AppendOutcome::Unknown("the producer ended".into())) }
    }

    async fn tail(&self, partition: PartitionId, from: Offset) -> Result<KafkaTail, LogError> {
        self.read(partition, move |shared| KafkaTail::open(&shared.lanes, partition, from)).await
    }

    async fn range(&self, partition: PartitionId) -> Result<OffsetRange, LogError> {
        self.read(partition, move |shared| shared.reader.range(partition)).await
    }

    async fn read_at(&self, partition: PartitionId, offsets: Vec<Offset>) -> Result<Vec<RawRecord>, LogError> {
        self.read(partition, move |shared| shared.reader.read_at(partition, &offsets)).await
    }

    async fn offset_at(&self, partition: PartitionId, unix_ms: i64) -> Result<Option<Offset>, LogError> {
        self.read(partition, move |shared| shared.reader.offset_at(partition, unix_ms)).await
    }

    async fn join(&self, spec: MemberSpec) -> Result<KafkaMember, LogError> {
        let shared = self.shared.clone();
        blocking(move || KafkaMember::join(&shared.config, spec)).await
    }

    async fn members(&self) -> Result<Vec<MemberInfo>, LogError> {
        let shared = self.shared.clone();
        blocking(move || shared.reader.members()).await
    }
}

/// Runs a blocking call of the client library off the async workers.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<T, LogError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(LogError::Unavailable(format!("client call was cut off: {error}"))),
    }
}
