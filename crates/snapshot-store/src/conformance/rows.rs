//! Snapshot rows and the history beside them.

use std::sync::Arc;

use task_core::{HistoryEntry, Reason};
use task_events::{Offset, TaskState};

use super::{
    Harness, NOW_MS, PARTITION, closed_row, full_row, marked_row, new_row, overflow, read, snapshot_write, task, write,
};
use crate::{DAY_MS, OVERFLOW_TTL_MS, RowKind, RowWrite, SNAPSHOT_TTL_MS, SnapshotStore};

/// Every field of every kind of row is what was written.
pub async fn a_row_comes_back_whole<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let mut rows = vec![new_row(task(PARTITION, 1)), full_row(task(PARTITION, 2))];
    rows.extend((3..).zip(TaskState::ALL).map(|(n, &state)| {
        let id = task(PARTITION, n);
        let mut row = if state.is_terminal() { closed_row(id, state, NOW_MS) } else { full_row(id) };
        row.core.state = state;
        row
    }));
    write(&store, rows.iter().map(|row| snapshot_write(7, row.clone())).collect()).await;
    for row in rows {
        assert_eq!(read(&store, row.core.id).await, Some(row));
    }
}

/// A row is never merged with the one before it: what the newer does not have is gone.
pub async fn a_newer_row_replaces_all_of_an_older_one<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let id = task(PARTITION, 1);
    write(&store, vec![snapshot_write(1, full_row(id))]).await;
    write(&store, vec![snapshot_write(2, new_row(id))]).await;
    assert_eq!(read(&store, id).await, Some(new_row(id)));
}

/// A late writer of an old state loses by timestamp (invariant 17).
pub async fn an_older_write_never_takes_a_row_back<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let id = task(PARTITION, 1);
    write(&store, vec![snapshot_write(1_000, marked_row(id, 2))]).await;
    for older in [999, 1, 0, -5] {
        write(&store, vec![snapshot_write(older, marked_row(id, 1))]).await;
        assert_eq!(read(&store, id).await, Some(marked_row(id, 2)), "after a write at {older}");
    }
    write(&store, vec![snapshot_write(1_001, marked_row(id, 3))]).await;
    assert_eq!(read(&store, id).await, Some(marked_row(id, 3)));
}

/// However often it comes, and whatever came in between.
pub async fn the_same_write_again_changes_nothing<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let id = task(PARTITION, 1);
    for (at, mark, expected) in [(5, 1, 1), (5, 1, 1), (4, 3, 1), (5, 1, 1), (6, 2, 2), (5, 1, 2), (6, 2, 2)] {
        write(&store, vec![snapshot_write(at, marked_row(id, mark))]).await;
        assert_eq!(read(&store, id).await, Some(marked_row(id, expected)), "after a write at {at}");
    }
}

/// Rows of one batch are judged like rows of several.
pub async fn the_newest_of_one_batch_stays<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let (a, b) = (task(PARTITION, 1), task(PARTITION, 2));
    let batch = [(a, 2, 20), (b, 1, 10), (a, 3, 30), (b, 2, 20), (a, 1, 10)];
    write(&store, batch.map(|(id, at, mark)| snapshot_write(at, marked_row(id, mark))).to_vec()).await;
    assert_eq!(read(&store, a).await, Some(marked_row(a, 30)));
    assert_eq!(read(&store, b).await, Some(marked_row(b, 20)));
    write(&store, Vec::new()).await;
}

/// A batch read answers every id, in the order asked.
pub async fn batches_are_read_in_the_order_asked<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let id = |n| task(PARTITION, n);
    write(&store, [1, 2, 4].map(|n| snapshot_write(1, marked_row(id(n), n.into()))).to_vec()).await;
    let asked = [4, 3, 1, 2, 4, 9];
    let found = store.snapshots(asked.map(id).to_vec()).await.expect("read");
    let marks: Vec<_> = found.iter().map(|row| row.as_ref().map(|row| row.row.memory_usage_percent)).collect();
    assert_eq!(marks, [Some(4), None, Some(1), Some(2), Some(4), None]);
    assert_eq!(store.snapshots(Vec::new()).await, Ok(Vec::new()));
}

/// 30 days after the terminal event, whenever the row was written; open rows stay.
pub async fn rows_of_closed_tasks_go_after_thirty_days<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let id = |n| task(PARTITION, n);
    let closed_long_ago = closed_row(id(1), TaskState::Success, NOW_MS - 10 * DAY_MS);
    let mut reviewed = closed_row(id(2), TaskState::FailedPermanently, NOW_MS - 5 * DAY_MS);
    Arc::make_mut(&mut reviewed.row).changed_broker_ms = NOW_MS;
    let mut open = full_row(id(3));
    Arc::make_mut(&mut open.row).end_time = Some(NOW_MS - 50 * DAY_MS);
    let rows = [closed_long_ago, reviewed, open].map(|row| snapshot_write(1, row)).to_vec();
    write(&store, rows.clone()).await;
    let there = async || {
        let found = store.snapshots(vec![id(1), id(2), id(3)]).await.expect("read");
        found.iter().map(Option::is_some).collect::<Vec<_>>()
    };
    for (now_ms, expected) in [
        (NOW_MS - 10 * DAY_MS + SNAPSHOT_TTL_MS - 1, [true, true, true]),
        (NOW_MS - 10 * DAY_MS + SNAPSHOT_TTL_MS, [false, true, true]),
        (NOW_MS - 5 * DAY_MS + SNAPSHOT_TTL_MS - 1, [false, true, true]),
        (NOW_MS - 5 * DAY_MS + SNAPSHOT_TTL_MS, [false, false, true]),
        (NOW_MS + 1_000 * DAY_MS, [false, false, true]),
    ] {
        h.set_clock(now_ms);
        assert_eq!(there().await, expected, "{} days later", (now_ms - NOW_MS) / DAY_MS);
        // Writing it again is not a new life.
        write(&store, rows.clone()).await;
        assert_eq!(there().await, expected, "written again");
    }
}

/// A closed task that is open again has no end, until it ends anew.
pub async fn a_replayed_task_stays<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let id = task(PARTITION, 1);
    write(&store, vec![snapshot_write(1, closed_row(id, TaskState::Cancelled, NOW_MS))]).await;
    write(&store, vec![snapshot_write(2, marked_row(id, 2))]).await;
    h.set_clock(NOW_MS + 40 * DAY_MS);
    assert_eq!(read(&store, id).await, Some(marked_row(id, 2)));
    let again = closed_row(id, TaskState::Success, NOW_MS + 40 * DAY_MS);
    write(&store, vec![snapshot_write(3, again.clone())]).await;
    h.set_clock(NOW_MS + 69 * DAY_MS);
    assert_eq!(read(&store, id).await, Some(again));
    h.set_clock(NOW_MS + 70 * DAY_MS);
    assert_eq!(read(&store, id).await, None);
}

fn beside(n: u16, offset: u64, rejected: Option<Reason>, at_us: i64) -> RowWrite {
    let entry = HistoryEntry { offset: Offset(offset), rejected };
    RowWrite { timestamp_us: at_us, row: RowKind::HistoryOverflow { task_id: task(PARTITION, n), entry } }
}

/// Entries are written without reading, in any order and more than once.
pub async fn history_beside_the_row_is_kept_by_task_and_offset<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let at = NOW_MS * 1_000;
    let late = beside(1, 9, Some(Reason::UnknownTask), at);
    write(&store, vec![late.clone(), beside(1, 300, None, at), beside(2, 1, None, at)]).await;
    write(&store, vec![late, beside(1, 8, Some(Reason::StaleEpoch), at)]).await;
    write(&store, vec![beside(1, 300, Some(Reason::StaleEpoch), at - 1)]).await;
    let found: Vec<_> = overflow(&store, 1).await.iter().map(|e| (e.offset.0, e.rejected)).collect();
    assert_eq!(found, [(8, Some(Reason::StaleEpoch)), (9, Some(Reason::UnknownTask)), (300, None)]);
    assert_eq!(overflow(&store, 2).await.len(), 1);
    assert_eq!(overflow(&store, 3).await, []);
    assert_eq!(read(&store, task(PARTITION, 1)).await, None, "an entry is not a row");
}

/// An entry of a task that lives as long as it may is there as long as its row.
pub async fn history_beside_the_row_outlives_the_row<H: Harness>() {
    let h = H::start().await;
    write(&h.store(), vec![beside(1, 9, None, NOW_MS * 1_000)]).await;
    h.set_clock(NOW_MS + OVERFLOW_TTL_MS - 1);
    assert_eq!(overflow(&h.store(), 1).await.len(), 1);
    h.set_clock(NOW_MS + OVERFLOW_TTL_MS);
    assert_eq!(overflow(&h.store(), 1).await, []);
}
