//! What the Cassandra adapter takes from a node, beside plain upserts of as many bytes by the same driver
//! on the same node in the same run: the ratio says what the adapter costs, the figures what the machine
//! gives.
//!
//! `cargo bench -p snapshot-store --bench cassandra` (starts a node of its own through
//! `scripts/cassandra.sh`). Each line is one run of 10 s, 256 requests on their way.
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use snapshot_store::conformance::listings::named;
use snapshot_store::conformance::node::CassandraNode;
use snapshot_store::conformance::{NOW_MS, PARTITION, closed_row, hash, snapshot_write, task};
use snapshot_store::{CassandraConfig, CassandraStore, PayloadItem, RowWrite, SnapshotStore, migrate};
use task_events::{TaskId, TaskState};

const RUN: Duration = Duration::from_secs(10);
const IN_FLIGHT: u64 = 256;
const ROWS_PER_WRITE: u64 = 128;

/// Calls `one` from so many tasks at once until the time is over; how many a second.
async fn rate<F: Future<Output = u64> + Send + 'static>(
    tasks: u64,
    one: impl Fn(u64) -> F + Send + Sync + 'static,
) -> f64 {
    let (one, next, done) = (Arc::new(one), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let started = Instant::now();
    let running: Vec<_> = (0..tasks)
        .map(|_| {
            let (one, next, done) = (one.clone(), next.clone(), done.clone());
            tokio::spawn(async move {
                while started.elapsed() < RUN {
                    let count = one(next.fetch_add(1, Ordering::Relaxed)).await;
                    done.fetch_add(count, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in running {
        task.await.expect("no panic");
    }
    done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
}

fn id(n: u64) -> TaskId {
    TaskId::from_parts(95_000_000_000 + (n / 4_096) as i64, PARTITION, (n % 4_096) as u16).expect("an id")
}

// The rows of one write, as an owner sends them: ended tasks without trace and business key.
fn rows(write: u64) -> Vec<RowWrite> {
    let row = |n: u64| {
        let mut row = named(closed_row(task(PARTITION, 1), TaskState::Success, NOW_MS), None, "bench", None);
        Arc::make_mut(&mut row.row).error_code = None;
        row.core.id = id(n);
        snapshot_write(NOW_MS * 1_000 + n as i64, row)
    };
    (write * ROWS_PER_WRITE..(write + 1) * ROWS_PER_WRITE).map(row).collect()
}

async fn plain(config: &CassandraConfig, round: u32) -> f64 {
    let session: Session = SessionBuilder::new().known_nodes(&config.contact_points).build().await.expect("a session");
    session.use_keyspace(&config.keyspace, false).await.expect("the keyspace is there");
    let table = format!("CREATE TABLE plain{round} (id bigint PRIMARY KEY, bytes blob)");
    session.query_unpaged(table, ()).await.expect("a table");
    let put = session.prepare(format!("INSERT INTO plain{round} (id, bytes) VALUES (?, ?)")).await.expect("prepared");
    let (session, bytes) = (Arc::new(session), Bytes::from(vec![7; 1_024]));
    rate(IN_FLIGHT, move |n| {
        let (session, put, bytes) = (session.clone(), put.clone(), bytes.clone());
        async move {
            session.execute_unpaged(&put, (n as i64, bytes)).await.expect("written");
            1
        }
    })
    .await
}

async fn of_rows(store: &CassandraStore) -> f64 {
    let store = store.clone();
    rate(IN_FLIGHT / ROWS_PER_WRITE * 2, move |n| {
        let store = store.clone();
        async move {
            store.write(PARTITION, rows(n)).await.expect("written");
            ROWS_PER_WRITE
        }
    })
    .await
}

async fn of_payloads(store: &CassandraStore) -> f64 {
    let store = store.clone();
    rate(IN_FLIGHT, move |n| {
        let store = store.clone();
        async move {
            let output = PayloadItem::StepOutput { step: "only".into(), output_hash: hash(1) };
            let result = PayloadItem::Result { result_data_hash: hash(2) };
            let items =
                vec![(id(n), output, Bytes::from_static(&[7; 512])), (id(n), result, Bytes::from_static(&[7; 512]))];
            store.put_payloads(items).await.expect("stored");
            1
        }
    })
    .await
}

fn main() {
    let node = CassandraNode::start(&["--heap", "1024"]);
    let config = node.config(|| NOW_MS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
    runtime.block_on(async {
        migrate(&config).await.expect("migrated");
        let store = CassandraStore::connect(config.clone()).await.expect("connected");
        // The node's own compiler has seen the statements once.
        of_rows(&store).await;
        for round in 1..=2 {
            let plain = plain(&config, round).await;
            let before = store.mutations();
            let rows = of_rows(&store).await;
            let writes = (store.mutations() - before) as f64 / RUN.as_secs_f64();
            let payloads = of_payloads(&store).await;
            println!("plain upserts of 1 KiB        {plain:>8.0}/s");
            println!(
                "rows with tasks_by_time       {rows:>8.0}/s, {writes:.0} mutations/s: {:.2} of plain",
                writes / plain
            );
            println!("two payload items as a batch  {payloads:>8.0}/s: {:.2} of plain", payloads / plain);
        }
    });
}
