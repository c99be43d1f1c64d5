//! Checkpoints of one store in another one.

use snapshot_store::SnapshotStore;
use task_core::checkpoint::chunks_of;
use task_events::PartitionId;

/// Copies every checkpoint of a partition, and no row.
pub async fn copied<A: SnapshotStore, B: SnapshotStore>(partition: PartitionId, from: &A, to: &B) {
    for (name, manifest) in from.checkpoints(partition).await.expect("read") {
        for hash in chunks_of(&manifest, true).expect("a manifest") {
            let chunk = from.chunk(hash).await.expect("read").expect("a chunk that its manifest names");
            to.put_chunk(hash, chunk).await.expect("written");
        }
        to.publish(name, manifest).await.expect("written");
    }
}
