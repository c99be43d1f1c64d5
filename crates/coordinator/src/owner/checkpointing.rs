//! When a checkpoint is taken and when it may be published (design.md §4.10).

use snapshot_store::CheckpointName;
use task_core::checkpoint::FrozenState;
use task_events::{Offset, PartitionEpoch, RuleVersion};

use super::{Effect, Now, Owner, Phase, Stop};

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

    /// Freezes the state at every offset divisible by the interval; every reader compares its hash.
    pub(super) fn checkpoint_due(&mut self, now: Now) {
        let at = self.fold.next_offset;
        if at == Offset(0) || !self.ring.is_due(at) {
            return;
        }
        if let Err(differs) = self.ring.note(at, self.fold.hash()) {
            return self.stop(now, Stop::StateDiffers(differs));
        }
        if self.phase == Phase::Owning {
            // One that waits for a closed task's lease is not put off any further by the next.
            if !self.checkpoint.as_ref().is_some_and(|c| self.dispatch.keys.hides_closed(c.state.offset())) {
                self.checkpoint = Some(self.take_checkpoint());
            }
            self.publish_checkpoint();
        }
    }

    /// Checkpoints that anybody has published: whoever folded the log to another state than this
    /// owner at the same offset, one of both is wrong, and this one stops.
    pub(super) fn published(&mut self, now: Now, names: Vec<CheckpointName>) {
        for name in names {
            if name.partition == self.partition()
                && let Err(differs) = self.ring.expect(name.offset, name.state_hash)
            {
                return self.stop(now, Stop::StateDiffers(differs));
            }
        }
    }

    /// Publishes the frozen state once every row owed up to its offset is acknowledged: whoever
    /// starts from it owes nothing below it, and could not owe it. Nor while the handler of a task
    /// that was closed below it may still run under a concurrency key, which it could not know.
    pub(super) fn publish_checkpoint(&mut self) {
        let below = self.owed.acked_below(self.fold.next_offset);
        if self.checkpoint.as_ref().is_some_and(|c| c.state.offset() <= below || !self.rules.checkpoint_after_rows)
            && self.phase == Phase::Owning
            && !self.checkpoint.as_ref().is_some_and(|c| self.dispatch.keys.hides_closed(c.state.offset()))
            && let Some(checkpoint) = self.checkpoint.take()
        {
            self.out.push(Effect::Publish(Box::new(checkpoint)));
        }
    }

    /// A checkpoint at the offset of a clean hand-over.
    pub(super) fn hand_over(&mut self) {
        self.out.push(Effect::PutAcked(self.fold.next_offset));
        if self.dispatch.keys.hides_closed(self.fold.next_offset) {
            return;
        }
        let checkpoint = self.take_checkpoint();
        self.out.push(Effect::Publish(Box::new(checkpoint)));
    }
}
