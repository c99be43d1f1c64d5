//! Clones and concurrent writers.

use task_events::{Offset, TaskId};

use super::{Harness, PARAMETERS, PARTITION, RESULT, marked_row, read, snapshot_write, task, write};
use crate::SnapshotStore;

/// Writers at once.
const WRITERS: u16 = 8;

/// Writes of each.
const EACH: u16 = 50;

/// What was acknowledged to one clone is what another reads.
pub async fn clones_are_one_store<H: Harness>() {
    let h = H::start().await;
    let (one, other) = (h.store(), h.store().clone());
    let id = task(PARTITION, 1);
    for mark in 1..20 {
        write(&one, vec![snapshot_write(i64::from(mark), marked_row(id, mark))]).await;
        assert_eq!(read(&other, id).await, Some(marked_row(id, mark)));
    }
    other.put_payload(id, RESULT, "result".into()).await.expect("stored");
    assert_eq!(one.payload(id, RESULT).await, Ok(Some("result".into())));
}

/// Rows, payloads and acknowledgements of many writers are all there.
pub async fn writers_on_clones_lose_nothing<H: Harness>() {
    let h = H::start().await;
    let id = |writer: u16, n: u16| task(PARTITION, writer * EACH + n);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = h.store();
            tokio::spawn(async move {
                for n in 0..EACH {
                    let row = marked_row(id(writer, n), n.into());
                    write(&store, vec![snapshot_write(1, row)]).await;
                    let put = store.put_payload(id(writer, n), PARAMETERS, n.to_string().into());
                    put.await.expect("stored");
                    store.put_acked(PARTITION, Offset(u64::from(writer * EACH + n))).await.expect("stored");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer ends");
    }
    let store = h.store();
    let ids: Vec<TaskId> = (0..WRITERS * EACH).map(|n| task(PARTITION, n)).collect();
    let rows = store.snapshots(ids.clone()).await.expect("read");
    for ((id, n), row) in ids.into_iter().zip((0..EACH).cycle()).zip(rows) {
        assert_eq!(row, Some(marked_row(id, n.into())));
        let payload = store.payload(id, PARAMETERS).await;
        assert_eq!(payload, Ok(Some(n.to_string().into())));
    }
    assert_eq!(store.acked(PARTITION).await, Ok(Offset(u64::from(WRITERS * EACH - 1))));
}

/// Of many writers of one row the newest wins, whoever comes last.
pub async fn rivals_leave_the_newest<H: Harness>() {
    let h = H::start().await;
    let id = task(PARTITION, 1);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = h.store();
            tokio::spawn(async move {
                // Each goes through all timestamps, in an order of its own.
                let step = [1, 3, 7, 9, 11, 13, 17, 19][usize::from(writer % 8)];
                for n in 0..EACH {
                    let at = n * step % EACH;
                    write(&store, vec![snapshot_write(at.into(), marked_row(id, at.into()))]).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer ends");
    }
    assert_eq!(read(&h.store(), id).await, Some(marked_row(id, u32::from(EACH) - 1)));
}
