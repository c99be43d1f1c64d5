//! What tasks are found by: traces and business keys.

use std::sync::Arc;

use task_events::{PartitionId, TaskId, TaskState, Text};

use super::{Harness, NOW_MS, PARTITION, closed_row, new_row, snapshot_write, task, write};
use crate::{DAY_MS, LISTING_TTL_MS, SNAPSHOT_TTL_MS, SnapshotRow, SnapshotStore};

/// Gives a row the names it is to be found by.
pub fn named(mut snapshot: SnapshotRow, trace_id: Option<&str>, creator: &str, key: Option<&str>) -> SnapshotRow {
    let row = Arc::make_mut(&mut snapshot.row);
    let created = Arc::make_mut(&mut row.created);
    created.trace_given = trace_id.is_some();
    created.creator = creator.into();
    created.business_key = key.map(Text::from);
    row.trace_id = trace_id.unwrap_or("own").into();
    snapshot
}

/// Tasks by a trace.
pub async fn found<S: SnapshotStore>(store: &S, name: &str, limit: usize) -> Vec<TaskId> {
    store.tasks_by_trace(name.into(), limit).await.expect("read")
}

/// Tasks by a business key.
pub async fn of_key<S: SnapshotStore>(store: &S, creator: &str, key: &str, limit: usize) -> Vec<TaskId> {
    store.tasks_by_business_key(creator.into(), key.into(), limit).await.expect("read")
}

// Of any partition, at this time of the id.
fn id(ms: i64, partition: u16, n: u16) -> TaskId {
    TaskId::from_parts(ms, PartitionId(partition), n).expect("parts in range")
}

/// By id as a number over all partitions, up to the limit, each task once; only given traces count.
pub async fn a_trace_finds_its_tasks_newest_first<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    assert_eq!(found(&store, "t", 10).await, []);
    let ids = [id(255, 9, 1), id(256, 0, 0), id(256, 0, 1), id(256, 7, 0), id(95_000_000_000, 3, 9)];
    for (at, order) in [(1, [2, 0, 4, 1, 3]), (2, [4, 3, 2, 1, 0])] {
        let row = |n: usize| snapshot_write(at, named(new_row(ids[n]), Some("t"), "c", None));
        write(&store, order.map(row).to_vec()).await;
    }
    let other = named(new_row(id(257, 3, 0)), Some("u"), "c", None);
    let own = named(new_row(id(258, 3, 0)), None, "c", None);
    write(&store, vec![snapshot_write(1, other.clone()), snapshot_write(1, own)]).await;
    let mut expected = ids.to_vec();
    expected.reverse();
    for limit in [0, 1, 3, 5, 6, usize::MAX] {
        assert_eq!(found(&store, "t", limit).await, expected[..limit.min(5)], "limit {limit}");
    }
    assert_eq!(found(&store, "u", 10).await, [other.core.id]);
    for nobodys in ["own", "", "tt"] {
        assert_eq!(found(&store, nobodys, 10).await, [], "{nobodys:?}");
    }
}

/// The same for business keys; one key of two creators is two.
pub async fn a_business_key_finds_the_tasks_of_its_creator<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let row = |n: u16, creator: &str, key| named(new_row(task(PARTITION, n)), None, creator, key);
    let rows = [
        row(1, "c", Some("order-7")),
        row(2, "c", Some("order-7")),
        row(3, "d", Some("order-7")),
        row(4, "c", Some("order-8")),
        row(5, "c", None),
    ];
    write(&store, rows.map(|row| snapshot_write(1, row)).to_vec()).await;
    let ids = |ns: &[u16]| ns.iter().map(|n| task(PARTITION, *n)).collect::<Vec<_>>();
    assert_eq!(of_key(&store, "c", "order-7", 10).await, ids(&[2, 1]));
    assert_eq!(of_key(&store, "c", "order-7", 1).await, ids(&[2]));
    assert_eq!(of_key(&store, "d", "order-7", 10).await, ids(&[3]));
    assert_eq!(of_key(&store, "c", "order-8", 10).await, ids(&[4]));
    for (creator, key) in [("c", ""), ("", "order-7"), ("e", "order-7")] {
        assert_eq!(of_key(&store, creator, key, 10).await, [], "{creator:?} {key:?}");
    }
    assert_eq!(found(&store, "order-7", 10).await, [], "a key is no trace");
}

/// Names of any length and content, however they run into each other.
pub async fn names_are_told_apart<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let long = "k".repeat(100_000);
    let longer = "k".repeat(100_001);
    let names = [
        ("a", "bc"),
        ("ab", "c"),
        ("abc", ""),
        ("", "abc"),
        ("a\0", "b"),
        ("a", "\0b"),
        ("盘", "满"),
        ("a", &long),
        ("a", &longer),
        (&long, "a"),
    ];
    let row = |(n, (creator, key)): (u16, (&str, &str))| {
        let both = format!("{creator}{key}{n}");
        snapshot_write(1, named(new_row(task(PARTITION, n)), Some(&both), creator, Some(key)))
    };
    write(&store, (0..).zip(names).map(row).collect()).await;
    for (n, (creator, key)) in (0..).zip(names) {
        let what = format!("name {n}");
        assert_eq!(of_key(&store, creator, key, 10).await, [task(PARTITION, n)], "{what}");
        assert_eq!(found(&store, &format!("{creator}{key}{n}"), 10).await, [task(PARTITION, n)], "{what}");
    }
}

// Whether a task is found by each of its names.
async fn listed<S: SnapshotStore>(store: &S, id: TaskId) -> bool {
    let by_trace = found(store, "t", 100).await.contains(&id);
    let by_key = of_key(store, "c", "k", 100).await.contains(&id);
    assert_eq!(by_trace, by_key, "one life for both");
    by_trace
}

fn open(n: u16) -> SnapshotRow {
    named(new_row(task(PARTITION, n)), Some("t"), "c", Some("k"))
}

fn closed(n: u16, ended_ms: i64) -> SnapshotRow {
    named(closed_row(task(PARTITION, n), TaskState::Success, ended_ms), Some("t"), "c", Some("k"))
}

/// 180 days after the terminal event, whenever the row was written; open tasks stay.
pub async fn a_task_is_listed_until_half_a_year_after_its_end<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let mut reviewed = closed(2, NOW_MS - 5 * DAY_MS);
    Arc::make_mut(&mut reviewed.row).changed_broker_ms = NOW_MS;
    let rows = [closed(1, NOW_MS - 10 * DAY_MS), reviewed, open(3)].map(|row| snapshot_write(1, row)).to_vec();
    write(&store, rows.clone()).await;
    for (now_ms, expected) in [
        (NOW_MS + SNAPSHOT_TTL_MS, [true, true, true]),
        (NOW_MS - 10 * DAY_MS + LISTING_TTL_MS - 1, [true, true, true]),
        (NOW_MS - 10 * DAY_MS + LISTING_TTL_MS, [false, true, true]),
        (NOW_MS - 5 * DAY_MS + LISTING_TTL_MS - 1, [false, true, true]),
        (NOW_MS - 5 * DAY_MS + LISTING_TTL_MS, [false, false, true]),
        (NOW_MS + 1_000 * DAY_MS, [false, false, true]),
    ] {
        h.set_clock(now_ms);
        for again in [false, true] {
            for (n, expected) in (1..).zip(expected) {
                let days = (now_ms - NOW_MS) / DAY_MS;
                let there = listed(&store, task(PARTITION, n)).await;
                assert_eq!(there, expected, "task {n}, {days} days later, written again: {again}");
            }
            // Writing it again is not a new life.
            write(&store, rows.clone()).await;
        }
    }
}

/// A closed task that is open again is listed until its new end is half a year ago.
pub async fn a_replayed_task_stays_listed<H: Harness>() {
    let h = H::start().await;
    let (store, id) = (h.store(), task(PARTITION, 1));
    write(&store, vec![snapshot_write(1, closed(1, NOW_MS))]).await;
    write(&store, vec![snapshot_write(2, open(1))]).await;
    h.set_clock(NOW_MS + LISTING_TTL_MS + DAY_MS);
    assert!(listed(&store, id).await);
    write(&store, vec![snapshot_write(3, closed(1, NOW_MS + 20 * DAY_MS))]).await;
    h.set_clock(NOW_MS + 20 * DAY_MS + LISTING_TTL_MS - 1);
    assert!(listed(&store, id).await);
    h.set_clock(NOW_MS + 20 * DAY_MS + LISTING_TTL_MS);
    assert!(!listed(&store, id).await);
}

/// Entries follow the timestamps of their rows, in one batch and over several.
pub async fn a_late_writer_changes_no_life<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let done = |n, at| snapshot_write(at, closed(n, NOW_MS));
    let again = |n, at| snapshot_write(at, open(n));
    // 1: closed stays closed; 2: open stays open.
    write(&store, vec![done(1, 9), again(2, 9)]).await;
    write(&store, vec![again(1, 8), done(2, 8)]).await;
    // The same within one batch.
    write(&store, vec![done(3, 9), again(3, 8), again(4, 9), done(4, 8)]).await;
    h.set_clock(NOW_MS + LISTING_TTL_MS);
    for (n, expected) in (1..).zip([false, true, false, true]) {
        assert_eq!(listed(&store, task(PARTITION, n)).await, expected, "task {n}");
    }
}

/// The limit counts what is there, not what was.
pub async fn what_has_expired_takes_no_place<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let mut rows: Vec<_> = (20..40).map(|n| snapshot_write(1, closed(n, NOW_MS))).collect();
    rows.extend((0..3).map(|n| snapshot_write(1, open(n))));
    write(&store, rows).await;
    let newest = [39, 38].map(|n| task(PARTITION, n));
    assert_eq!(found(&store, "t", 2).await, newest);
    h.set_clock(NOW_MS + LISTING_TTL_MS);
    let left = [2, 1].map(|n| task(PARTITION, n));
    assert_eq!((found(&store, "t", 2).await, of_key(&store, "c", "k", 2).await), (left.to_vec(), left.to_vec()));
}
