//! The Kafka adapter passes the conformance suite against a real broker, which
//! `scripts/kafka.sh` starts for this test process.
#![cfg(feature = "kafka")]

use std::time::Duration;

use event_log::conformance::broker::Broker;
use event_log::conformance::{Harness, read, record, within};
use event_log::fault_proxy::Fault;
use event_log::{AppendOutcome, EventLog, KafkaConfig, KafkaLog, LogError, RawRecord, Tail, TopicSpec, ensure_topic};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use task_events::{Offset, PartitionId};

struct Kafka {
    config: KafkaConfig,
    log: KafkaLog,
}

async fn open(config: &KafkaConfig) -> KafkaLog {
    KafkaLog::open(config.clone(), &TopicSpec::single_node()).await.expect("log")
}

impl Harness for Kafka {
    type Log = KafkaLog;

    async fn start(partitions: u16) -> Self {
        let config = Broker::shared().topic(partitions).await;
        let log = open(&config).await;
        Self { config, log }
    }

    fn log(&self) -> KafkaLog {
        self.log.clone()
    }

    async fn other(&self) -> KafkaLog {
        open(&self.config).await
    }

    async fn append_foreign(&self, record: RawRecord) {
        let producer: BaseProducer =
            ClientConfig::new().set("bootstrap.servers", &self.config.bootstrap).create().expect("producer");
        let mut out: BaseRecord<'_, [u8], [u8]> =
            BaseRecord::to(&self.config.topic).partition(i32::from(record.partition.0));
        out.key = record.key.as_deref();
        out.payload = record.value.as_deref();
        producer.send(out).map_err(|(error, _)| error).expect("send");
        producer.flush(Duration::from_secs(20)).expect("flush");
    }

    async fn losing_answers(&self) -> KafkaLog {
        let broker = Broker::shared();
        let mut config = self.config.clone();
        config.bootstrap = broker.proxied_bootstrap();
        config.delivery_timeout = Duration::from_secs(3);
        config.request_timeout = Duration::from_secs(2);
        let log = open(&config).await;
        // Connections are up once an append came back.
        let other = PartitionId(0);
        assert_eq!(log.append(other, vec![record("warm")]).await, AppendOutcome::Acknowledged);
        broker.proxy.set(Fault::DropResponses);
        log
    }

    async fn heal(&self) {
        let proxy = &Broker::shared().proxy;
        assert!(proxy.swallowed() > 0, "the fault was never met");
        proxy.set(Fault::None);
    }

    async fn delete_old(&self, partition: PartitionId) {
        Broker::shared().forget(&self.config.topic, partition, Offset(250)).await;
    }
}

event_log::conformance_suite!(Kafka);

/// Everything that contradicts the contract is named at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_against_the_contract_is_refused() {
    let config = Broker::shared().config(4);
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", &config.bootstrap).create().expect("admin");
    let bad = NewTopic::new(&config.topic, 3, TopicReplication::Fixed(1))
        .set("cleanup.policy", "compact")
        .set("retention.ms", "1000")
        .set("retention.bytes", "1000000")
        .set("unclean.leader.election.enable", "true")
        .set("max.message.bytes", "1000");
    let created = admin.create_topics([&bad], &AdminOptions::new()).await.expect("create");
    assert!(created.iter().all(Result::is_ok), "{created:?}");
    let Err(LogError::Refused(text)) = ensure_topic(&config, &TopicSpec::production()).await else {
        panic!("not refused")
    };
    for finding in [
        "cleanup.policy = compact must be delete",
        "retention.bytes = 1000000 must be -1",
        "message.timestamp.type = CreateTime must be LogAppendTime",
        "unclean.leader.election.enable = true must be false",
        "retention.ms = 1000 must be at least 7776000000",
        "max.message.bytes = 1000 must be at least 2162688",
        "min.insync.replicas = 1 must be at least 2",
        "partitions = 3 must be 4, as configured",
        "replication = 1 must be at least 3",
    ] {
        assert!(text.contains(finding), "{finding:?} is not in {text:?}");
    }
    let refused = KafkaLog::open(config, &TopicSpec::single_node()).await.map(|_| ());
    assert!(matches!(refused, Err(LogError::Refused(_))), "{refused:?}");
}

/// Closing in order: what was called is answered, later appends are certainly not sent, tails end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_answers_everything() {
    let kafka = Kafka::start(2).await;
    let p = PartitionId(0);
    let mut tail = kafka.log.tail(p, Offset(0)).await.expect("tail");
    let waits: Vec<_> = (0..500).map(|i| kafka.log.append(p, vec![record(format!("r{i}"))])).collect();
    assert!(kafka.log.close(Duration::from_secs(20)).await);
    for wait in waits {
        assert_eq!(wait.await, AppendOutcome::Acknowledged);
    }
    assert!(matches!(kafka.log.append(p, vec![record("late")]).await, AppendOutcome::NotSent(_)));
    within("the tail's end", async { while tail.next().await.is_ok() {} }).await;
    assert_eq!(read(&kafka.other().await, p, Offset(0), 500).await.len(), 500);
}
