//! The node goes away, stands still, or does what it is asked and its answer is lost.

use std::time::Duration;

use event_log::fault_proxy::{Fault, FaultProxy};
use snapshot_store::conformance::node::CassandraNode;
use snapshot_store::conformance::{
    Harness, NOW_MS, PARTITION, RESULT, closed_row, hash, marked_row, read, snapshot_write, task, write,
};
use snapshot_store::{CassandraStore, SnapshotStore, StoreError};
use task_events::{Offset, TaskState};

use crate::kit::{Cassandra, ask, raw, within};

/// A request's own limit, 2 s, and what a busy machine adds to it.
const ANSWERED: Duration = Duration::from_secs(5);

/// How soon a node that is there again is used again.
const BACK: Duration = Duration::from_secs(60);

async fn own_node() -> CassandraNode {
    tokio::task::spawn_blocking(|| CassandraNode::start(&[])).await.expect("a node")
}

fn row(n: u16, mark: u32) -> Vec<snapshot_store::RowWrite> {
    vec![snapshot_write(i64::from(mark), marked_row(task(PARTITION, n), mark))]
}

// Every kind of call, each within its time.
async fn is_away(store: &CassandraStore) {
    let away = |what: &str, answer: Result<(), StoreError>| {
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{what}: {answer:?}");
    };
    let id = task(PARTITION, 1);
    away("write", within("write", ANSWERED, store.write(PARTITION, row(1, 2))).await);
    away("snapshots", within("snapshots", ANSWERED, store.snapshots(vec![id])).await.map(drop));
    away("payload", within("payload", ANSWERED, store.put_payload(id, RESULT, "x".into())).await);
    away("secret", within("secret", ANSWERED, store.secret("a", [1; 32])).await.map(drop));
    away("acked", within("acked", ANSWERED, store.put_acked(PARTITION, Offset(1))).await);
    away("chunk", within("chunk", ANSWERED, store.chunk(hash(1))).await.map(drop));
    // A thousand rows wait for 256 places, and for nobody's longer than one request may take.
    let many = (0..1_000).flat_map(|n| row(n, 2)).collect();
    away("many", within("many", ANSWERED * 2, store.write(PARTITION, many)).await);
}

#[expect(clippy::disallowed_methods, reason = "asks a real node again, which nothing tells of")]
async fn is_back(store: &CassandraStore, mark: u32) {
    let again = async {
        while store.write(PARTITION, row(1, mark)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within("the node is used again", BACK, again).await;
    assert_eq!(read(store, task(PARTITION, 1)).await, Some(marked_row(task(PARTITION, 1), mark)));
}

/// A node that stands still, one that was killed, and back each time, with what was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_away_is_unavailable_and_comes_back() {
    let mut node = own_node().await;
    let h = Cassandra::on(&node).await;
    let store = h.store();
    write(&store, row(7, 1)).await;
    is_back(&store, 1).await;

    node.signal("STOP");
    is_away(&store).await;
    node.signal("CONT");
    is_back(&store, 3).await;

    node.signal("KILL");
    is_away(&store).await;
    let node = tokio::task::spawn_blocking(move || {
        node.restart();
        node
    });
    let node = node.await.expect("started again");
    is_back(&store, 4).await;
    assert_eq!(read(&store, task(PARTITION, 7)).await, Some(marked_row(task(PARTITION, 7), 1)));
    drop(node);
}

/// The answer is lost, the write is not: repeating it changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_without_an_answer_is_repeated() {
    let node = own_node().await;
    let direct = Cassandra::on(&node).await;
    let proxy = FaultProxy::start().expect("a proxy");
    proxy.forward_to(node.field("address").parse().expect("an address"));
    let mut config = direct.config.clone();
    config.contact_points = vec![format!("127.0.0.1:{}", proxy.port())];
    let store = CassandraStore::connect(config).await.expect("connected through the proxy");
    is_back(&store, 1).await;

    proxy.set(Fault::DropResponses);
    let ended = closed_row(task(PARTITION, 2), TaskState::Success, NOW_MS);
    let writes = || vec![snapshot_write(NOW_MS * 1_000, ended.clone())];
    let answer = within("an answer", ANSWERED, store.write(PARTITION, writes())).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    assert!(proxy.swallowed() > 0, "the fault was never met");
    assert_eq!(read(&direct.store, ended.core.id).await, Some(ended.clone()), "it was applied all the same");
    assert_eq!(direct.store.ended_task(ended.core.id).await, Ok(None), "what comes after it was not sent");

    proxy.set(Fault::None);
    is_back(&store, 2).await;
    write(&store, writes()).await;
    assert_eq!(read(&store, ended.core.id).await, Some(ended.clone()));
    assert!(direct.store.ended_task(ended.core.id).await.expect("read").is_some());
    let query = format!("SELECT WRITETIME(rest) FROM task_state_snapshots WHERE task_id = '{}'", ended.core.id);
    let written: Vec<(i64,)> = ask(&raw(&direct.config).await, &query).await;
    assert_eq!(written, [(NOW_MS * 1_000,)]);
}
