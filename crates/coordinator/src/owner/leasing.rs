//! Leases and signs of life (design.md §9): what the owner knows of live attempts, and how long the
//! next one has to wait for the former.

use task_core::timers::Timers as _;
use task_core::{Closed, Record};
use task_events::{Body, ExecEpoch, KindClass, TaskId, Text};
use worker_protocol::{Heartbeat, HeartbeatAnswer};

use super::work::Job;
use super::{Answer, Command, Now, Owner, Phase, Timer};

/// What the owner remembers of a live attempt. Times are boot ms.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) exec_epoch: ExecEpoch,
    pub(super) worker_id: Text,
    /// Until when the worker may hold on, the owner's margin included.
    pub(super) until_ms: u64,
    /// When it comes back if its handler was not entered.
    pub(super) not_started_ms: u64,
    /// When the grace of a cancel request is over.
    pub(super) grace_ms: Option<u64>,
    /// Last sign of life, broker time.
    pub(super) last_sign_ms: i64,
    /// Step last told to be in progress, and whether it is idempotent.
    pub(super) step: Option<(Text, bool)>,
}

impl Owner {
    pub(super) fn with_margin(&self, lease_ms: u64) -> u64 {
        if !self.rules.lease_margin {
            return lease_ms / 2;
        }
        let percent = (lease_ms / 100).saturating_mul(self.cfg.lease_margin_percent)
            + (lease_ms % 100).saturating_mul(self.cfg.lease_margin_percent) / 100;
        lease_ms.saturating_add(percent).saturating_add(self.cfg.lease_margin_ms)
    }

    // What a sign of life is answered with. Never more than TaskAssigned allows: a successor, who
    // does not hear of heartbeats, waits for no longer.
    fn grant_ms(&self, id: TaskId) -> u64 {
        let allowed = self.fold.tasks.get(id).and_then(|slot| slot.row.as_ref()).map_or(0, |row| row.lease_max_ms);
        self.cfg.lease_ms.min(allowed)
    }

    /// An open task changed by an accepted record: derive again what it waits for.
    pub(super) fn task_changed(&mut self, now: Now, id: TaskId, record: &Record) {
        if self.phase != Phase::Owning {
            return;
        }
        self.hold_from(now, id, &record.event.body);
        if record.event.kind.class() == KindClass::TaskEvent {
            self.arm(now, id);
            if matches!(record.event.body, Body::TaskStarted(_) | Body::TaskStepCompleted(_)) {
                self.sign_of_life(now, id);
            }
            self.drop_hand_out(now, id);
            self.mind_key(now, id);
        }
        self.todo.insert(id);
    }

    // The next attempt waits until the former one can no longer run.
    fn hold_from(&mut self, now: Now, id: TaskId, body: &Body) {
        let Some(left) = lease_left_of(body) else { return };
        if left > 0 && self.rules.wait_lease_left {
            self.holds.insert(id, now.boot_ms.saturating_add(left));
        }
    }

    /// A task was closed.
    pub(super) fn task_closed(&mut self, now: Now, closed: &Closed, record: &Record) {
        let id = closed.core.id;
        self.rejections.remove(&id);
        self.note_closed_key(closed);
        if self.phase != Phase::Owning {
            return;
        }
        self.hold_from(now, id, &record.event.body);
        if closed.row.lease_left_ms == 0 {
            self.holds.remove(&id);
        }
        self.end_attempt(id);
        self.drop_timers(id);
        self.drop_hand_out(now, id);
        self.dispatch.withdraw(now.boot_ms, id);
        self.mind_closed_key(now, closed);
        self.todo.remove(&id);
        self.tell_awaits(now, id);
    }

    /// Forgets a live attempt that is over, and its lock.
    pub(super) fn end_attempt(&mut self, id: TaskId) {
        if let Some(live) = self.drop_live(id) {
            let holder = assignment_lock::Holder { worker_id: live.worker_id, exec_epoch: live.exec_epoch };
            self.release_lock(id, holder);
        }
    }

    pub(super) fn drop_timers(&mut self, id: TaskId) {
        self.acting.cancel(&(id, Timer::Due));
        for timer in [Timer::Lease, Timer::NotStarted, Timer::Timeout, Timer::Grace, Timer::Overdue] {
            self.judged.cancel(&(id, timer));
        }
    }

    pub(super) fn drop_live(&mut self, id: TaskId) -> Option<Live> {
        let live = self.live.remove(&id)?;
        self.unstarted.remove(&id);
        if let Some(tasks) = self.by_worker.get_mut(&live.worker_id) {
            tasks.remove(&id);
            if tasks.is_empty() {
                self.by_worker.remove(&live.worker_id);
            }
        }
        Some(live)
    }

    /// Forgets everything derived from open tasks.
    pub(super) fn clear_tasks(&mut self) {
        self.todo.clear();
        self.acting.clear();
        self.judged.clear();
        self.live.clear();
        self.by_worker.clear();
        self.unstarted.clear();
        self.holds.clear();
        self.rejections.clear();
        self.dispatch.clear();
    }

    /// Derives everything anew after the own claim: each lease runs from now, with the largest
    /// lease its TaskAssigned allows, and so does what is left of closed attempts' leases.
    pub(super) fn rebuild(&mut self, now: Now) {
        self.clear_tasks();
        self.count_creators();
        self.dispatch.requeue(&self.fold);
        self.closed_keys_anew(now);
        let mut open: Vec<_> = self
            .fold
            .tasks
            .iter()
            .map(|s| (s.core.id, s.row.as_ref().map_or((0, 0), |r| (r.lease_max_ms, r.lease_left_ms))))
            .collect();
        open.sort_unstable();
        for (id, (lease_max_ms, left_ms)) in open {
            if left_ms > 0 && self.rules.wait_lease_left {
                self.holds.insert(id, now.boot_ms.saturating_add(left_ms));
            }
            self.arm(now, id);
            self.mind_key(now, id);
            let lease_ms = if self.rules.leases_anew { lease_max_ms } else { self.cfg.heartbeat_ms };
            self.lease_from_now(now, id, lease_ms);
            self.todo.insert(id);
        }
    }

    /// Every live attempt gets a full lease from now.
    pub(super) fn leases_anew(&mut self, now: Now) {
        let mut ids: Vec<_> = self.live.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let lease_ms = self.fold.tasks.get(id).and_then(|s| s.row.as_ref()).map_or(0, |r| r.lease_max_ms);
            self.prolong(now, id, lease_ms);
        }
    }

    /// The attempt lives: its lease runs anew from now.
    pub(super) fn sign_of_life(&mut self, now: Now, id: TaskId) {
        let at = self.clock.broker_ms(now);
        if let Some(live) = self.live.get_mut(&id) {
            live.last_sign_ms = at;
        }
        self.prolong(now, id, self.grant_ms(id));
    }

    /// A step is on record: it is not what the attempt is in.
    pub(super) fn step_done(&mut self, id: TaskId, step: &Text) {
        if let Some(live) = self.live.get_mut(&id)
            && live.step.as_ref().is_some_and(|(name, _)| name == step)
        {
            live.step = None;
        }
    }

    fn prolong(&mut self, now: Now, id: TaskId, lease_ms: u64) {
        let until_ms = now.boot_ms.saturating_add(self.with_margin(lease_ms));
        if self.live.get(&id).is_some_and(|live| live.until_ms < until_ms) {
            self.lease_from_now(now, id, lease_ms);
        }
    }

    fn lease_from_now(&mut self, now: Now, id: TaskId, lease_ms: u64) {
        let until_ms = now.boot_ms.saturating_add(self.with_margin(lease_ms));
        if let Some(live) = self.live.get_mut(&id) {
            live.until_ms = until_ms;
            self.judged.arm((id, Timer::Lease), until_ms);
        }
    }

    /// Whether an attempt is none that this fold knows of yet: another owner handed it out within
    /// the time of this one's proof. That it is over is then no answer.
    pub(super) fn is_ahead(&self, task: TaskId, exec_epoch: task_events::ExecEpoch) -> bool {
        match self.fold.tasks.get(task) {
            Some(slot) => exec_epoch > slot.core.exec_epoch,
            None => task > self.fold.highest,
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
        if self.flight.is_closing(task) {
            // Its attempt may be over in a moment: what is read back decides.
            self.waiting.entry(task).or_default().push_back(job);
            return;
        }
        if self.is_ahead(task, beat.attempt.exec_epoch) {
            return self.reply(job.token, Answer::Heartbeat(HeartbeatAnswer::Unavailable));
        }
        let alive = self.fold.tasks.get(task).filter(|s| s.core.is_live(beat.attempt)).map(|s| s.core.cancel_requested);
        let answer = match alive {
            None => HeartbeatAnswer::Fenced,
            Some(cancel_requested) => HeartbeatAnswer::Accepted { lease_ms: self.grant_ms(task), cancel_requested },
        };
        if alive.is_some() && self.is_current(now) {
            let beat: Heartbeat = beat.clone();
            self.sign_of_life(now, task);
            if let Some(live) = self.live.get_mut(&task) {
                live.step = beat.step_in_progress;
            }
        }
        self.answer_from_memory(now, job, Answer::Heartbeat(answer));
    }
}

fn lease_left_of(body: &Body) -> Option<u64> {
    match body {
        Body::TaskReleased(b) => Some(b.lease_left_ms),
        Body::TaskLost(b) => Some(b.lease_left_ms),
        Body::TaskTimedOut(b) if b.execution_id.is_some() => Some(b.lease_left_ms),
        Body::TaskReplayRequested(b) => Some(b.carried.lease_left_ms),
        Body::TaskCancelled(b) => Some(b.lease_left_ms),
        Body::TaskTimedOut(_)
        | Body::TaskCreated(_)
        | Body::TaskAssigned(_)
        | Body::TaskStarted(_)
        | Body::TaskStepCompleted(_)
        | Body::TaskCompleted(_)
        | Body::TaskFailed(_)
        | Body::TaskRetryApproved(_)
        | Body::TaskFailedPermanently(_)
        | Body::TaskReplayPlanned(_)
        | Body::TaskRetried(_)
        | Body::TaskCancelRequested(_)
        | Body::TaskReviewed(_)
        | Body::RejectedReport(_)
        | Body::TaskOverdue(_)
        | Body::TaskFailureAnalysis(_)
        | Body::TaskSkippedByPolicy(_)
        | Body::WorkerQuarantined(_)
        | Body::WorkerReleased(_)
        | Body::QueuePaused(_)
        | Body::QueueResumed(_)
        | Body::BacklogAlarm(_)
        | Body::OwnershipClaimed(_)
        | Body::OwnershipRenewed(_)
        | Body::RulesActivated(_)
        | Body::LogSealed(_) => None,
    }
}
