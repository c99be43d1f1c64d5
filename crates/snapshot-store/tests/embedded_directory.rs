//! What is the embedded store's own: its directory, damage in it, the sweep, its queue.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use fjall::KeyspaceCreateOptions;
use snapshot_store::conformance::checkpoints::{offsets, publish};
use snapshot_store::conformance::listings::{found, named};
use snapshot_store::conformance::{
    NOW_MS, PARTITION, RESULT, closed_row, hash, marked_row, new_row, read, snapshot_write, task, write,
};
use snapshot_store::{
    CheckpointName, DAY_MS, Durability, EmbeddedConfig, EmbeddedStore, KeyRow, LISTING_TTL_MS, OpenError,
    PAYLOAD_TTL_MS, RowKind, RowWrite, SNAPSHOT_TTL_MS, SnapshotStore, StoreError,
};
use task_core::{HistoryEntry, PartitionState};
use task_events::{Offset, PartitionEpoch, RuleVersion, TaskState};
use tempfile::TempDir;

fn dir() -> TempDir {
    tempfile::tempdir().expect("temporary directory")
}

fn config(dir: &Path) -> EmbeddedConfig {
    EmbeddedConfig { durability: Durability::Volatile, ..EmbeddedConfig::new(dir, || NOW_MS) }
}

fn open(dir: &Path) -> EmbeddedStore {
    EmbeddedStore::open(config(dir)).expect("store")
}

fn refusal(dir: &Path) -> OpenError {
    EmbeddedStore::open(config(dir)).map(|_| ()).expect_err("refused")
}

/// Opens the tree without the store, as nothing but a test may.
fn raw(dir: &Path, table: &str, work: impl FnOnce(&fjall::Keyspace)) {
    let database = fjall::Database::builder(dir.join("tables")).open().expect("tree");
    let keyspace = database.keyspace(table, KeyspaceCreateOptions::default).expect("table");
    work(&keyspace);
    database.persist(fjall::PersistMode::SyncAll).expect("persisted");
}

fn count(dir: &Path, table: &str) -> usize {
    let mut found = 0;
    raw(dir, table, |keyspace| found = keyspace.len().expect("length"));
    found
}

#[tokio::test]
async fn one_store_per_directory() {
    let dir = dir();
    let store = open(dir.path());
    let text = refusal(dir.path()).to_string();
    let expected = format!("{} is in use by another process (pid {})", dir.path().display(), std::process::id());
    assert!(text.starts_with(&expected), "{text}");
    // A clone keeps the directory, close gives it back whoever has clones.
    let clone = store.clone();
    drop(store);
    assert!(matches!(refusal(dir.path()), OpenError::InUse { .. }));
    clone.close();
    let again = open(dir.path());
    for answer in [clone.acked(PARTITION).await.map(drop), clone.put_acked(PARTITION, Offset(1)).await] {
        let Err(StoreError::Unavailable(text)) = answer else { panic!("{answer:?}") };
        assert!(text.contains("is closed") && text.contains(&dir.path().display().to_string()), "{text}");
    }
    drop(again);
    drop(open(dir.path()));
}

#[tokio::test]
async fn only_its_own_format_is_opened() {
    let dir = dir();
    drop(open(dir.path()));
    let format = dir.path().join("format");
    assert_eq!(std::fs::read_to_string(&format).expect("format"), "dualtrack-snapshot-store 1\n");
    std::fs::write(&format, "dualtrack-snapshot-store 2\n").expect("write");
    let newer = refusal(dir.path());
    assert!(newer.to_string().contains("dualtrack-snapshot-store 2"), "{newer}");
    std::fs::remove_file(&format).expect("remove");
    assert!(matches!(refusal(dir.path()), OpenError::Format { found, .. } if found.is_empty()));
    std::fs::write(&format, "dualtrack-snapshot-store 1\n").expect("write");
    drop(open(dir.path()));
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("write");
    assert!(matches!(refusal(&file.join("below")), OpenError::Io(text) if text.contains("below")));
}

#[tokio::test]
async fn damage_is_named_by_table_and_key_and_healed_by_the_next_write() {
    let dir = dir();
    let (bad, good) = (task(PARTITION, 1), task(PARTITION, 2));
    let store = open(dir.path());
    write(&store, vec![snapshot_write(5, new_row(bad)), snapshot_write(5, new_row(good))]).await;
    store.close();
    for (value, why) in
        [(&b"\x09"[..], "version 9 is not known"), (b"\x01abc", "cut off after 4 bytes"), (b"", "empty")]
    {
        raw(dir.path(), "task_state_snapshots", |rows| {
            rows.insert(bad.raw().to_be_bytes(), value).expect("damaged");
        });
        let store = open(dir.path());
        let expected = StoreError::Damaged(format!("task_state_snapshots task {bad}: {why}"));
        assert_eq!(store.snapshots(vec![good, bad]).await, Err(expected));
        assert_eq!(read(&store, good).await, Some(new_row(good)));
        write(&store, vec![snapshot_write(1, marked_row(bad, 3))]).await;
        assert_eq!(read(&store, bad).await, Some(marked_row(bad, 3)));
        store.close();
    }
    // A head that is fine, and a body that is not one.
    let value = [&[1][..], &5i64.to_be_bytes(), &i64::MAX.to_be_bytes(), b"\xc1"].concat();
    raw(dir.path(), "idempotency_keys", |keys| keys.insert(hash(0xab).0, value).expect("damaged"));
    let store = open(dir.path());
    let Err(StoreError::Damaged(text)) = store.key(hash(0xab)).await else { panic!("a key of nonsense") };
    assert!(text.starts_with(&format!("idempotency_keys {}: ", "ab".repeat(32))), "{text}");
    // What a task is found by is healed by the next write of its row.
    let row = |at| snapshot_write(at, named(new_row(good), Some("t"), "c", None));
    write(&store, vec![row(6)]).await;
    store.close();
    let name = task_events::Sha256Hash::of(b"t").0;
    let key = [&name[..], &(!good.raw()).to_be_bytes()].concat();
    raw(dir.path(), "tasks_by_trace", |entries| {
        assert_eq!(entries.contains_key(&key).map_err(|e| e.to_string()), Ok(true));
        entries.insert(&key, b"").expect("damaged");
    });
    let store = open(dir.path());
    let expected = StoreError::Damaged(format!("tasks_by_trace task {good}: empty"));
    assert_eq!(store.tasks_by_trace("t".into(), 1).await, Err(expected));
    write(&store, vec![row(7)]).await;
    assert_eq!(found(&store, "t", 1).await, [good]);
}

#[tokio::test]
async fn too_much_in_the_queue_is_refused_and_nothing_is_lost() {
    let dir = dir();
    let store = EmbeddedStore::open(EmbeddedConfig { max_queued_bytes: 100_000, ..config(dir.path()) }).expect("store");
    let big = Bytes::from(vec![1; 90_000]);
    let puts: Vec<_> = (0..64u16).map(|n| (n, store.put_payload(task(PARTITION, n), RESULT, big.clone()))).collect();
    let mut refused = 0;
    for (n, put) in puts {
        let answer = put.await;
        let stored = store.payload(task(PARTITION, n), RESULT).await.expect("read").is_some();
        assert_eq!(answer.is_ok(), stored, "{answer:?}");
        refused += usize::from(!stored);
    }
    assert!((1..64).contains(&refused), "{refused}: the first is always taken, the disk is slower than the calls");
    let whole = Bytes::from(vec![2; 500_000]);
    store.put_payload(task(PARTITION, 1), RESULT, whole).await.expect("one alone may be bigger");
}

#[tokio::test]
async fn the_sweep_removes_what_has_expired_and_no_more_than_asked() {
    let dir = dir();
    let now_ms = Arc::new(AtomicI64::new(NOW_MS));
    let clock = now_ms.clone();
    let config = EmbeddedConfig {
        durability: Durability::Volatile,
        ..EmbeddedConfig::new(dir.path(), move || clock.load(Ordering::Relaxed))
    };
    let store = EmbeddedStore::open(config.clone()).expect("store");
    let id = |n| task(PARTITION, n);
    // Ten closed, one open, one closed and open again, a key, an entry, a payload and a renewed one.
    let mut rows: Vec<_> =
        (0..10).map(|n| snapshot_write(1, closed_row(id(n), TaskState::Success, NOW_MS - i64::from(n)))).collect();
    rows.push(snapshot_write(1, new_row(id(10))));
    rows.push(snapshot_write(1, closed_row(id(11), TaskState::Cancelled, NOW_MS)));
    rows.push(snapshot_write(2, new_row(id(11))));
    let key = KeyRow { key_hash: hash(1), request_hash: None, task_id: id(1), created_at: NOW_MS };
    rows.push(RowWrite { timestamp_us: 1, row: RowKind::Key(key) });
    let entry = HistoryEntry { offset: Offset(1), rejected: None };
    rows.push(RowWrite { timestamp_us: NOW_MS * 1_000, row: RowKind::HistoryOverflow { task_id: id(1), entry } });
    write(&store, rows).await;
    store.put_payload(id(1), RESULT, "gone".into()).await.expect("stored");
    store.put_payload(id(2), RESULT, "renewed".into()).await.expect("stored");
    assert_eq!(store.sweep(NOW_MS, 100).await, Ok(0), "nothing is due");
    now_ms.store(NOW_MS + SNAPSHOT_TTL_MS, Ordering::Relaxed);
    store.put_payload(id(2), RESULT, "renewed".into()).await.expect("stored");

    let due = NOW_MS + SNAPSHOT_TTL_MS;
    assert_eq!(store.sweep(due, 4).await, Ok(4));
    store.close();
    // The key, and three of the ten.
    assert_eq!((count(dir.path(), "idempotency_keys"), count(dir.path(), "task_state_snapshots")), (0, 9));
    let store = EmbeddedStore::open(config.clone()).expect("store");
    assert_eq!(store.sweep(due, 100).await, Ok(7));
    assert_eq!(store.sweep(due, 100).await, Ok(0));
    // One that was due long ago and came late is found all the same.
    write(&store, vec![snapshot_write(1, closed_row(id(20), TaskState::Success, NOW_MS - DAY_MS))]).await;
    assert_eq!(store.sweep(due, 100).await, Ok(1));
    let later = NOW_MS + PAYLOAD_TTL_MS;
    assert_eq!(store.sweep(later, 100).await, Ok(3), "an entry, a payload, and one renewed");
    assert_eq!(store.payload(id(2), RESULT).await, Ok(Some("renewed".into())));
    assert_eq!(store.sweep(later + PAYLOAD_TTL_MS, 100).await, Ok(1));
    // By both of their names, by time and by code: the one that came late, then the ten, and of the one
    // that is open again how it had ended.
    let listed = NOW_MS + LISTING_TTL_MS;
    assert_eq!(store.sweep(listed - 10, 100).await, Ok(4));
    assert_eq!(store.sweep(listed, 100).await, Ok(42));
    assert_eq!(read(&store, id(10)).await, Some(new_row(id(10))));
    assert_eq!(read(&store, id(11)).await, Some(new_row(id(11))));
    store.close();
    for (table, left) in [
        ("task_state_snapshots", 2),
        ("tasks_by_trace", 2),
        ("tasks_by_business_key", 2),
        ("tasks_by_time", 0),
        ("failures_by_code", 0),
        ("history_overflow", 0),
        ("task_payloads", 0),
        ("expiries", 0),
    ] {
        assert_eq!(count(dir.path(), table), left, "{table}");
    }
}

#[tokio::test]
async fn chunks_go_when_no_manifest_names_them() {
    let dir = dir();
    let store = open(dir.path());
    let name = |offset| CheckpointName {
        partition: PARTITION,
        offset: Offset(offset),
        epoch: PartitionEpoch(1),
        rule_version: RuleVersion(1),
        state_hash: 0,
    };
    let parts = {
        let mut fold = PartitionState::new(PARTITION, true);
        let row = new_row(task(PARTITION, 1));
        fold.tasks.insert(task_core::Slot { core: row.core, row: Some(row.row) });
        fold.freeze().parts()
    };
    for (hash, bytes) in &parts.chunks {
        store.put_chunk(*hash, bytes.clone()).await.expect("stored");
    }
    store.put_chunk(hash(9), "of a checkpoint that was never published".into()).await.expect("stored");
    store.publish(name(1), parts.manifest.clone()).await.expect("published");
    assert_eq!(store.sweep(NOW_MS + DAY_MS - 1, 100).await, Ok(0), "their grace");
    assert_eq!(store.sweep(NOW_MS + DAY_MS, 100).await, Ok(1 + parts.chunks.len()));
    assert_eq!(store.chunk(hash(9)).await, Ok(None));
    for (hash, bytes) in &parts.chunks {
        assert_eq!(store.chunk(*hash).await, Ok(Some(bytes.clone())), "named, and looked at again");
    }
    // A manifest that cannot be read: which chunks are its own is not known.
    store.put_chunk(hash(8), "unnamed".into()).await.expect("stored");
    store.publish(name(2), "of a later version".into()).await.expect("published");
    store.sweep(NOW_MS + 10 * DAY_MS, 100).await.expect("swept");
    assert_eq!(store.chunk(hash(8)).await, Ok(Some("unnamed".into())));
    // Both named ones go with their manifest.
    for offset in 3..6 {
        store
            .publish(name(offset), PartitionState::new(PARTITION, true).freeze().parts().manifest)
            .await
            .expect("published");
    }
    store.sweep(NOW_MS + 20 * DAY_MS, 100).await.expect("swept");
    for (hash, _) in &parts.chunks {
        assert_eq!(store.chunk(*hash).await, Ok(None));
    }
    store.close();
    assert_eq!(count(dir.path(), "checkpoint_chunks"), 0);
}

#[tokio::test]
async fn checkpoints_that_the_log_has_passed_are_forgotten_but_for_two() {
    let dir = dir();
    let now_ms = Arc::new(AtomicI64::new(NOW_MS));
    let clock = now_ms.clone();
    let config = EmbeddedConfig { clock: Arc::new(move || clock.load(Ordering::Relaxed)), ..config(dir.path()) };
    let store = EmbeddedStore::open(config).expect("store");
    for day in 0..5 {
        now_ms.store(NOW_MS + day * DAY_MS, Ordering::Relaxed);
        publish(&store, PARTITION, 10 * (day as u64 + 1)).await;
    }
    assert_eq!(offsets(&store, PARTITION).await, [50, 40, 30, 20, 10]);
    assert_eq!(store.forget_checkpoints(PARTITION, Offset(20)).await, Ok(1));
    assert_eq!(offsets(&store, PARTITION).await, [50, 40, 30, 20]);
    assert_eq!(store.forget_checkpoints(PARTITION, Offset(1_000)).await, Ok(2));
    assert_eq!(offsets(&store, PARTITION).await, [50, 40]);
}
