//! What keeps a concurrency key busy, derived from the fold and from hand-outs under way: after each
//! change of a task, after a claim, and when what was left of a lease is over.

use task_core::Closed;
use task_events::TaskId;

use super::keys::{RUNS, key_of};
use super::{Now, Owner};

impl Owner {
    /// An open task changed, or its hand-out did.
    pub(super) fn mind_key(&mut self, now: Now, id: TaskId) {
        if !self.rules.one_per_key {
            return;
        }
        let Some(slot) = self.fold.tasks.get(id) else { return };
        let Some(key) = slot.row.as_deref().and_then(key_of) else { return };
        let runs = slot.core.state.is_live() || self.dispatch.is_under_way(id);
        let until = if runs { Some(RUNS) } else { self.holds.get(&id).copied().filter(|at| *at > now.boot_ms) };
        match until {
            Some(until_ms) => self.dispatch.occupy(now.boot_ms, id, &key, until_ms),
            None => self.dispatch.free(now.boot_ms, id),
        }
    }

    /// A task was closed, whoever the owner was. Its handler may still run: the task was given up or
    /// cancelled while it did not answer.
    pub(super) fn note_closed_key(&mut self, closed: &Closed) {
        let left_ms = closed.row.lease_left_ms;
        if left_ms > 0
            && self.rules.wait_lease_left
            && self.rules.one_per_key
            && let Some(key) = key_of(&closed.row)
        {
            self.dispatch.keys.closed(closed.core.id, key, left_ms, closed.closed_at_offset);
        }
    }

    /// The same for the owner, who counts from its read-back.
    pub(super) fn mind_closed_key(&mut self, now: Now, closed: &Closed) {
        let id = closed.core.id;
        let until = self.holds.get(&id).copied().filter(|at| *at > now.boot_ms);
        match (until, key_of(&closed.row).filter(|_| self.rules.one_per_key)) {
            (Some(until_ms), Some(key)) => self.dispatch.occupy(now.boot_ms, id, &key, until_ms),
            (None, _) | (_, None) => {
                self.dispatch.keys.forget_closed(id);
                self.dispatch.free(now.boot_ms, id);
            }
        }
    }

    /// What is left of closed tasks' leases counts from the own claim.
    pub(super) fn closed_keys_anew(&mut self, now: Now) {
        for (id, key, left_ms) in self.dispatch.keys.closed_holds() {
            let until_ms = now.boot_ms.saturating_add(left_ms).min(RUNS - 1);
            self.dispatch.occupy(now.boot_ms, id, &key, until_ms);
        }
    }

    /// Frees the keys of attempts that can no longer run.
    pub(super) fn free_keys(&mut self, now: Now) {
        let mut any = false;
        while let Some(id) = self.dispatch.keys.ended(now.boot_ms) {
            self.dispatch.free(now.boot_ms, id);
            self.dispatch.keys.forget_closed(id);
            any = true;
        }
        if any {
            // One may have waited for just that.
            self.publish_checkpoint();
        }
    }
}
