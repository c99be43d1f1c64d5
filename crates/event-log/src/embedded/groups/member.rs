//! Membership of a group of the embedded log.

use std::sync::Arc;
use std::time::Duration;

use task_events::{Offset, PartitionId};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use super::Groups;
use super::state::MemberId;
use crate::{GroupMember, LogError, MembershipEvent};

/// A member of a group. Its signs of life come from a task on the runtime that joined, so a
/// member whose runtime stands still is dropped like a dead one.
pub struct EmbeddedMember {
    pub(super) groups: Arc<Groups>,
    pub(super) group: String,
    pub(super) id: MemberId,
    pub(super) events: UnboundedReceiver<MembershipEvent>,
    pub(super) heartbeats: JoinHandle<()>,
}

impl GroupMember for EmbeddedMember {
    async fn next(&mut self) -> Result<MembershipEvent, LogError> {
        self.events.recv().await.ok_or_else(|| LogError::NotMember(self.group.clone()))
    }

    fn release(&mut self, partition: PartitionId, applied: Offset) {
        self.groups.release(&self.group, self.id, partition, applied);
    }

    fn progress(&mut self, partition: PartitionId, applied: Offset) {
        self.groups.record(&self.group, partition, applied);
    }

    async fn leave(self, _deadline: Duration) {
        self.groups.leave(&self.group, self.id);
    }
}

impl Drop for EmbeddedMember {
    fn drop(&mut self) {
        self.heartbeats.abort();
    }
}
