//! Which partition a new task goes to (design.md §3).

use std::sync::atomic::Ordering;

use service_kit::Clock;
use task_events::{PartitionId, Sha256Hash, TaskId, Text};

use super::{ASK_AGAIN_MS, LOOK_AGAIN_MS, OWNER_WAIT_MS, Peers, Surface};
use crate::owner::{Answer, Command, CreateTask, Why};

/// What decides the partition of a new task, in this order; its concurrency key, if it has one, stands
/// between the two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Beside this task.
    pub same_partition_as: Option<TaskId>,
    /// By the hash of client and idempotency key.
    pub key_hash: Option<Sha256Hash>,
}

impl<C: Clock, P: Peers> Surface<C, P> {
    /// The partition a key is sent to.
    pub fn partition_of_key(&self, key: &Text) -> PartitionId {
        self.by_hash(&Sha256Hash::of(key.as_bytes()))
    }

    fn by_hash(&self, hash: &Sha256Hash) -> PartitionId {
        let head = u64::from_be_bytes(hash.0[..8].try_into().unwrap_or_default());
        PartitionId((head % u64::from(self.partitions.max(1))) as u16)
    }

    // Tasks of one concurrency key exclude each other only within a partition, so a place beside a
    // task of another partition is refused instead of breaking the key's promise.
    pub(super) fn place(&self, create: &CreateTask, placement: &Placement) -> Result<Option<PartitionId>, Answer> {
        let of_key = create.task.created.concurrency_key.as_ref().map(|key| self.partition_of_key(key));
        if let Some(beside) = placement.same_partition_as.map(TaskId::partition) {
            return match of_key {
                Some(of_key) if of_key != beside => Err(Answer::PlacementConflict { beside, of_key }),
                Some(_) | None => Ok(Some(beside)),
            };
        }
        Ok(of_key.or_else(|| placement.key_hash.as_ref().map(|hash| self.by_hash(hash))))
    }

    /// A create that may go anywhere: own partitions first, else another instance's. An owner that is
    /// away is no reason to wait while there is another one.
    pub(super) async fn create_anywhere(&self, create: Command) -> Answer {
        let started = self.clock.boot_ms();
        let (until, mut ask_peer_at, mut pause) = (started + OWNER_WAIT_MS, started, LOOK_AGAIN_MS);
        loop {
            let own = self.owned();
            let others = if own.is_empty() { self.peers.owned() } else { Vec::new() };
            // Takes turns, so that load spreads without a key.
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let answer = if let Some(partition) = of_turn(&own, turn) {
                self.ask_here(partition, &create).await
            } else if let Some(partition) = of_turn(&others, turn)
                && self.clock.boot_ms() >= ask_peer_at
            {
                let told = self.peers.ask(partition, &create).await;
                ask_peer_at = self.clock.boot_ms() + pause;
                pause = (pause * 2).min(ASK_AGAIN_MS);
                told.unwrap_or(Answer::Unavailable(Why::NotOwner))
            } else {
                Answer::Unavailable(Why::NotOwner)
            };
            if !answer.is_away() || self.clock.boot_ms() >= until || self.is_alone() {
                return answer;
            }
            self.clock.sleep_until(self.clock.boot_ms() + LOOK_AGAIN_MS).await;
        }
    }
}

fn of_turn(partitions: &[PartitionId], turn: usize) -> Option<PartitionId> {
    turn.checked_rem(partitions.len()).and_then(|at| partitions.get(at)).copied()
}
