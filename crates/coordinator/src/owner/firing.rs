//! Timers that are due. Leases and timeouts are judged only by an owner that is proven to be
//! current; a hand-out needs no proof, since its act is an append (design.md §4.6).

use task_core::decide::{self, Draft, HeldBack, Lost, View};
use task_core::timers::Timers as _;
use task_core::{Pen, pending_work};
use task_events::{BacklogAlarm, Body, ReleaseReason, TaskId, TaskState, Text};

use super::keys::key_of;
use super::line::Waits;
use super::work::{Batch, Origin};
use super::{Now, Owner, Timer};

/// Pause before a timer is looked at again whose task has a record in flight, ms.
const BUSY_MS: u64 = 50;

/// TaskOverdue records per minute and partition; beyond, one BacklogAlarm (design.md §5).
const OVERDUE_PER_MINUTE: u64 = 100;
const MINUTE_MS: u64 = 60_000;

/// TaskOverdue records of the minute.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OverdueWindow {
    since_ms: u64,
    noted: u64,
    alarmed: bool,
}

impl Owner {
    /// Acts on timers that are due.
    pub(super) fn fire_timers(&mut self, now: Now) {
        while let Some((id, timer)) = self.acting.pop_due(now.boot_ms) {
            if timer == Timer::Backoff {
                self.freed(now, id);
            } else {
                self.offer_if_due(now, id);
            }
        }
        if self.judged.next_due().is_none_or(|due| due > now.boot_ms) || self.draining.is_some() {
            return;
        }
        if !self.is_current(now) {
            self.wants_proof = true;
            return;
        }
        if !self.may_write(now) {
            return;
        }
        let (mut busy, mut batches, mut overdue) = (Vec::new(), Vec::new(), Vec::new());
        while batches.len() + overdue.len() < self.room()
            && let Some((id, timer)) = self.judged.pop_due(now.boot_ms)
        {
            if self.is_taken(id) {
                busy.push((id, timer));
                continue;
            }
            match self.fire(now, id, timer) {
                None => {}
                Some(draft) if timer == Timer::Overdue => overdue.push(draft),
                Some(draft) => {
                    // One record of a task at a time: what else is due of it is looked at again.
                    self.drop_timers(id);
                    batches.push(Batch { drafts: vec![draft], origin: Origin::Internal });
                }
            }
        }
        for key in busy {
            self.judged.arm(key, now.boot_ms + BUSY_MS);
        }
        self.note_overdue(now, overdue, &mut batches);
        self.append(now, batches);
    }

    /// Whether nothing may be decided about the task: a record of it is in flight, or it was
    /// rejected too often.
    pub(super) fn is_taken(&self, id: TaskId) -> bool {
        self.rules.one_in_flight && self.flight.is_busy(id) || self.acting.due(&(id, Timer::Backoff)).is_some()
    }

    // Never early by the broker's clock, whatever was known of it when the timer was armed.
    fn offer_if_due(&mut self, now: Now, id: TaskId) {
        let Some(row) = self.fold.tasks.get(id).and_then(|slot| slot.row.clone()) else { return };
        let due = self.due_at(now, id, &row);
        if due > now.boot_ms {
            self.acting.arm((id, Timer::Due), due);
        } else {
            self.offer(now, id);
        }
    }

    /// A waiting task may be handed out from now on.
    pub(super) fn offer(&mut self, now: Now, id: TaskId) {
        let Some(slot) = self.fold.tasks.get(id) else { return };
        let waits = matches!(slot.core.state, TaskState::Created | TaskState::Retrying) && !slot.core.cancel_requested;
        if let (true, Some(row)) = (waits, slot.row.as_deref()) {
            let key = key_of(row).filter(|_| self.rules.one_per_key);
            let created = row.created.clone();
            let since = row.waiting_since.max(row.not_before.unwrap_or(i64::MIN));
            let waits = Waits {
                priority: created.priority,
                creator: created.creator.clone(),
                deadline: created.deadline.unwrap_or(i64::MAX),
                since_ms: self.clock.boot_at_past(now, since),
            };
            self.dispatch.offer(now.boot_ms, id, key, (&created.queue, waits));
        }
    }

    fn held_back(&self, id: TaskId, queue: &Text) -> Option<HeldBack> {
        if self.fold.paused_queues.contains(queue) {
            Some(HeldBack::PausedQueue)
        } else {
            self.dispatch.keys.held_by(id).map(|_| HeldBack::ConcurrencyKey)
        }
    }

    fn fire(&mut self, now: Now, id: TaskId, timer: Timer) -> Option<Draft> {
        let slot = self.fold.tasks.get(id)?;
        let (core, row) = (slot.core, slot.row.clone()?);
        let view = View { core: &core, row: &row };
        let live = self.live.get(&id).cloned();
        let left = live.as_ref().map_or(0, |l| l.until_ms.saturating_sub(now.boot_ms));
        let draft = match (timer, live) {
            (Timer::NotStarted, Some(_)) => decide::release(view, ReleaseReason::NotStarted, 0),
            (Timer::Lease, Some(live)) => {
                let seen = Lost {
                    last_sign_of_life: live.last_sign_ms,
                    step_in_progress: live.step,
                    probes: Vec::new(),
                    lease_left_ms: left,
                };
                decide::lost(view, seen)
            }
            (Timer::Timeout, live) => match decide::due_timeout(view)? {
                (at_ms, kind) if at_ms <= self.clock.broker_ms(now) => {
                    decide::timed_out(view, kind, live.and_then(|live| live.step), left)
                }
                (at_ms, _) => {
                    self.judged.arm((id, Timer::Timeout), self.clock.boot_at(now, at_ms).max(now.boot_ms + 1));
                    return None;
                }
            },
            (Timer::Grace, Some(_)) => decide::cancelled(view, false, left),
            (Timer::Overdue, None) => {
                let since_ms = row.not_before.unwrap_or(0).max(row.changed_broker_ms);
                return decide::overdue(view, since_ms, self.held_back(id, &row.created.queue));
            }
            (Timer::Due | Timer::Backoff | Timer::NotStarted | Timer::Lease | Timer::Grace | Timer::Overdue, _) => {
                return None;
            }
        };
        draft.ok()
    }

    // Each task once, but a backlog is told as one.
    fn note_overdue(&mut self, now: Now, drafts: Vec<Draft>, batches: &mut Vec<Batch>) {
        if drafts.is_empty() {
            return;
        }
        let window = &mut self.overdue;
        if now.boot_ms.saturating_sub(window.since_ms) >= MINUTE_MS {
            *window = OverdueWindow { since_ms: now.boot_ms, ..OverdueWindow::default() };
        }
        let total = window.noted + drafts.len() as u64;
        let left = OVERDUE_PER_MINUTE.saturating_sub(window.noted);
        window.noted = total;
        let over = total > OVERDUE_PER_MINUTE;
        let alarm = (over && !window.alarmed).then(|| waited_for(&drafts));
        window.alarmed |= over;
        let single = |draft| Batch { drafts: vec![draft], origin: Origin::Internal };
        batches.extend(drafts.into_iter().take(usize::try_from(left).unwrap_or(usize::MAX)).map(single));
        if let Some(waiting_for) = alarm {
            let open_tasks = self.fold.tasks.len() as u64;
            let body = BacklogAlarm { overdue_per_minute: total, waiting_for, open_tasks };
            batches.push(single(Draft::control(Body::BacklogAlarm(body))));
        }
    }

    /// What only the owner can do next, for every task that changed.
    pub(super) fn do_todo(&mut self, now: Now) {
        if self.draining.is_some() || !self.may_write(now) {
            return;
        }
        let mut batches = Vec::new();
        while batches.len() < self.room()
            && let Some(id) = self.todo.pop_first()
        {
            if self.is_taken(id) {
                continue;
            }
            let Some(slot) = self.fold.tasks.get(id) else { continue };
            let Some(row) = slot.row.as_deref() else { continue };
            let (core, view) = (slot.core, View { core: &slot.core, row });
            if !pending_work(&core, Pen::Owner) {
                // A hand-out that died leaves the task waiting without a timer.
                if self.acting.due(&(id, Timer::Due)).is_none() {
                    self.offer_if_due(now, id);
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

// Whom most of them wait for.
fn waited_for(drafts: &[Draft]) -> task_events::Text {
    let mut counts = std::collections::BTreeMap::new();
    for draft in drafts {
        if let Body::TaskOverdue(overdue) = &draft.body {
            *counts.entry(&overdue.waiting_for).or_insert(0u32) += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, n)| *n).map(|(who, _)| who.clone()).unwrap_or_default()
}
