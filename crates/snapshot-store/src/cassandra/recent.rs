//! Parameters that this session stored a while ago, kept in memory: whoever creates a task is soon asked for
//! them by its hand-out, and a read costs the nodes as much as a write.
//!
//! Only what is named by the hash of its own bytes is kept: under such a name there is nothing else, so what
//! is here cannot be out of date. It is gone when its life in the store is over.

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use task_events::{Sha256Hash, TaskId};

use crate::PayloadItem;

/// Bytes kept at most (32 MiB), and how many items these are for the standard task of the benchmarks.
const MAX_BYTES: u64 = 32 << 20;
const ITEMS: usize = 100_000;
/// What an item takes beside its bytes, by estimate.
const ITEM_BYTES: u64 = 136;

type Key = (TaskId, Sha256Hash);

#[derive(Clone)]
struct Kept {
    bytes: Bytes,
    expires_ms: i64,
}

#[derive(Clone)]
struct Size;

impl Weighter<Key, Kept> for Size {
    fn weight(&self, _: &Key, kept: &Kept) -> u64 {
        kept.bytes.len() as u64 + ITEM_BYTES
    }
}

/// Parameters of newly created tasks.
pub(super) struct Recent(Cache<Key, Kept, Size>);

impl Recent {
    pub fn new() -> Self {
        Self(Cache::with_weighter(ITEMS, MAX_BYTES, Size))
    }

    /// What may be kept of these items once they are stored.
    pub fn worth_keeping(items: &[(TaskId, PayloadItem, Bytes)]) -> Vec<(TaskId, Sha256Hash, Bytes)> {
        let parameters = items.iter().filter_map(|(task, item, bytes)| match item {
            PayloadItem::Parameters { payload_hash } => Some((*task, *payload_hash, bytes)),
            PayloadItem::StepOutput { .. } | PayloadItem::Result { .. } | PayloadItem::ErrorText => None,
        });
        parameters
            .filter(|(_, hash, bytes)| Sha256Hash::of(bytes) == *hash)
            // Not a part of the request it came in, which would be kept with it.
            .map(|(task, hash, bytes)| (task, hash, Bytes::copy_from_slice(bytes)))
            .collect()
    }

    /// Keeps what is stored by now.
    pub fn keep(&self, stored: Vec<(TaskId, Sha256Hash, Bytes)>, expires_ms: i64) {
        for (task, hash, bytes) in stored {
            self.0.insert((task, hash), Kept { bytes, expires_ms });
        }
    }

    /// An item, if it is here and alive.
    pub fn get(&self, task: TaskId, item: &PayloadItem, now_ms: i64) -> Option<Bytes> {
        let PayloadItem::Parameters { payload_hash } = item else { return None };
        let kept = self.0.get(&(task, *payload_hash))?;
        (now_ms < kept.expires_ms).then_some(kept.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(n: i64) -> TaskId {
        TaskId::from_raw(n << 22).unwrap()
    }

    fn named(bytes: &Bytes) -> PayloadItem {
        PayloadItem::Parameters { payload_hash: Sha256Hash::of(bytes) }
    }

    #[test]
    fn parameters_under_their_own_hash_are_kept_until_their_life_is_over() {
        let recent = Recent::new();
        let (own, other) = (Bytes::from_static(b"own"), Bytes::from_static(b"other"));
        let items = [
            (task(1), named(&own), own.clone()),
            (task(2), named(&other), own.clone()),
            (task(3), PayloadItem::Result { result_data_hash: Sha256Hash::of(&own) }, own.clone()),
            (task(4), PayloadItem::ErrorText, own.clone()),
        ];
        recent.keep(Recent::worth_keeping(&items), 100);
        assert_eq!(recent.get(task(1), &items[0].1, 99), Some(own));
        assert_eq!(recent.get(task(1), &items[0].1, 100), None);
        for (task, item, _) in &items[1..] {
            assert_eq!(recent.get(*task, item, 0), None, "{item:?}");
        }
        assert_eq!(recent.get(task(1), &items[1].1, 0), None);
    }

    #[test]
    fn it_holds_no_more_than_fits() {
        let recent = Recent::new();
        let mut kept = 0;
        for n in 0..400i64 {
            let mut bytes = vec![0; 256 << 10];
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            let bytes = Bytes::from(bytes);
            recent.keep(Recent::worth_keeping(&[(task(1 + n), named(&bytes), bytes.clone())]), i64::MAX);
            kept += u64::from(recent.get(task(1 + n), &named(&bytes), 0).is_some());
        }
        assert!(kept > 0 && recent.0.weight() <= MAX_BYTES, "{kept}, {}", recent.0.weight());
    }
}
