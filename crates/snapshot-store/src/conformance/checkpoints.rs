//! How far rows are acknowledged, and what a successor starts from.

use bytes::Bytes;
use task_events::{Offset, PartitionEpoch, PartitionId, RuleVersion};

use super::{Harness, NOW_MS, PARTITION, hash};
use crate::{CheckpointName, DAY_MS, SnapshotStore};

const OTHER: PartitionId = PartitionId(PARTITION.0 + 1);

/// A name by offset.
pub fn name(partition: PartitionId, offset: u64) -> CheckpointName {
    let state_hash = u128::MAX - u128::from(offset);
    CheckpointName {
        partition,
        offset: Offset(offset),
        epoch: PartitionEpoch(2),
        rule_version: RuleVersion(1),
        state_hash,
    }
}

/// Publishes a checkpoint by offset.
pub async fn publish<S: SnapshotStore>(store: &S, partition: PartitionId, offset: u64) {
    store.publish(name(partition, offset), manifest(partition, offset)).await.expect("published");
}

fn manifest(partition: PartitionId, offset: u64) -> Bytes {
    format!("{partition}/{offset}").into()
}

/// Offsets of a partition's checkpoints, each of which must have its own manifest.
pub async fn offsets<S: SnapshotStore>(store: &S, partition: PartitionId) -> Vec<u64> {
    let found = store.checkpoints(partition).await.expect("read");
    for (name, content) in &found {
        assert_eq!(*content, manifest(partition, name.offset.0));
    }
    found.iter().map(|(name, _)| name.offset.0).collect()
}

/// A lower offset changes nothing, and each partition has its own.
pub async fn acked_never_goes_back<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    assert_eq!(store.acked(PARTITION).await, Ok(Offset(0)));
    for (offset, expected) in [(5, 5), (300, 300), (5, 300), (299, 300), (300, 300), (0, 300), (u64::MAX, u64::MAX)] {
        store.put_acked(PARTITION, Offset(offset)).await.expect("stored");
        assert_eq!(store.acked(PARTITION).await, Ok(Offset(expected)));
    }
    assert_eq!(store.acked(OTHER).await, Ok(Offset(0)));
}

/// Chunks come back byte by byte; the same one again is no other.
pub async fn chunks_lie_under_their_hash<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let big: Bytes = (0..=255).cycle().take(3 << 20).collect::<Vec<u8>>().into();
    assert_eq!(store.chunk(hash(1)).await, Ok(None));
    for _ in 0..2 {
        store.put_chunk(hash(1), big.clone()).await.expect("stored");
        store.put_chunk(hash(2), Bytes::new()).await.expect("stored");
        assert_eq!(store.chunk(hash(1)).await, Ok(Some(big.clone())));
        assert_eq!(store.chunk(hash(2)).await, Ok(Some(Bytes::new())));
    }
    h.set_clock(NOW_MS + 1_000 * DAY_MS);
    assert_eq!(store.chunk(hash(1)).await, Ok(Some(big)), "chunks do not expire");
}

/// By offset as a number, then by epoch, in whatever order they came; names come back whole.
pub async fn the_highest_comes_first<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    publish(&store, PARTITION, 70_000).await;
    publish(&store, PARTITION, 255).await;
    assert_eq!(offsets(&store, PARTITION).await, [70_000, 255]);
    publish(&store, OTHER, 255).await;
    publish(&store, OTHER, 70_000).await;
    assert_eq!(offsets(&store, OTHER).await, [70_000, 255]);
    let later = CheckpointName { epoch: PartitionEpoch(300), ..name(PARTITION, 70_000) };
    store.publish(later.clone(), manifest(PARTITION, 70_000)).await.expect("published");
    let found = store.checkpoints(PARTITION).await.expect("read");
    let names: Vec<_> = found.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [later, name(PARTITION, 70_000)]);
}

/// On one day two are kept; one that comes late and low is not.
pub async fn the_two_highest_stay<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    for (offset, kept) in [
        (10, vec![10]),
        (30, vec![30, 10]),
        (20, vec![30, 20]),
        (5, vec![30, 20]),
        (40, vec![40, 30]),
        (50, vec![50, 40]),
    ] {
        publish(&store, PARTITION, offset).await;
        assert_eq!(offsets(&store, PARTITION).await, kept, "after {offset}");
    }
}

/// Of each day of publishing (UTC) the highest is kept besides.
pub async fn one_a_day_stays<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let midnight = (NOW_MS / DAY_MS + 1) * DAY_MS;
    for (now_ms, offset) in [
        (NOW_MS, 10),
        (NOW_MS, 20),
        (midnight - 1, 30),
        (midnight, 40),
        (midnight + 1, 50),
        (midnight + DAY_MS, 60),
        (midnight + 2 * DAY_MS, 70),
        (midnight + 2 * DAY_MS, 80),
        (midnight + 2 * DAY_MS, 90),
    ] {
        h.set_clock(now_ms);
        publish(&store, PARTITION, offset).await;
    }
    assert_eq!(offsets(&store, PARTITION).await, [90, 80, 60, 50, 30]);
}

/// Two writers of the same state choose the same name.
pub async fn the_same_name_again_changes_nothing<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    for offset in [10, 20] {
        publish(&store, PARTITION, offset).await;
    }
    h.set_clock(NOW_MS + 3 * DAY_MS);
    for offset in [20, 10, 20] {
        publish(&store, PARTITION, offset).await;
        assert_eq!(offsets(&store, PARTITION).await, [20, 10]);
    }
    publish(&store, PARTITION, 30).await;
    publish(&store, PARTITION, 40).await;
    assert_eq!(offsets(&store, PARTITION).await, [40, 30, 20], "20 is of the day it was first published");
}

/// What is kept of one partition does not depend on another.
pub async fn partitions_do_not_see_each_other<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    for offset in [10, 20, 30] {
        publish(&store, PARTITION, offset).await;
        publish(&store, PartitionId(PARTITION.0 + 256), offset + 1).await;
    }
    publish(&store, OTHER, 5).await;
    assert_eq!(offsets(&store, PARTITION).await, [30, 20]);
    assert_eq!(offsets(&store, OTHER).await, [5]);
    assert_eq!(offsets(&store, PartitionId(PARTITION.0 + 256)).await, [31, 21]);
    assert_eq!(offsets(&store, PartitionId(PARTITION.0 - 1)).await, Vec::<u64>::new());
    store.put_acked(OTHER, Offset(9)).await.expect("stored");
    assert_eq!(store.acked(PARTITION).await, Ok(Offset(0)));
}
