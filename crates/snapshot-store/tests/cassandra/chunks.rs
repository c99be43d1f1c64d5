//! Chunks go with the last checkpoint that names them.

use bytes::Bytes;
use snapshot_store::conformance::{Harness, NOW_MS, PARTITION};
use snapshot_store::{CheckpointName, DAY_MS, SnapshotStore};
use task_core::PartitionState;
use task_events::{Offset, PartitionEpoch, RuleVersion, Sha256Hash};

use crate::kit::{Cassandra, ask, raw};

fn name(offset: u64) -> CheckpointName {
    CheckpointName {
        partition: PARTITION,
        offset: Offset(offset),
        epoch: PartitionEpoch(1),
        rule_version: RuleVersion(1),
        state_hash: 5,
    }
}

// Publishes a manifest that names these chunks, and puts them there before.
async fn publish(h: &Cassandra, offset: u64, chunks: &[&'static str]) {
    let store = h.store();
    let hashes: Vec<Sha256Hash> = chunks.iter().map(|chunk| Sha256Hash::of(chunk.as_bytes())).collect();
    for (chunk, hash) in chunks.iter().zip(&hashes) {
        store.put_chunk(*hash, Bytes::from(*chunk)).await.expect("stored");
    }
    let manifest = PartitionState::new(PARTITION, true).freeze().parts().manifest;
    let mut manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    manifest["core_chunks"] = hashes.iter().map(ToString::to_string).collect();
    let manifest = Bytes::from(manifest.to_string());
    assert_eq!(task_core::checkpoint::chunks_of(&manifest, true).expect("a manifest"), hashes);
    store.publish(name(offset), manifest).await.expect("published");
}

async fn there(h: &Cassandra, chunk: &str) -> bool {
    h.store().chunk(Sha256Hash::of(chunk.as_bytes())).await.expect("read").is_some()
}

/// What a later one names as well stays, and so does what was written again since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_go_with_the_last_that_names_them() {
    let h = Cassandra::start().await;
    publish(&h, 10, &["a", "b", "c"]).await;
    h.set_clock(NOW_MS + 1_000);
    publish(&h, 20, &["b", "d"]).await;
    h.set_clock(NOW_MS + 2_000);
    // For a checkpoint that is not published yet.
    h.store().put_chunk(Sha256Hash::of(b"c"), Bytes::from("c")).await.expect("stored");
    h.set_clock(NOW_MS + 3_000);
    publish(&h, 30, &["e"]).await;
    for (chunk, expected) in [("a", false), ("b", true), ("c", true), ("d", true), ("e", true)] {
        assert_eq!(there(&h, chunk).await, expected, "{chunk}");
    }
}

/// The two highest stay, wherever the log starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_log_has_passed_is_forgotten() {
    let h = Cassandra::start().await;
    for day in 0..5_i64 {
        h.set_clock(NOW_MS + day * DAY_MS);
        publish(&h, 10 + 10 * day as u64, &[["a", "b", "c", "d", "e"][day as usize]]).await;
    }
    assert_eq!(h.store().forget_checkpoints(PARTITION, Offset(30)).await, Ok(2));
    assert_eq!(h.store().forget_checkpoints(PARTITION, Offset(1_000)).await, Ok(1));
    let left = h.store().checkpoints(PARTITION).await.expect("read");
    assert_eq!(left.iter().map(|(name, _)| name.offset.0).collect::<Vec<_>>(), [50, 40]);
    let chunks: Vec<(i32,)> = ask(&raw(&h.config).await, "SELECT part FROM checkpoint_chunks").await;
    assert_eq!(chunks.len(), 2);
}
