//! When a checkpoint is taken and when it may be published (design.md §4.10).

use task_core::checkpoint::FrozenState;
use task_events::{Offset, PartitionEpoch, RuleVersion};

use super::{Effect, Owner, Phase};

/// A state to publish. Cutting it into chunks takes time and is the shell's business.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// State at its offset.
    pub state: FrozenState,
    /// Epoch it is written in.
    pub epoch: PartitionEpoch,
    /// Rules active at the offset.
    pub rule_version: RuleVersion,
    /// State hash at the offset.
    pub state_hash: u128,
}

impl Owner {
    fn take_checkpoint(&self) -> Checkpoint {
        Checkpoint {
            state: self.fold.freeze(),
            epoch: self.fold.epoch,
            rule_version: self.fold.active_rules,
            state_hash: self.fold.hash(),
        }
    }

    /// Freezes the state at every offset divisible by the interval.
    pub(super) fn checkpoint_due(&mut self) {
        let at = self.fold.next_offset;
        if self.phase == Phase::Owning && at > Offset(0) && at.0.is_multiple_of(self.cfg.checkpoint_every) {
            self.checkpoint = Some(self.take_checkpoint());
            self.publish_checkpoint();
        }
    }

    /// Publishes the frozen state once every row owed up to its offset is acknowledged: whoever
    /// starts from it owes nothing below it, and could not owe it.
    pub(super) fn publish_checkpoint(&mut self) {
        let below = self.owed.acked_below(self.fold.next_offset);
        if self.checkpoint.as_ref().is_some_and(|c| c.state.offset() <= below || !self.rules.checkpoint_after_rows)
            && self.phase == Phase::Owning
            && let Some(checkpoint) = self.checkpoint.take()
        {
            self.out.push(Effect::Publish(Box::new(checkpoint)));
        }
    }

    /// A checkpoint at the offset of a clean hand-over.
    pub(super) fn hand_over(&mut self) {
        self.out.push(Effect::PutAcked(self.fold.next_offset));
        let checkpoint = self.take_checkpoint();
        self.out.push(Effect::Publish(Box::new(checkpoint)));
    }
}
