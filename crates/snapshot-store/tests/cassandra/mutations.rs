//! What a task costs the cluster.

use std::sync::Arc;

use snapshot_store::conformance::listings::named;
use snapshot_store::conformance::{Harness, NOW_MS, PARTITION, closed_row, hash, snapshot_write, task, write};
use snapshot_store::{CassandraStore, PayloadItem, SnapshotStore};
use task_events::{Sha256Hash, TaskState};

use crate::kit::{Cassandra, raw};

/// Parameters; step output and result as one; row; `tasks_by_time`: four for the standard task of the
/// benchmarks, and nothing for what a hundred of them share.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standard_task_costs_four_mutations() {
    let h = Cassandra::start().await;
    let store = h.store();
    let one = async |n: u16| {
        let id = task(PARTITION, n);
        store
            .put_payload(id, PayloadItem::Parameters { payload_hash: hash(3) }, vec![b'x'; 200].into())
            .await
            .expect("stored");
        let output = PayloadItem::StepOutput { step: "only".into(), output_hash: hash(1) };
        let result = PayloadItem::Result { result_data_hash: hash(2) };
        store.put_payloads(vec![(id, output, "a".into()), (id, result, "b".into())]).await.expect("stored");
        let mut row = named(closed_row(id, TaskState::Success, NOW_MS), None, "bench", None);
        Arc::make_mut(&mut row.row).error_code = None;
        write(&store, vec![snapshot_write(NOW_MS * 1_000 + i64::from(n), row)]).await;
    };
    one(0).await;
    let before = store.mutations();
    for n in 1..=100 {
        one(n).await;
    }
    assert_eq!(store.mutations() - before, 400);
}

/// A large payload is no part of a batch that a node would refuse.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_items_of_one_call_are_several_mutations() {
    let h = Cassandra::start().await;
    let store = h.store();
    let id = task(PARTITION, 1);
    let item = |n: u8| PayloadItem::StepOutput { step: "s".into(), output_hash: hash(n) };
    let items: Vec<_> = (0..12).map(|n| (id, item(n), vec![n; 256 << 10].into())).collect();
    let before = store.mutations();
    store.put_payloads(items.clone()).await.expect("stored");
    assert_eq!(store.mutations() - before, 3, "4 of 256 KiB each");
    let found = store.payloads((0..12).map(|n| (id, item(n))).collect()).await.expect("read");
    assert!(found.iter().zip(&items).all(|(found, (.., bytes))| found.as_ref() == Some(bytes)));
}

/// Parameters are asked for soon after they were stored: by the session that stored them they are not read
/// again, in whatever order and among whatever else they are asked for. Others read what the nodes have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_just_stored_cost_no_read() {
    let h = Cassandra::start().await;
    let (store, other) = (h.store(), CassandraStore::connect(h.config.clone()).await.expect("connected"));
    let (first, second) = (task(PARTITION, 1), task(PARTITION, 2));
    let of =
        |text: &'static str| (PayloadItem::Parameters { payload_hash: Sha256Hash::of(text.as_bytes()) }, text.into());
    let ((one, its), (two, theirs)) = (of("one"), of("two"));
    let result = PayloadItem::Result { result_data_hash: hash(2) };
    let items = vec![(first, one.clone(), its), (first, result.clone(), "r".into()), (second, two.clone(), theirs)];
    store.put_payloads(items).await.expect("stored");
    let wanted = vec![(second, two), (first, result.clone()), (first, result), (first, one.clone()), (second, one)];
    let all = [Some("two".into()), Some("r".into()), Some("r".into()), Some("one".into()), None];
    for store in [&store, &other] {
        assert_eq!(store.payloads(wanted.clone()).await, Ok(all.to_vec()));
    }
    raw(&h.config).await.query_unpaged("TRUNCATE task_payloads", ()).await.expect("truncated");
    let left = [Some("two".into()), None, None, Some("one".into()), None];
    assert_eq!(store.payloads(wanted.clone()).await, Ok(left.to_vec()));
    assert_eq!(other.payloads(wanted).await, Ok(vec![None; 5]));
}
