//! How far the folds of a service are, shown to whoever probes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use task_events::{Offset, PartitionId};

/// How far one partition is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// It may be decided: the own claim was read back, or the fold reached the end of the log.
    pub owning: bool,
    /// Offset of the next record to fold.
    pub applied: Offset,
}

/// The partitions a service holds, as it last showed them. Clones share them; nobody decides anything
/// by them.
#[derive(Clone, Debug, Default)]
pub struct Standings(Arc<Mutex<BTreeMap<PartitionId, Standing>>>);

impl Standings {
    /// Shows how far a partition is.
    pub fn set(&self, partition: PartitionId, standing: Standing) {
        self.0.lock().insert(partition, standing);
    }

    /// The partition is not held any more.
    pub fn remove(&self, partition: PartitionId) {
        self.0.lock().remove(&partition);
    }

    /// All of them.
    pub fn all(&self) -> BTreeMap<PartitionId, Standing> {
        self.0.lock().clone()
    }
}
