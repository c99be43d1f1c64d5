//! What is there again after the process: for adapters that outlive it.

use bytes::Bytes;
use task_core::HistoryEntry;
use task_events::{Offset, TaskState};

use super::checkpoints::{offsets, publish};
use super::listings::{found, named, of_key};
use super::{
    Durable, NOW_MS, PARAMETERS, PARTITION, RESULT, closed_row, full_row, hash, marked_row, new_row, overflow, read,
    snapshot_write, task, write,
};
use crate::{DAY_MS, KeyRow, LISTING_TTL_MS, PAYLOAD_TTL_MS, RowKind, RowWrite, SNAPSHOT_TTL_MS, SnapshotStore};

fn key_row() -> KeyRow {
    KeyRow { key_hash: hash(7), request_hash: Some(hash(8)), task_id: task(PARTITION, 1), created_at: NOW_MS }
}

/// Every kind of content.
pub async fn everything_acknowledged_is_there_again<H: Durable>() {
    let h = H::start().await;
    let store = h.store();
    let id = |n| task(PARTITION, n);
    let rows = [new_row(id(1)), full_row(id(2)), closed_row(id(3), TaskState::Success, NOW_MS)];
    let entry = HistoryEntry { offset: Offset(700), rejected: None };
    let mut writes: Vec<_> = rows.iter().map(|row| snapshot_write(4, row.clone())).collect();
    writes.push(RowWrite { timestamp_us: 4, row: RowKind::Key(key_row()) });
    let beside = RowKind::HistoryOverflow { task_id: id(3), entry };
    writes.push(RowWrite { timestamp_us: NOW_MS * 1_000, row: beside });
    write(&store, writes).await;
    let big = Bytes::from(vec![0x5a; 200_000]);
    let payloads = [(1, PARAMETERS, big.clone()), (2, RESULT, "result".into())];
    store.put_payloads(payloads.map(|(n, item, bytes)| (id(n), item, bytes)).to_vec()).await.expect("stored");
    store.put_acked(PARTITION, Offset(12)).await.expect("stored");
    store.put_chunk(hash(1), big.clone()).await.expect("stored");
    publish(&store, PARTITION, 10).await;
    publish(&store, PARTITION, 20).await;
    drop(store);

    let h = h.reopen().await.reopen().await;
    let store = h.store();
    for row in rows {
        assert_eq!(read(&store, row.core.id).await, Some(row));
    }
    assert_eq!(store.key(hash(7)).await, Ok(Some(key_row())));
    assert_eq!(overflow(&store, 3).await, [entry]);
    let (trace, key) = ("4bf92f3577b34da6a3ce929d0e0e4736", "order-7");
    assert_eq!(found(&store, trace, 10).await, [3, 2, 1].map(id));
    assert_eq!(of_key(&store, "conformance", key, 10).await, [3, 2, 1].map(id));
    let wanted = vec![(id(2), RESULT), (id(3), RESULT), (id(1), PARAMETERS)];
    assert_eq!(store.payloads(wanted).await, Ok(vec![Some("result".into()), None, Some(big.clone())]));
    assert_eq!(store.acked(PARTITION).await, Ok(Offset(12)));
    assert_eq!(store.chunk(hash(1)).await, Ok(Some(big)));
    assert_eq!(offsets(&store, PARTITION).await, [20, 10]);
}

/// Timestamps and positions outlive the process: a late writer loses after it too.
pub async fn what_was_decided_stays_decided<H: Durable>() {
    let h = H::start().await;
    let id = task(PARTITION, 1);
    let key = |at, n| {
        let row = KeyRow { task_id: task(PARTITION, n), ..key_row() };
        RowWrite { timestamp_us: at, row: RowKind::Key(row) }
    };
    let listed = |n, at, row| snapshot_write(at, named(row, Some("t"), "c", Some(["open", "closed"][n])));
    let (open, closed) = (new_row(task(PARTITION, 2)), closed_row(task(PARTITION, 2), TaskState::Success, NOW_MS));
    write(&h.store(), vec![snapshot_write(9, marked_row(id, 9)), key(9, 9)]).await;
    write(&h.store(), vec![listed(0, 9, open.clone()), listed(1, 9, closed.clone())]).await;
    h.store().put_acked(PARTITION, Offset(12)).await.expect("stored");
    for offset in [10, 20, 30] {
        publish(&h.store(), PARTITION, offset).await;
    }

    let h = h.reopen().await;
    let store = h.store();
    write(&store, vec![snapshot_write(8, marked_row(id, 8)), key(8, 8)]).await;
    store.put_acked(PARTITION, Offset(11)).await.expect("stored");
    publish(&store, PARTITION, 15).await;
    assert_eq!(read(&store, id).await, Some(marked_row(id, 9)));
    assert_eq!(store.key(hash(7)).await.expect("read").map(|row| row.task_id), Some(task(PARTITION, 9)));
    assert_eq!(store.acked(PARTITION).await, Ok(Offset(12)));
    assert_eq!(offsets(&store, PARTITION).await, [30, 20]);
    write(&store, vec![listed(0, 8, closed), listed(1, 8, open)]).await;
    h.set_clock(NOW_MS + LISTING_TTL_MS);
    assert_eq!(of_key(&store, "c", "open", 10).await, [task(PARTITION, 2)]);
    assert_eq!(of_key(&store, "c", "closed", 10).await, []);
}

/// A restart is not a new life, nor a new day.
pub async fn lives_go_on<H: Durable>() {
    let h = H::start().await;
    let id = task(PARTITION, 1);
    write(&h.store(), vec![snapshot_write(1, closed_row(id, TaskState::Success, NOW_MS))]).await;
    h.store().put_payload(id, RESULT, "result".into()).await.expect("stored");
    publish(&h.store(), PARTITION, 10).await;
    h.set_clock(NOW_MS + SNAPSHOT_TTL_MS);
    let h = h.reopen().await;
    assert_eq!(read(&h.store(), id).await, None);
    assert_eq!(h.store().payload(id, RESULT).await, Ok(Some("result".into())));
    for offset in [20, 30, 40] {
        publish(&h.store(), PARTITION, offset).await;
    }
    assert_eq!(offsets(&h.store(), PARTITION).await, [40, 30, 10]);
    h.set_clock(NOW_MS + PAYLOAD_TTL_MS + DAY_MS);
    let h = h.reopen().await;
    assert_eq!(h.store().payload(id, RESULT).await, Ok(None));
    h.set_clock(NOW_MS + LISTING_TTL_MS - 1);
    let h = h.reopen().await;
    assert_eq!(of_key(&h.store(), "conformance", "order-7", 10).await, [id]);
    h.set_clock(NOW_MS + LISTING_TTL_MS);
    assert_eq!(of_key(&h.store(), "conformance", "order-7", 10).await, []);
}
