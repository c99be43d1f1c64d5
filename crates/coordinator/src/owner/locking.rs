//! The lock server (design.md §6): it shows who runs what; the authority is exec_epoch in the log.

use assignment_lock::{Holder, Lock, LockUnavailable, ServerState};

use super::asking::Call;
use super::{Alarm, Effect, Now, Owner, Ticket};

/// Pause between looks at a lock server that is away, ms.
const AWAY_MS: u64 = 1_000;

/// What is known of the lock server.
#[derive(Clone, Debug, Default)]
pub(super) struct LockState {
    pub(super) away: bool,
    run_id: Option<String>,
    looked_ms: u64,
}

impl Owner {
    /// Locks were taken, or the lock server did not answer: the log fences all the same.
    pub(super) fn locks_taken(&mut self, now: Now, ticket: Ticket, answer: Result<(), LockUnavailable>) {
        let Some(Call::Locks(tasks)) = self.calls.remove(&ticket) else { return };
        if answer.is_err() {
            self.lock_is_away();
        }
        for task in tasks {
            if self.dispatch.under_way.get(&task).is_some_and(|hand_out| hand_out.lock == ticket) {
                self.hand_out_settled(now, task, |h| h.locked = true);
            }
        }
    }

    fn lock_is_away(&mut self) {
        if !std::mem::replace(&mut self.lock.away, true) {
            self.alarm(Alarm::LockUnavailable);
        }
    }

    /// Renews the locks of live attempts and looks at the lock server; more often while it is away,
    /// since with `pause` nothing is handed out until it is back.
    pub(super) fn keep_locks(&mut self, now: Now) {
        let ttl_ms = self.cfg.lock_ttl_ms.min(self.cfg.lease_ms);
        let every = if self.lock.away { AWAY_MS } else { (ttl_ms / 3).max(1) };
        let idle = self.live.is_empty() && !self.lock.away;
        if now.boot_ms < self.lock.looked_ms.saturating_add(every) || idle {
            return;
        }
        self.lock.looked_ms = now.boot_ms;
        let mut locks: Vec<Lock> = self
            .live
            .iter()
            .map(|(id, live)| {
                let holder = Holder { worker_id: live.worker_id.clone(), exec_epoch: live.exec_epoch };
                Lock { task: *id, holder, ttl_ms }
            })
            .collect();
        if !locks.is_empty() {
            locks.sort_unstable_by_key(|lock| lock.task);
            self.out.push(Effect::RenewLocks(locks));
        }
        self.out.push(Effect::AskLockServer);
    }

    /// Absence is not evidence: after the lock server was away, changed its run or lost its
    /// sentinel, leases start anew in full (design.md §6).
    pub(super) fn lock_server(&mut self, now: Now, answer: Result<ServerState, LockUnavailable>) {
        match answer {
            Err(_) => self.lock_is_away(),
            Ok(state) => {
                let changed = self.lock.run_id.as_ref().is_some_and(|id| *id != state.run_id) || !state.sentinel;
                if self.lock.away || changed {
                    self.leases_anew(now);
                }
                self.lock.away = false;
                self.lock.run_id = Some(state.run_id);
            }
        }
    }
}
