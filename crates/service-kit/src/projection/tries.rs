//! Attempts counted so far, for as long as the process lives: a partition that is taken away and
//! given back goes on counting, so no two records of this process share an identity.

use std::collections::BTreeMap;

use task_events::PartitionId;

/// Level and attempts of the subjects that were tried and are not known to be decided.
pub(super) type Tried<S> = BTreeMap<S, (u64, u32)>;

/// Of partitions that are not held now.
#[derive(Debug)]
pub(super) struct Tries<S>(BTreeMap<PartitionId, Tried<S>>);

impl<S: Ord> Tries<S> {
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn keep(&mut self, partition: PartitionId, tried: Tried<S>) {
        if !tried.is_empty() {
            self.0.insert(partition, tried);
        }
    }

    pub(super) fn take(&mut self, partition: PartitionId) -> Tried<S> {
        self.0.remove(&partition).unwrap_or_default()
    }
}
