//! What stands in the tables: timestamps, lives and values as people read them.

use snapshot_store::conformance::ended::failed;
use snapshot_store::conformance::{
    Harness, NOW_MS, PARTITION, RESULT, closed_row, full_row, hash, new_row, snapshot_write, task, write,
};
use snapshot_store::{
    DAY_MS, KEY_TTL_MS, KeyRow, LISTING_TTL_MS, OVERFLOW_TTL_MS, PAYLOAD_TTL_MS, RowKind, RowWrite, SNAPSHOT_TTL_MS,
    SnapshotStore,
};
use task_core::HistoryEntry;
use task_events::{Offset, TaskState};

use crate::kit::{Cassandra, ask, raw};

/// A row clock, µs.
const CLOCK: i64 = NOW_MS * 1_000 + 17;

type Marked = (Option<i64>, Option<i32>);

async fn marked(h: &Cassandra, table: &str, column: &str) -> Vec<Marked> {
    let session = raw(&h.config).await;
    ask(&session, &format!("SELECT WRITETIME({column}), TTL({column}) FROM {table}")).await
}

// A TTL counts down while the test runs.
fn about(found: Option<i32>, ms: i64) -> bool {
    found.is_some_and(|left| (ms / 1_000 - 600..=ms / 1_000 + 1).contains(&i64::from(left)))
}

/// Every table that has a row clock bears it, and the life its rule says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_bears_the_row_clock_and_the_rest_of_its_life() {
    let h = Cassandra::start().await;
    let store = h.store();
    let age = 3 * DAY_MS;
    let mut ended = failed(1, "DISK_FULL");
    std::sync::Arc::make_mut(&mut ended.row).end_time = Some(NOW_MS - age);
    let key = KeyRow { key_hash: hash(7), request_hash: None, task_id: task(PARTITION, 1), created_at: NOW_MS - 1_000 };
    let entry = HistoryEntry { offset: Offset(9), rejected: Some(task_core::Reason::StaleEpoch) };
    let beside = RowKind::HistoryOverflow { task_id: task(PARTITION, 1), entry };
    let rows = [RowKind::Key(key), beside].map(|row| RowWrite { timestamp_us: CLOCK, row });
    write(&store, rows.into_iter().chain([snapshot_write(CLOCK, ended)]).collect()).await;
    for (table, column, life_ms) in [
        ("task_state_snapshots", "status", SNAPSHOT_TTL_MS - age),
        ("task_state_snapshots", "rest", SNAPSHOT_TTL_MS - age),
        ("task_state_snapshots", "history", SNAPSHOT_TTL_MS - age),
        ("idempotency_keys", "task_id", KEY_TTL_MS - 1_000),
        ("task_history", "rejected", OVERFLOW_TTL_MS),
        ("tasks_by_time", "rest", LISTING_TTL_MS - age),
        ("failures_by_code", "expires_at", LISTING_TTL_MS - age),
        ("review_queue", "waits", LISTING_TTL_MS - age),
        ("tasks_by_trace", "expires_at", LISTING_TTL_MS - age),
        ("tasks_by_business_key", "expires_at", LISTING_TTL_MS - age),
    ] {
        let found = marked(&h, table, column).await;
        let [(written, left)] = found[..] else { panic!("{table}: {found:?}") };
        assert_eq!(written, Some(CLOCK), "{table}.{column}");
        assert!(about(left, life_ms), "{table}.{column}: {left:?} s left of {life_ms} ms");
    }
    store.put_payload(task(PARTITION, 1), RESULT, "done".into()).await.expect("stored");
    let found = marked(&h, "task_payloads", "bytes").await;
    assert_eq!(found[0].0, Some(NOW_MS * 1_000), "the store's clock");
    assert!(about(found[0].1, PAYLOAD_TTL_MS), "{found:?}");
    store.put_acked(PARTITION, Offset(77)).await.expect("stored");
    assert_eq!(marked(&h, "acked_offsets", "acked").await, [(Some(77), None)]);
    let spans: Vec<(String, Option<i64>)> =
        ask(&raw(&h.config).await, "SELECT list, WRITETIME(expires_at) FROM list_spans").await;
    assert_eq!(spans.len(), 3, "one for each list: {spans:?}");
}

/// An open task's row and its names have no end; neither has a table a default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_open_has_no_end() {
    let h = Cassandra::start().await;
    write(&h.store(), vec![snapshot_write(CLOCK, full_row(task(PARTITION, 1)))]).await;
    assert_eq!(marked(&h, "task_state_snapshots", "rest").await, [(Some(CLOCK), None)]);
    let session = raw(&h.config).await;
    let listed: Vec<(i64, Option<i32>)> = ask(&session, "SELECT id, TTL(expires_at) FROM tasks_by_trace").await;
    assert_eq!(listed, [(task(PARTITION, 1).raw(), None)]);
    // An end long past is written as a deletion, at the row's own clock: an older row does not show.
    h.set_clock(NOW_MS + 400 * DAY_MS);
    write(&h.store(), vec![snapshot_write(CLOCK + 1, closed_row(task(PARTITION, 1), TaskState::Success, NOW_MS))])
        .await;
    write(&h.store(), vec![snapshot_write(CLOCK, full_row(task(PARTITION, 1)))]).await;
    for table in ["task_state_snapshots", "tasks_by_trace", "tasks_by_business_key", "tasks_by_time", "list_spans"] {
        let rows: Vec<(i64,)> = ask(&session, &format!("SELECT COUNT(*) FROM {table}")).await;
        assert_eq!(rows, [(0,)], "{table}");
    }
}

/// People read the row with cqlsh alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_read_a_row() {
    let h = Cassandra::start().await;
    let (full, bare) = (full_row(task(PARTITION, 1)), new_row(task(PARTITION, 2)));
    write(&h.store(), [full.clone(), bare].map(|row| snapshot_write(CLOCK, row)).to_vec()).await;
    let session = raw(&h.config).await;
    type Texts = (Option<String>, Option<String>, Option<String>, Option<String>, Option<String>, Option<String>);
    let texts = async |n| -> Texts {
        let id = task(PARTITION, n);
        let columns = "status, worker_id, error_code, category, failed_step, queue";
        let query = format!("SELECT {columns} FROM task_state_snapshots WHERE task_id = '{id}'");
        ask(&session, &query).await.pop().expect("a row")
    };
    let some = |text: &str| Some(text.to_owned());
    let expected =
        [some("EXECUTING"), some("worker-1"), some("DISK_FULL"), some("RESOURCE"), some("pack"), some("images")];
    let found = texts(1).await;
    assert_eq!([found.0, found.1, found.2, found.3, found.4, found.5], expected);
    let found = texts(2).await;
    assert_eq!(
        [found.0, found.1, found.2, found.3],
        [some("CREATED"), None, None, None],
        "null where there is no value"
    );
    type Numbers = (Option<i64>, Option<i64>, Option<i64>, Option<i64>, Option<i64>, Option<i32>);
    let columns = "last_event_seq, exec_epoch, run_no, retry_count, timeout_ms, priority";
    let numbers: Vec<Numbers> =
        ask(&session, &format!("SELECT {columns} FROM task_state_snapshots WHERE task_id = '{}'", full.core.id)).await;
    assert_eq!(numbers, [(Some(9), Some(2), Some(1), Some(1), Some(60_000), Some(4))]);
}
