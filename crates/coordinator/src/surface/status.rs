//! What health checks and metrics want to know of an instance, read from what its owners show:
//! nobody is asked, nothing is waited for.

use std::collections::BTreeMap;

use assignment_lock::Entry;
use service_kit::Clock;
use task_events::{Offset, PartitionId};

use super::{Peers, Surface};
use crate::owner::Identity;

/// The owner of one partition, as it last showed itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionStatus {
    /// Its claim was read back.
    pub owning: bool,
    /// Offset of the next record it folds.
    pub applied: Offset,
    /// Tasks it could hand out now.
    pub backlog: usize,
    /// Rows owed to the store, bytes.
    pub owed_bytes: usize,
    /// Open tasks.
    pub open_tasks: usize,
    /// Own records between append and read-back.
    pub in_flight: usize,
}

/// An instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Partitions of the topic.
    pub partitions: u16,
    /// The partitions assigned to it; of one that is being loaded only that it is there.
    pub assigned: BTreeMap<PartitionId, PartitionStatus>,
}

impl<C: Clock, P: Peers> Surface<C, P> {
    /// What this instance's owners show.
    pub fn status(&self) -> Status {
        let assigned = self.owners.read().iter().map(|(partition, owner)| (*partition, owner.status())).collect();
        Status { partitions: self.partitions, assigned }
    }

    /// What this instance tells the others of itself.
    pub fn entry(&self, identity: &Identity) -> Entry {
        let owners = self.owners.read();
        let owning = || owners.iter().filter(|(_, owner)| owner.is_owning());
        let mut ready = BTreeMap::new();
        for (queue, n) in owning().flat_map(|(_, owner)| owner.ready_by_queue()) {
            *ready.entry(queue).or_default() += n;
        }
        let owns = owning().map(|(partition, owner)| (*partition, owner.epoch())).collect();
        Entry { instance: identity.instance.clone(), url: identity.url.clone(), owns, ready }
    }
}
