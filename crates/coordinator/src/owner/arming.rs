//! What an open task waits for, derived from the fold: the same after an event, after a record that
//! came to nothing and after a take-over.

use task_core::decide::{self, OVERDUE_AFTER_MS, View};
use task_core::timers::Timers as _;
use task_core::{CoreState, Row};
use task_events::{TaskId, TaskState};

use super::leasing::Live;
use super::{Now, Owner, Timer};

/// Releases in a row that are told as overdue (design.md §5), and from which on the task waits a
/// little longer each time, so that a worker that takes and never delivers fills no log.
const RELEASES: u32 = 5;
const RELEASE_PAUSE_MS: u64 = 100;
const RELEASE_PAUSE_MAX_MS: u64 = 30_000;

impl Owner {
    /// Arms every timer of an open task.
    pub(super) fn arm(&mut self, now: Now, id: TaskId) {
        let Some(slot) = self.fold.tasks.get(id) else { return };
        let (core, Some(row)) = (slot.core, slot.row.clone()) else { return };
        self.drop_timers(id);
        self.dispatch.withdraw(now.boot_ms, id);
        if core.state.is_live() {
            self.arm_attempt(now, &core, &row);
        } else {
            self.end_attempt(id);
            self.arm_wait(now, &core, &row);
        }
        let view = View { core: &core, row: &row };
        if let Some((at_ms, _)) = decide::due_timeout(view).filter(|_| !core.cancel_requested) {
            self.judged.arm((id, Timer::Timeout), self.clock.boot_at(now, at_ms));
        }
    }

    fn arm_attempt(&mut self, now: Now, core: &CoreState, row: &Row) {
        let id = core.id;
        if self.live.get(&id).is_none_or(|live| live.exec_epoch != core.exec_epoch) {
            self.end_attempt(id);
            self.holds.remove(&id);
            let lease_ms = row.timeout_config.as_ref().map_or(row.lease_max_ms, |t| t.lease_ms);
            let live = Live {
                exec_epoch: core.exec_epoch,
                worker_id: row.worker_id.clone(),
                until_ms: now.boot_ms.saturating_add(self.with_margin(lease_ms)),
                not_started_ms: now.boot_ms.saturating_add(self.cfg.not_started_ms),
                grace_ms: None,
                last_sign_ms: self.clock.broker_ms(now),
                step: None,
            };
            self.by_worker.entry(row.worker_id.clone()).or_default().insert(id);
            self.saw_worker(now, &row.worker_id, row.worker_incarnation);
            self.live.insert(id, live);
        }
        let Some(live) = self.live.get_mut(&id) else { return };
        if core.cancel_requested {
            let grace_ms = now.boot_ms.saturating_add(self.cfg.cancel_grace_ms);
            self.judged.arm((id, Timer::Grace), *live.grace_ms.get_or_insert(grace_ms));
        }
        if core.state == TaskState::Assigned && !row.optimistic_start {
            self.judged.arm((id, Timer::NotStarted), live.not_started_ms);
            self.unstarted.insert(id);
        } else {
            self.unstarted.remove(&id);
        }
        self.judged.arm((id, Timer::Lease), live.until_ms);
    }

    fn arm_wait(&mut self, now: Now, core: &CoreState, row: &Row) {
        let id = core.id;
        let waits = matches!(core.state, TaskState::Created | TaskState::Retrying);
        let mut since = now.boot_ms;
        if waits {
            since = since.max(self.due_at(now, id, row));
            if since <= now.boot_ms {
                // Not by the wheel, whose slots are longer than an append takes.
                self.offer(now, id);
            } else if !core.cancel_requested {
                self.acting.arm((id, Timer::Due), since);
            }
        }
        if !row.is_overdue_noted(core.state) {
            let overdue = since.saturating_add(OVERDUE_AFTER_MS as u64);
            let released = waits && row.released_in_a_row >= RELEASES;
            self.judged.arm((id, Timer::Overdue), if released { now.boot_ms } else { overdue });
        }
    }

    /// When a waiting task may be handed out at the earliest.
    pub(super) fn due_at(&self, now: Now, id: TaskId, row: &Row) -> u64 {
        let mut due = row.not_before.map_or(0, |at| self.clock.boot_at(now, at));
        due = due.max(self.holds.get(&id).copied().unwrap_or(0));
        if let Some(over) = row.released_in_a_row.checked_sub(RELEASES) {
            let pause = RELEASE_PAUSE_MS.saturating_mul(1 << over.min(16)).min(RELEASE_PAUSE_MAX_MS);
            let since = self.clock.boot_at_past(now, row.changed_broker_ms);
            due = due.max(since.saturating_add(pause));
        }
        due
    }
}
