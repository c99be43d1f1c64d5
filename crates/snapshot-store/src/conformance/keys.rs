//! Idempotency keys.

use super::{Harness, NOW_MS, PARTITION, hash, task, write};
use crate::{KEY_TTL_MS, KeyRow, RowKind, RowWrite, SnapshotStore};

fn row(n: u16, created_at: i64) -> KeyRow {
    KeyRow { key_hash: hash(7), request_hash: Some(hash(8)), task_id: task(PARTITION, n), created_at }
}

fn key_write(timestamp_us: i64, row: &KeyRow) -> RowWrite {
    RowWrite { timestamp_us, row: RowKind::Key(row.clone()) }
}

/// With and without a request hash; what nobody wrote is not there.
pub async fn a_key_comes_back<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let bare = KeyRow { key_hash: hash(9), request_hash: None, ..row(2, NOW_MS) };
    write(&store, vec![key_write(1, &row(1, NOW_MS)), key_write(1, &bare)]).await;
    assert_eq!(store.key(hash(7)).await, Ok(Some(row(1, NOW_MS))));
    assert_eq!(store.key(hash(9)).await, Ok(Some(bare)));
    assert_eq!(store.key(hash(6)).await, Ok(None));
}

/// Key rows are newest-by-clock like snapshot rows: a key that is free again takes a new task.
pub async fn the_newest_row_of_a_key_stays<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    for (at, n, expected) in [(10, 1, 1), (9, 2, 1), (10, 1, 1), (11, 3, 3), (10, 1, 3)] {
        write(&store, vec![key_write(at, &row(n, NOW_MS))]).await;
        assert_eq!(store.key(hash(7)).await, Ok(Some(row(expected, NOW_MS))), "task {n} at {at}");
    }
}

/// 24 h after the creation of its task, whenever the row was written.
pub async fn a_key_goes_after_a_day<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let first = row(1, NOW_MS - 1_000);
    write(&store, vec![key_write(1, &first)]).await;
    h.set_clock(NOW_MS - 1_000 + KEY_TTL_MS - 1);
    assert_eq!(store.key(hash(7)).await, Ok(Some(first.clone())));
    h.set_clock(NOW_MS - 1_000 + KEY_TTL_MS);
    assert_eq!(store.key(hash(7)).await, Ok(None));
    write(&store, vec![key_write(1, &first)]).await;
    assert_eq!(store.key(hash(7)).await, Ok(None), "writing it again is not a new life");
    let second = row(2, NOW_MS + KEY_TTL_MS);
    write(&store, vec![key_write(2, &second)]).await;
    assert_eq!(store.key(hash(7)).await, Ok(Some(second)), "the key is free again");
}
