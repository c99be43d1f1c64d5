//! The lock server (design.md §6): it shows who runs what; the authority is exec_epoch in the log.

use assignment_lock::{Holder, Lock, LockUnavailable, ServerState};
use task_events::TaskId;

use super::asking::Call;
use super::{Alarm, Effect, LockUnavailablePolicy, Now, Owner, Ticket};

/// Pause between looks at a lock server that is away, ms.
const AWAY_MS: u64 = 1_000;

/// What is known of the lock server.
#[derive(Clone, Debug, Default)]
pub(super) struct LockState {
    pub(super) away: bool,
    run_id: Option<String>,
    looked_ms: u64,
    /// What was said last of a key that is no lock.
    unusable: Option<String>,
}

impl Owner {
    /// Whether nothing is handed out because the lock server is away.
    pub(super) fn paused_by_lock(&self) -> bool {
        self.lock.away && self.cfg.lock_unavailable == LockUnavailablePolicy::Pause
    }

    /// Locks were taken, or were not: the log fences all the same.
    pub(super) fn locks_taken(&mut self, now: Now, ticket: Ticket, answer: Result<(), LockUnavailable>) {
        let Some(Call::Locks(tasks)) = self.calls.remove(&ticket) else { return };
        if let Err(why) = answer {
            self.lock_failed(why);
        }
        for task in tasks {
            if self.dispatch.under_way.get(&task).is_some_and(|hand_out| hand_out.lock == ticket) {
                self.hand_out_settled(now, task, |h| h.locked = true);
            }
        }
    }

    // A key that somebody else uses says nothing of the server: whoever took it for an absence would
    // start all leases anew with every renewal, for ever.
    fn lock_failed(&mut self, why: LockUnavailable) {
        let text = why.to_string();
        if why.is_server() {
            if !std::mem::replace(&mut self.lock.away, true) {
                self.alarm(Alarm::LockUnavailable(text));
            }
        } else if self.lock.unusable.as_ref() != Some(&text) {
            self.lock.unusable = Some(text.clone());
            self.alarm(Alarm::LockUnusable(text));
        }
    }

    /// Renews the locks of live attempts and looks at the lock server; one that is away is only looked
    /// at, but more often, since with `pause` nothing is handed out until it is back.
    pub(super) fn keep_locks(&mut self, now: Now) {
        let every = if self.lock.away { AWAY_MS } else { (self.lock_ttl_ms() / 3).max(1) };
        let idle = self.live.is_empty() && !self.lock.away;
        if now.boot_ms < self.lock.looked_ms.saturating_add(every) || idle {
            return;
        }
        self.lock.looked_ms = now.boot_ms;
        if !self.lock.away {
            self.renew_locks();
        }
        self.out.push(Effect::AskLockServer);
    }

    fn renew_locks(&mut self) {
        let ttl_ms = self.lock_ttl_ms();
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
    }

    /// The attempt is over. What a server that is away keeps of it expires by itself.
    pub(super) fn release_lock(&mut self, task: TaskId, holder: Holder) {
        if !self.lock.away {
            self.out.push(Effect::ReleaseLocks(vec![(task, holder)]));
        }
    }

    /// min(30 s, lease).
    pub(super) fn lock_ttl_ms(&self) -> u64 {
        self.cfg.lock_ttl_ms.min(self.cfg.lease_ms)
    }

    /// Absence is not evidence: after the lock server was away, changed its run or lost its
    /// sentinel, leases start anew in full, and its locks are set again (design.md §6).
    pub(super) fn lock_server(&mut self, now: Now, answer: Result<ServerState, LockUnavailable>) {
        match answer {
            Err(why) => self.lock_failed(why),
            Ok(state) => {
                let changed = self.lock.run_id.as_ref().is_some_and(|id| *id != state.run_id) || !state.sentinel;
                if self.lock.away || changed {
                    self.leases_anew(now);
                    self.renew_locks();
                }
                self.lock.away = false;
                self.lock.run_id = Some(state.run_id);
            }
        }
    }
}
