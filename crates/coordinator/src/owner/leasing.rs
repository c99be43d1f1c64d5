//! Leases, signs of life and every other timer of a task.

use task_core::decide::{self, Lost, OVERDUE_AFTER_MS, View};
use task_core::timers::Timers as _;
use task_core::{Closed, Pen, Record, pending_work};
use task_events::{Body, ExecEpoch, KindClass, ReleaseReason, TaskId, TaskState, Text};
use worker_protocol::{Heartbeat, HeartbeatAnswer};

use super::work::{Batch, Job, Origin};
use super::{Answer, Command, Effect, Now, Owner, Phase, Timer};

/// What the owner remembers of a live attempt.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) exec_epoch: ExecEpoch,
    pub(super) worker_id: Text,
    /// Boot ms until which the worker may hold on, the owner's margin included.
    pub(super) until_ms: u64,
    /// Last sign of life, broker time.
    pub(super) last_sign_ms: i64,
    /// Step last told to be in progress, and whether it is idempotent.
    pub(super) step: Option<(Text, bool)>,
}

impl Owner {
    fn with_margin(&self, lease_ms: u64) -> u64 {
        if !self.rules.lease_margin {
            return lease_ms / 2;
        }
        lease_ms.saturating_add(lease_ms * self.cfg.lease_margin_percent / 100).saturating_add(self.cfg.lease_margin_ms)
    }

    /// An open task changed by an accepted record: derive again what it waits for.
    pub(super) fn task_changed(&mut self, now: Now, id: TaskId, record: &Record) {
        if self.phase != Phase::Owning {
            return;
        }
        self.hold_from(now, id, &record.event.body);
        if record.event.kind.class() == KindClass::TaskEvent {
            self.derive(now, id, self.cfg.lease_ms);
            if matches!(record.event.body, Body::TaskStarted(_) | Body::TaskStepCompleted(_)) {
                self.sign_of_life(now, id, self.cfg.lease_ms);
            }
        }
        self.todo.insert(id);
    }

    // The next attempt waits until the former one can no longer run.
    fn hold_from(&mut self, now: Now, id: TaskId, body: &Body) {
        let left = match body {
            Body::TaskReleased(b) => b.lease_left_ms,
            Body::TaskLost(b) => b.lease_left_ms,
            Body::TaskTimedOut(b) if b.execution_id.is_some() => b.lease_left_ms,
            Body::TaskReplayRequested(b) => b.carried.lease_left_ms,
            Body::TaskCancelled(b) => b.lease_left_ms,
            _ => return,
        };
        if left > 0 && self.rules.wait_lease_left {
            self.holds.insert(id, now.boot_ms + left);
        }
    }

    /// A task was closed.
    pub(super) fn task_closed(&mut self, now: Now, closed: &Closed, record: &Record) {
        let id = closed.core.id;
        if self.phase != Phase::Owning {
            return;
        }
        self.hold_from(now, id, &record.event.body);
        if closed.row.lease_left_ms == 0 {
            self.holds.remove(&id);
        }
        self.unlock(id, closed.core.exec_epoch, &closed.row.worker_id);
        self.drop_live(id);
        self.drop_timers(id);
        self.dispatch.withdraw(id);
        self.todo.remove(&id);
    }

    pub(super) fn unlock(&mut self, id: TaskId, exec_epoch: ExecEpoch, worker_id: &Text) {
        if exec_epoch.0 > 0 {
            let holder = assignment_lock::Holder { worker_id: worker_id.clone(), exec_epoch };
            self.out.push(Effect::ReleaseLocks(vec![(id, holder)]));
        }
    }

    fn drop_timers(&mut self, id: TaskId) {
        for timer in [Timer::Due, Timer::Lease, Timer::NotStarted, Timer::Timeout, Timer::Grace, Timer::Overdue] {
            self.timers.cancel(&(id, timer));
        }
    }

    fn drop_live(&mut self, id: TaskId) {
        if let Some(live) = self.live.remove(&id)
            && let Some(tasks) = self.by_worker.get_mut(&live.worker_id)
        {
            tasks.remove(&id);
            if tasks.is_empty() {
                self.by_worker.remove(&live.worker_id);
            }
        }
    }

    /// Forgets everything derived from open tasks.
    pub(super) fn clear_tasks(&mut self) {
        self.todo.clear();
        self.timers = Default::default();
        self.live.clear();
        self.by_worker.clear();
        self.closing.clear();
        self.holds.clear();
        self.rejections.clear();
        self.dispatch.clear();
    }

    /// Derives everything anew after the own claim: each lease runs from now, with the largest
    /// lease its TaskAssigned allows, and so does what is left of closed attempts' leases.
    pub(super) fn rebuild(&mut self, now: Now) {
        self.clear_tasks();
        self.count_creators();
        let mut open: Vec<_> = self
            .fold
            .tasks
            .iter()
            .map(|s| (s.core.id, s.row.as_ref().map_or((0, 0), |r| (r.lease_max_ms, r.lease_left_ms))))
            .collect();
        open.sort_unstable();
        for (id, (lease_max_ms, left_ms)) in open {
            if left_ms > 0 && self.rules.wait_lease_left {
                self.holds.insert(id, now.boot_ms + left_ms);
            }
            let lease_ms =
                if self.rules.leases_anew { lease_max_ms.max(self.cfg.lease_max_ms) } else { self.cfg.heartbeat_ms };
            self.derive(now, id, lease_ms);
            self.todo.insert(id);
        }
    }

    /// Every live attempt gets a full lease from now.
    pub(super) fn leases_anew(&mut self, now: Now) {
        let mut ids: Vec<_> = self.live.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let lease_ms = self.fold.tasks.get(id).and_then(|s| s.row.as_ref()).map_or(0, |r| r.lease_max_ms);
            self.sign_of_life(now, id, lease_ms.max(self.cfg.lease_ms));
        }
    }

    fn derive(&mut self, now: Now, id: TaskId, lease_ms: u64) {
        let Some(slot) = self.fold.tasks.get(id) else { return };
        let (core, Some(row)) = (slot.core, slot.row.clone()) else { return };
        let view = View { core: &core, row: &row };
        self.drop_timers(id);
        self.dispatch.withdraw(id);
        if core.state.is_live() {
            if self.live.get(&id).is_none_or(|live| live.exec_epoch != core.exec_epoch) {
                self.drop_live(id);
                let live = Live {
                    exec_epoch: core.exec_epoch,
                    worker_id: row.worker_id.clone(),
                    until_ms: now.boot_ms + self.with_margin(lease_ms),
                    last_sign_ms: self.clock.broker_ms(now),
                    step: None,
                };
                self.by_worker.entry(row.worker_id.clone()).or_default().insert(id);
                let known = self.workers.entry(row.worker_id.clone()).or_insert(row.worker_incarnation);
                *known = (*known).max(row.worker_incarnation);
                self.live.insert(id, live);
            }
            if core.state == TaskState::Assigned && !row.optimistic_start {
                self.timers.arm((id, Timer::NotStarted), now.boot_ms + self.cfg.not_started_ms);
            }
            if let Some(live) = self.live.get(&id) {
                self.timers.arm((id, Timer::Lease), live.until_ms);
            }
            if core.cancel_requested {
                self.timers.arm((id, Timer::Grace), now.boot_ms + self.cfg.cancel_grace_ms);
            }
        } else {
            self.drop_live(id);
            let since = self.clock.boot_at(now, row.not_before.unwrap_or(0));
            self.timers.arm((id, Timer::Overdue), since + OVERDUE_AFTER_MS as u64);
            if matches!(core.state, TaskState::Created | TaskState::Retrying) && !core.cancel_requested {
                let due = since.max(self.holds.get(&id).copied().unwrap_or(0));
                self.timers.arm((id, Timer::Due), due);
            }
        }
        if let Some((at_ms, _)) = decide::due_timeout(view).filter(|_| !core.cancel_requested) {
            self.timers.arm((id, Timer::Timeout), self.clock.boot_at(now, at_ms));
        }
    }

    /// The attempt lives: its lease runs anew from now.
    pub(super) fn sign_of_life(&mut self, now: Now, id: TaskId, lease_ms: u64) {
        let until_ms = now.boot_ms + self.with_margin(lease_ms);
        let at = self.clock.broker_ms(now);
        if let Some(live) = self.live.get_mut(&id) {
            live.until_ms = live.until_ms.max(until_ms);
            live.last_sign_ms = at;
            let until_ms = live.until_ms;
            self.timers.arm((id, Timer::Lease), until_ms);
        }
    }

    /// A heartbeat.
    pub(super) fn heartbeat(&mut self, now: Now, job: Job) {
        let Command::Heartbeat(beat) = &job.command else { return };
        let Some((task, _)) = beat.attempt.execution_id.parts() else {
            return self.reply(job.token, Answer::Heartbeat(HeartbeatAnswer::Fenced));
        };
        if task.partition() != self.partition() {
            return self.reply(job.token, Answer::Heartbeat(HeartbeatAnswer::Unavailable));
        }
        if self.closing.contains(&task) {
            // Its attempt may be over in a moment: what is read back decides.
            self.waiting.entry(task).or_default().push_back(job);
            return;
        }
        let alive = self.fold.tasks.get(task).filter(|s| s.core.is_live(beat.attempt)).map(|s| s.core.cancel_requested);
        let answer = match alive {
            None => HeartbeatAnswer::Fenced,
            Some(cancel_requested) => HeartbeatAnswer::Accepted { lease_ms: self.cfg.lease_ms, cancel_requested },
        };
        if alive.is_some() && self.is_current(now) {
            let beat: Heartbeat = beat.clone();
            self.sign_of_life(now, task, self.cfg.lease_ms);
            if let Some(live) = self.live.get_mut(&task) {
                live.step = beat.step_in_progress;
            }
        }
        self.answer_from_memory(now, job, Answer::Heartbeat(answer));
    }

    /// Acts on timers that are due. Leases and timeouts are judged only by an owner that is proven
    /// to be current; a hand-out needs no proof, since its act is an append.
    pub(super) fn fire_timers(&mut self, now: Now) {
        let mut later = Vec::new();
        while let Some((id, timer)) = self.timers.pop_due(now.boot_ms) {
            if timer == Timer::Backoff {
                self.freed(now, id);
                continue;
            }
            if timer == Timer::Due {
                self.offer(id);
                continue;
            }
            if !self.is_current(now) || self.flight.is_busy(id) || self.draining.is_some() {
                self.wants_proof |= !self.is_current(now);
                later.push((id, timer));
                continue;
            }
            self.fire(now, id, timer);
        }
        for key in later {
            self.timers.arm(key, now.boot_ms + 50);
        }
    }

    fn offer(&mut self, id: TaskId) {
        let Some(slot) = self.fold.tasks.get(id) else { return };
        let waits = matches!(slot.core.state, TaskState::Created | TaskState::Retrying) && !slot.core.cancel_requested;
        if let (true, Some(row)) = (waits, slot.row.as_deref()) {
            let paused = self.fold.paused_queues.contains(&row.created.queue);
            let (queue, priority) = (row.created.queue.clone(), row.created.priority);
            self.dispatch.offer(id, &queue, priority, paused);
        }
    }

    fn fire(&mut self, now: Now, id: TaskId, timer: Timer) {
        let Some(slot) = self.fold.tasks.get(id) else { return };
        let (core, Some(row)) = (slot.core, slot.row.clone()) else { return };
        let view = View { core: &core, row: &row };
        let live = self.live.get(&id).cloned();
        let left = live.as_ref().map_or(0, |l| l.until_ms.saturating_sub(now.boot_ms));
        let draft = match (timer, live) {
            (Timer::NotStarted, Some(_)) => return self.release(now, id, ReleaseReason::NotStarted, 0),
            (Timer::Lease, Some(live)) => {
                let seen = Lost {
                    last_sign_of_life: live.last_sign_ms,
                    step_in_progress: live.step,
                    probes: Vec::new(),
                    lease_left_ms: left,
                };
                decide::lost(view, seen)
            }
            (Timer::Timeout, _) => match decide::due_timeout(view) {
                Some((at_ms, kind)) if at_ms <= self.clock.broker_ms(now) => decide::timed_out(view, kind, left),
                Some((at_ms, _)) => {
                    let due = self.clock.boot_at(now, at_ms);
                    return self.timers.arm((id, Timer::Timeout), due);
                }
                None => return,
            },
            (Timer::Grace, Some(_)) => decide::cancelled(view, false, left),
            (Timer::Overdue, None) => {
                let since = row.not_before.unwrap_or(0).max(row.changed_broker_ms);
                let Some(draft) = decide::overdue(view, since) else { return };
                Ok(draft)
            }
            (Timer::Due | Timer::Backoff | Timer::NotStarted | Timer::Lease | Timer::Grace | Timer::Overdue, _) => {
                return;
            }
        };
        if let Ok(draft) = draft {
            if timer != Timer::Overdue {
                self.closing.insert(id);
            }
            self.append(now, vec![Batch { drafts: vec![draft], origin: Origin::Internal }]);
        }
    }

    /// Takes an attempt back whose handler was not entered.
    pub(super) fn release(&mut self, now: Now, id: TaskId, reason: ReleaseReason, lease_left_ms: u64) {
        let Some(slot) = self.fold.tasks.get(id) else { return };
        let Some(row) = slot.row.as_deref() else { return };
        if let Ok(draft) = decide::release(View { core: &slot.core, row }, reason, lease_left_ms) {
            self.closing.insert(id);
            self.append(now, vec![Batch { drafts: vec![draft], origin: Origin::Internal }]);
        }
    }

    /// What only the owner can do next, for every task that changed.
    pub(super) fn do_todo(&mut self, now: Now) {
        let mut batches = Vec::new();
        for id in std::mem::take(&mut self.todo) {
            if self.flight.is_busy(id) || self.timers.due(&(id, Timer::Backoff)).is_some() || self.draining.is_some() {
                continue;
            }
            let Some(slot) = self.fold.tasks.get(id) else { continue };
            let Some(row) = slot.row.as_deref() else { continue };
            let (core, view) = (slot.core, View { core: &slot.core, row });
            if !pending_work(&core, Pen::Owner) {
                // A hand-out that died leaves the task waiting without a timer.
                if matches!(core.state, TaskState::Created | TaskState::Retrying)
                    && self.timers.due(&(id, Timer::Due)).is_none()
                {
                    self.offer(id);
                }
                continue;
            }
            let draft = if core.cancel_requested {
                let left = self.holds.get(&id).map_or(0, |until| until.saturating_sub(now.boot_ms));
                decide::cancelled(view, left == 0 && core.exec_epoch.0 > 0, left)
            } else {
                decide::retried(view)
            };
            if let Ok(draft) = draft {
                batches.push(Batch { drafts: vec![draft], origin: Origin::Internal });
            }
        }
        self.append(now, batches);
    }
}
