//! Rows written anew from the log are those that owners wrote, field by field: on the embedded log, and on
//! a real Kafka and a real Cassandra.

mod checkpoints;
mod compare;
mod tasks;

use std::time::Duration;

use dualtrack::rebuild::{Rebuild, Rebuilt};
use event_log::conformance::broker::Broker;
use event_log::{Durability, EmbeddedConfig, EmbeddedLog, EventLog, KafkaLog, TopicSpec};
use service_kit::{Clock as _, Metrics, SystemClock};
use snapshot_store::conformance::node::CassandraNode;
use snapshot_store::{CassandraStore, MemoryStore, SnapshotStore, migrate};
use task_events::{Offset, PartitionId};

const PARTITIONS: u16 = 2;

// Rebuilds every partition.
async fn rebuild<L: EventLog, S: SnapshotStore>(log: &L, store: &S) -> Vec<Rebuilt> {
    let work = Rebuild { log: log.clone(), store: store.clone(), clock: SystemClock, metrics: Metrics::default() };
    let mut done = Vec::new();
    for partition in (0..PARTITIONS).map(PartitionId) {
        let mut told = 0;
        let rebuilt = work.partition(partition, |progress| told = progress.folded).await.expect("rebuilt");
        assert_eq!(told, rebuilt.to.0 - rebuilt.from.0, "progress reaches the end");
        done.push(rebuilt);
    }
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_the_embedded_log() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut config = EmbeddedConfig::new(dir.path(), PARTITIONS);
    config.durability = Durability::Volatile;
    let log = EmbeddedLog::open(config).expect("a log");
    let (written, anew) = (MemoryStore::default(), MemoryStore::default());
    tasks::run(&log, &written, 0).await;
    let done = rebuild(&log, &anew).await;
    let ids = compare::stores(&log, &written, &anew).await;
    assert!(done.iter().map(|one| one.rows).sum::<u64>() >= ids as u64, "{done:?}");
    assert!(done.iter().any(|one| one.quarantined > 0), "{done:?}");
    // Into a store that has them: nothing changes, and an older state does not come back.
    rebuild(&log, &written).await;
    compare::stores(&log, &written, &anew).await;
    log.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_kafka_in_cassandra() {
    let (broker, node) =
        tokio::task::spawn_blocking(|| (Broker::shared(), CassandraNode::shared())).await.expect("both");
    let log = KafkaLog::open(broker.topic(PARTITIONS).await, &TopicSpec::single_node()).await.expect("a log");
    let store = async || {
        let config = node.config(|| SystemClock.wall_ms());
        migrate(&config).await.expect("migrated");
        CassandraStore::connect(config).await.expect("connected")
    };
    let (written, anew, volatile) = (store().await, store().await, MemoryStore::default());
    tasks::run(&log, &written, 0).await;
    rebuild(&log, &anew).await;
    compare::stores(&log, &written, &anew).await;
    rebuild(&log, &volatile).await;
    compare::stores(&log, &volatile, &anew).await;
    log.close(Duration::from_secs(10)).await;
}

/// The log has forgotten its beginning: folded from the oldest checkpoint that it reaches, each task that
/// was open then or came later has its row again.
#[tokio::test(flavor = "multi_thread")]
async fn rows_from_a_checkpoint_on() {
    let broker = tokio::task::spawn_blocking(Broker::shared).await.expect("a broker");
    let config = broker.topic(PARTITIONS).await;
    let log = KafkaLog::open(config.clone(), &TopicSpec::single_node()).await.expect("a log");
    let (written, anew) = (MemoryStore::default(), MemoryStore::default());
    let mut ids = Vec::new();
    let mut ended = Vec::new();
    for id in tasks::run(&log, &written, 0).await {
        let row = written.snapshots(vec![id]).await.expect("read").pop().flatten().expect("a row");
        if row.core.state.is_terminal() { &mut ended } else { &mut ids }.push(id);
    }
    assert!(!ids.is_empty() && !ended.is_empty(), "of each some");
    let mut from = Vec::new();
    for partition in (0..PARTITIONS).map(PartitionId) {
        let (name, _) = written.checkpoints(partition).await.expect("read").into_iter().next().expect("a checkpoint");
        assert!(name.offset > Offset(0), "{name:?}");
        from.push(name.offset);
    }
    ids.extend(tasks::run(&log, &written, 1).await);
    for (partition, below) in (0..PARTITIONS).map(PartitionId).zip(&from) {
        broker.forget(&config.topic, partition, *below).await;
        assert_eq!(log.range(partition).await.expect("a range").start, *below);
        let nothing =
            Rebuild { log: log.clone(), store: anew.clone(), clock: SystemClock, metrics: Metrics::default() };
        let refused = nothing.partition(partition, |_| ()).await.expect_err("there is nothing to start from");
        assert!(refused.to_string().contains("the store has no checkpoint"), "{refused}");
        checkpoints::copied(partition, &written, &anew).await;
    }
    let done = rebuild(&log, &anew).await;
    assert_eq!(done.iter().map(|one| one.from).collect::<Vec<_>>(), from);
    for id in ended {
        assert_eq!(anew.snapshots(vec![id]).await.expect("read"), [None], "{id} ended before");
    }
    for id in ids {
        compare::rows(id, &written, &anew).await;
    }
    log.close(Duration::from_secs(10)).await;
}
