//! Two stores, by everything a reader can ask.

use std::collections::BTreeSet;

use event_log::{EventLog, RawRecord, Tail as _};
use snapshot_store::conformance::ended::whole;
use snapshot_store::{EndedList, SnapshotRow, SnapshotStore};
use task_events::{Body, Offset, PartitionId, TaskId};

use crate::PARTITIONS;

/// Every record of a partition.
pub async fn records<L: EventLog>(log: &L, partition: PartitionId) -> Vec<RawRecord> {
    let end = log.range(partition).await.expect("a range").end;
    let mut tail = log.tail(partition, Offset(0)).await.expect("a tail");
    let mut records = Vec::new();
    while (records.len() as u64) < end.0 {
        records.extend(tail.next().await.expect("records"));
    }
    records
}

/// Holds what is stored of a task against each other; its row.
pub async fn rows<A: SnapshotStore, B: SnapshotStore>(id: TaskId, a: &A, b: &B) -> SnapshotRow {
    let [one, other] = [a.snapshots(vec![id]).await, b.snapshots(vec![id]).await].map(|row| row.expect("read"));
    assert_eq!(one, other, "{id}");
    assert_eq!(a.history_overflow(id).await, b.history_overflow(id).await, "{id}");
    assert_eq!(a.ended_task(id).await, b.ended_task(id).await, "{id}");
    one.into_iter().next().flatten().unwrap_or_else(|| panic!("{id} has no row"))
}

/// Holds one against the other; how many tasks there are.
pub async fn stores<L: EventLog, A: SnapshotStore, B: SnapshotStore>(log: &L, a: &A, b: &B) -> usize {
    let mut tasks = BTreeSet::new();
    let (mut open, mut closed, mut beside, mut codes) = (0, 0, 0, BTreeSet::new());
    for partition in (0..PARTITIONS).map(PartitionId) {
        let mut names = BTreeSet::new();
        for event in records(log, partition).await.iter().filter_map(|raw| raw.event().ok()) {
            if let (Body::TaskCreated(created), Some(id)) = (&event.body, event.task_id) {
                tasks.insert(id);
                names.insert((created.key_hash, created.business_key.clone(), event.trace_id.clone()));
                let (creator, key) = (created.creator.clone(), created.business_key.clone().unwrap_or_default());
                let found = [
                    a.tasks_by_business_key(creator.clone(), key.clone(), 100).await.expect("read"),
                    b.tasks_by_business_key(creator, key, 100).await.expect("read"),
                ];
                assert_eq!(found[0], found[1]);
            }
        }
        for (key, _, trace) in names {
            if let Some(key) = key {
                let found = a.key(key).await.expect("read");
                assert!(found.is_some());
                assert_eq!(found, b.key(key).await.expect("read"));
            }
            let found = a.tasks_by_trace(trace.clone(), 100).await.expect("read");
            assert_eq!(found, b.tasks_by_trace(trace, 100).await.expect("read"));
        }
        let [one, other] = [a.acked(partition).await, b.acked(partition).await].map(|acked| acked.expect("read"));
        assert!(one <= other, "a rebuild reaches the end of the log: {one} {other}");
    }
    for id in &tasks {
        let row = rows(*id, a, b).await;
        *if row.core.state.is_terminal() { &mut closed } else { &mut open } += 1;
        codes.extend(row.row.error_code.clone());
        beside += a.history_overflow(*id).await.expect("read").len();
    }
    let lists = codes.into_iter().map(EndedList::Code).chain([EndedList::All, EndedList::Review]);
    for list in lists {
        for partition in (0..PARTITIONS).map(PartitionId) {
            let page = a.ended(whole(list.clone(), partition, true), 1_000).await.expect("read");
            assert_eq!(page, b.ended(whole(list.clone(), partition, true), 1_000).await.expect("read"), "{list:?}");
        }
    }
    assert!(open > 0 && closed > 0 && beside > 0, "of each: {open} {closed} {beside}");
    tasks.len()
}
