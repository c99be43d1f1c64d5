//! The board (design.md §6): what the instances of the coordinator tell each other of themselves, on
//! the lock server. A cache with an expiry: nobody is an owner by what stands here, and without it an
//! edge asks the group of the coordinators, which takes longer.

use std::collections::BTreeMap;
use std::future::Future;

use serde::{Deserialize, Serialize};
use task_events::{PartitionEpoch, PartitionId, Text};

use crate::LockUnavailable;

/// What an instance tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub instance: Text,
    /// Where it answers.
    pub url: Text,
    /// Partitions it owns, having read its claim back, with the number of that ownership.
    pub owns: BTreeMap<PartitionId, PartitionEpoch>,
    /// Tasks its owners could hand out now, by queue; of very many queues some are left out.
    pub ready: BTreeMap<Text, u64>,
}

/// The board. Cheap to clone. Entries expire by the server's own clock.
pub trait Board: Clone + Send + Sync + 'static {
    /// Puts up what an instance tells, in place of what it told before; it stands for so long, ms.
    fn put_up(&self, entry: Entry, ttl_ms: u64) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static;

    /// Takes down what an instance told.
    fn take_down(&self, instance: Text) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static;

    /// Everything that stands, by name of the instance. What cannot be read is left out: another
    /// release may say more, or less.
    fn entries(&self) -> impl Future<Output = Result<Vec<Entry>, LockUnavailable>> + Send + 'static;
}
