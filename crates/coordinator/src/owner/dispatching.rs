//! Hand-outs: polls meet tasks that wait, in priority order, then by id.
//!
//! A hand-out is a TaskAssigned that was read back as accepted and a lock that was asked for; only
//! then does the poll hear of it. Everything before that can be undone by nobody's noticing.

use std::collections::{BTreeMap, BTreeSet};

use assignment_lock::{Holder, Lock, LockUnavailable, ServerState};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use task_core::PartitionState;
use task_core::decide::{self, Assign, View};
use task_events::{ReleaseReason, TaskId, TaskState, Text};
use worker_protocol::{Assignment, Poll, PollAnswer};

use super::asking::Call;
use super::work::{Batch, Job, Origin, Waiting};
use super::{Alarm, Answer, Command, Effect, LockUnavailablePolicy, Now, Owner, Ticket, Token};

/// Tasks that could be handed out now, and hand-outs under way.
#[derive(Debug, Default)]
pub(super) struct Dispatch {
    queues: BTreeMap<Text, BTreeSet<(u8, TaskId)>>,
    paused: BTreeMap<Text, BTreeSet<(u8, TaskId)>>,
    places: HashMap<TaskId, (Text, u8), FixedState>,
    under_way: HashMap<TaskId, HandOut, FixedState>,
    answers: HashMap<Token, Gathering, FixedState>,
}

#[derive(Debug)]
struct HandOut {
    token: Token,
    read_back: bool,
    locked: bool,
}

#[derive(Debug)]
struct Gathering {
    waiting: Waiting,
    outstanding: BTreeSet<TaskId>,
    ready: Vec<TaskId>,
}

impl Dispatch {
    pub(super) fn len(&self) -> usize {
        self.queues.values().map(BTreeSet::len).sum()
    }

    /// A task waits for a slot.
    pub(super) fn offer(&mut self, id: TaskId, queue: &Text, priority: u8, paused: bool) {
        self.withdraw(id);
        let place = (9 - priority.min(9), id);
        let side = if paused { &mut self.paused } else { &mut self.queues };
        side.entry(queue.clone()).or_default().insert(place);
        self.places.insert(id, (queue.clone(), place.0));
    }

    pub(super) fn withdraw(&mut self, id: TaskId) {
        if let Some((queue, priority)) = self.places.remove(&id) {
            for side in [&mut self.queues, &mut self.paused] {
                if let Some(set) = side.get_mut(&queue) {
                    set.remove(&(priority, id));
                    if set.is_empty() {
                        side.remove(&queue);
                    }
                }
            }
        }
    }

    /// Queues were paused or resumed.
    pub(super) fn requeue(&mut self, fold: &PartitionState) {
        let paused = |queue: &Text| fold.paused_queues.contains(queue);
        let stop: Vec<Text> = self.queues.keys().filter(|q| paused(q)).cloned().collect();
        let go: Vec<Text> = self.paused.keys().filter(|q| !paused(q)).cloned().collect();
        for queue in stop {
            let tasks = self.queues.remove(&queue).unwrap_or_default();
            self.paused.entry(queue).or_default().extend(tasks);
        }
        for queue in go {
            let tasks = self.paused.remove(&queue).unwrap_or_default();
            self.queues.entry(queue).or_default().extend(tasks);
        }
    }

    pub(super) fn clear(&mut self) {
        self.queues.clear();
        self.paused.clear();
        self.places.clear();
    }

    pub(super) fn is_under_way(&self, id: TaskId) -> bool {
        self.under_way.contains_key(&id)
    }

    // Best task of these queues; a task that avoids this worker only when nothing else is there.
    fn pick(&self, queues: &[Text], avoids: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let mut second = None;
        let mut best: Option<(u8, TaskId)> = None;
        for queue in queues {
            let Some(set) = self.queues.get(queue) else { continue };
            match set.iter().find(|(_, id)| !avoids(*id)) {
                Some(place) => best = Some(best.map_or(*place, |b| b.min(*place))),
                None => second = second.or_else(|| set.first().copied()),
            }
        }
        best.or(second).map(|(_, id)| id)
    }
}

impl Owner {
    /// A poll arrives.
    pub(super) fn poll(&mut self, now: Now, job: Job) {
        let Command::Poll(poll) = &job.command else { return };
        if !self.is_current(now) {
            self.wants_proof = true;
            self.unproven.push_back(job);
            return;
        }
        let newest = self.workers.entry(poll.worker_id.clone()).or_insert(poll.incarnation);
        if *newest > poll.incarnation {
            return self.reply(job.token, Answer::Poll(PollAnswer::Superseded));
        }
        *newest = poll.incarnation;
        self.release_undelivered(now, poll);
        let waiting = Waiting {
            token: job.token,
            worker_id: poll.worker_id.clone(),
            until_ms: now.boot_ms.saturating_add(poll.wait_ms),
            poll: poll.clone(),
        };
        // A worker has one poll open: an older one of it is answered, whoever still waits for it.
        if let Some(at) = self.polls.iter().position(|p| p.worker_id == waiting.worker_id)
            && let Some(old) = self.polls.remove(at)
        {
            self.answer_poll(now, &old);
        }
        if waiting.poll.wait_ms == 0 && self.dispatch.len() == 0 || !self.to_stop(&waiting.poll).is_empty() {
            return self.answer_poll(now, &waiting);
        }
        let at = self.polls.partition_point(|p| p.until_ms <= waiting.until_ms);
        self.polls.insert(at, waiting);
    }

    /// An empty answer, with what the worker must stop.
    pub(super) fn answer_poll(&mut self, now: Now, waiting: &Waiting) {
        let stop = if self.is_current(now) { self.to_stop(&waiting.poll) } else { Vec::new() };
        self.reply(waiting.token, Answer::Poll(PollAnswer::Work { assignments: Vec::new(), stop }));
    }

    // Attempts the worker holds that are over, or whose task's cancel was requested.
    fn to_stop(&self, poll: &Poll) -> Vec<task_events::ExecutionId> {
        let over = |execution: &&task_events::ExecutionId| match execution.parts() {
            Some((task, _)) if task.partition() == self.partition() => self.fold.tasks.get(task).is_none_or(|slot| {
                !slot.core.state.is_live() || slot.core.execution_id != **execution || slot.core.cancel_requested
            }),
            Some(_) | None => false,
        };
        poll.held.iter().filter(over).copied().collect()
    }

    // ASSIGNED attempts of this worker that this poll does not list were never delivered. One whose
    // handler may already have been entered is left to its lease.
    fn release_undelivered(&mut self, now: Now, poll: &Poll) {
        let Some(tasks) = self.by_worker.get(&poll.worker_id) else { return };
        let lost: Vec<TaskId> = tasks
            .iter()
            .copied()
            .filter(|id| !self.dispatch.is_under_way(*id) && !self.flight.is_busy(*id))
            .filter(|id| {
                self.fold.tasks.get(*id).is_some_and(|slot| {
                    let row = slot.row.as_deref();
                    let optimistic = row.is_some_and(|r| r.optimistic_start);
                    let older = row.is_some_and(|r| r.worker_incarnation <= poll.incarnation);
                    let assigned = slot.core.state == TaskState::Assigned && !optimistic;
                    older
                        && (assigned || !self.rules.release_assigned_only)
                        && !poll.held.contains(&slot.core.execution_id)
                })
            })
            .collect();
        lost.into_iter().for_each(|id| self.release(now, id, ReleaseReason::NeverDelivered, 0));
    }

    /// Matches polls with tasks.
    pub(super) fn hand_out(&mut self, now: Now) {
        let blocked = self.owed.bytes() >= self.cfg.owed_bytes
            || self.draining.is_some()
            || self.lock.away && self.cfg.lock_unavailable == LockUnavailablePolicy::Pause;
        if blocked || self.polls.is_empty() || self.dispatch.len() == 0 {
            return;
        }
        let (mut batches, mut locks, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
        let mut rest = std::collections::VecDeque::new();
        while let Some(waiting) = self.polls.pop_front() {
            let mut given = BTreeSet::new();
            while (given.len() as u32) < waiting.poll.free_slots
                && self.flight.len() + batches.len() < self.cfg.max_in_flight
            {
                let Some(id) = self.next_for(&waiting) else { break };
                self.dispatch.withdraw(id);
                let Some((batch, lock)) = self.assign(now, id, &waiting.poll) else { continue };
                self.dispatch.under_way.insert(id, HandOut { token: waiting.token, read_back: false, locked: false });
                given.insert(id);
                batches.push(batch);
                locks.push(lock);
                tasks.push(id);
            }
            if given.is_empty() {
                rest.push_back(waiting);
            } else {
                let gathering = Gathering { outstanding: given, ready: Vec::new(), waiting };
                self.dispatch.answers.insert(gathering.waiting.token, gathering);
            }
        }
        self.polls = rest;
        if tasks.is_empty() {
            return;
        }
        self.append(now, batches);
        let ticket = self.ticket(Call::Locks(tasks.clone()));
        self.out.push(Effect::TakeLocks(ticket, locks));
        if !self.rules.effects_after_read_back {
            tasks.into_iter().for_each(|id| self.hand_out_settled(now, id, |h| (h.read_back, h.locked) = (true, true)));
        }
    }

    fn next_for(&self, waiting: &Waiting) -> Option<TaskId> {
        let avoids = |id: TaskId| {
            let row = self.fold.tasks.get(id).and_then(|slot| slot.row.as_deref());
            row.is_some_and(|r| r.avoid_workers.contains(&waiting.worker_id))
        };
        self.dispatch.pick(&waiting.poll.queues, avoids)
    }

    fn assign(&self, now: Now, id: TaskId, poll: &Poll) -> Option<(Batch, Lock)> {
        let slot = self.fold.tasks.get(id)?;
        let view = View { core: &slot.core, row: slot.row.as_deref()? };
        let to = Assign {
            worker_id: poll.worker_id.clone(),
            incarnation: poll.incarnation,
            handler_version: poll.handler_version.clone(),
            lease_ms: self.cfg.lease_ms,
            lease_max_ms: self.cfg.lease_max_ms,
            heartbeat_ms: self.cfg.heartbeat_ms,
            optimistic_start: self.cfg.optimistic_start,
        };
        let draft = decide::assign(view, to, self.clock.broker_ms(now)).ok()?;
        let holder = Holder { worker_id: poll.worker_id.clone(), exec_epoch: draft.exec_epoch };
        let lock = Lock { task: id, holder, ttl_ms: self.cfg.lock_ttl_ms.min(self.cfg.lease_ms) };
        Some((Batch { drafts: vec![draft], origin: Origin::Assign(id) }, lock))
    }

    /// A TaskAssigned was read back as accepted.
    pub(super) fn assigned(&mut self, now: Now, task: TaskId) {
        self.hand_out_settled(now, task, |h| h.read_back = true);
    }

    /// Locks were taken, or the lock server did not answer: the log fences all the same.
    pub(super) fn locks_taken(&mut self, now: Now, ticket: Ticket, answer: Result<(), LockUnavailable>) {
        let Some(Call::Locks(tasks)) = self.calls.remove(&ticket) else { return };
        if answer.is_err() {
            self.lock.away = true;
            self.alarm(Alarm::LockUnavailable);
        }
        tasks.into_iter().for_each(|task| self.hand_out_settled(now, task, |h| h.locked = true));
    }

    /// A TaskAssigned is dead: nobody heard of it; the lock goes, the task waits on.
    pub(super) fn hand_out_died(&mut self, now: Now, task: TaskId) {
        if let Some(hand_out) = self.dispatch.under_way.remove(&task) {
            self.gathered(now, hand_out.token, task, false);
        }
        let epoch = self.fold.tasks.get(task).map(|slot| slot.core.exec_epoch);
        let (next, worker) = (epoch.and_then(|e| e.next()), self.fold.tasks.get(task).and_then(|s| s.row.clone()));
        if let (Some(exec_epoch), Some(row)) = (next, worker) {
            let holder = Holder { worker_id: row.worker_id.clone(), exec_epoch };
            self.out.push(Effect::ReleaseLocks(vec![(task, holder)]));
        }
    }

    fn hand_out_settled(&mut self, now: Now, task: TaskId, part: impl FnOnce(&mut HandOut)) {
        let Some(hand_out) = self.dispatch.under_way.get_mut(&task) else { return };
        part(hand_out);
        if hand_out.read_back && hand_out.locked {
            let token = hand_out.token;
            self.dispatch.under_way.remove(&task);
            self.gathered(now, token, task, true);
        }
    }

    // The poll hears of all its hand-outs at once.
    fn gathered(&mut self, now: Now, token: Token, task: TaskId, ok: bool) {
        let Some(gathering) = self.dispatch.answers.get_mut(&token) else { return };
        gathering.outstanding.remove(&task);
        if ok {
            gathering.ready.push(task);
        }
        if !gathering.outstanding.is_empty() {
            return;
        }
        let Some(gathering) = self.dispatch.answers.remove(&token) else { return };
        let assignments: Vec<_> = gathering.ready.iter().filter_map(|id| self.assignment(*id)).collect();
        if assignments.is_empty() && gathering.waiting.until_ms > now.boot_ms && self.draining.is_none() {
            let at = self.polls.partition_point(|p| p.until_ms <= gathering.waiting.until_ms);
            return self.polls.insert(at, gathering.waiting);
        }
        let stop = self.to_stop(&gathering.waiting.poll);
        self.reply(token, Answer::Poll(PollAnswer::Work { assignments, stop }));
    }

    fn assignment(&self, id: TaskId) -> Option<Assignment> {
        let slot = self.fold.tasks.get(id)?;
        let row = slot.row.as_deref()?;
        let attempt = slot.core.attempt();
        Some(Assignment {
            task_id: id,
            attempt,
            attempt_token: Text::from(attempt.execution_id.to_string()),
            task_type: row.created.task_type.clone(),
            payload_hash: row.created.payload_hash,
            payload_ref: row.created.payload_ref.clone(),
            trace_id: row.trace_id.clone(),
            lease_ms: self.cfg.lease_ms,
            heartbeat_ms: self.cfg.heartbeat_ms,
            start_to_close_ms: row.created.timeouts.start_to_close_ms,
            optimistic_start: row.optimistic_start,
            steps_done: row.steps.iter().map(|s| s.done.clone()).collect(),
            skip: row.plan.as_ref().map(|p| p.skip.clone()).unwrap_or_default(),
        })
    }

    /// Renews the locks of live attempts and looks at the lock server.
    pub(super) fn keep_locks(&mut self, now: Now) {
        let every = (self.cfg.lock_ttl_ms / 3).max(1);
        if now.boot_ms < self.lock.renewed_ms + every || self.live.is_empty() {
            return;
        }
        self.lock.renewed_ms = now.boot_ms;
        let ttl_ms = self.cfg.lock_ttl_ms.min(self.cfg.lease_ms);
        let mut locks: Vec<Lock> = self
            .live
            .keys()
            .filter_map(|id| {
                let slot = self.fold.tasks.get(*id)?;
                let worker_id = slot.row.as_deref()?.worker_id.clone();
                Some(Lock { task: *id, holder: Holder { worker_id, exec_epoch: slot.core.exec_epoch }, ttl_ms })
            })
            .collect();
        locks.sort_unstable_by_key(|lock| lock.task);
        self.out.push(Effect::RenewLocks(locks));
        self.out.push(Effect::AskLockServer);
        self.lock.asked_ms = now.boot_ms;
    }

    /// Absence is not evidence: after the lock server was away, changed its run or lost its
    /// sentinel, leases start anew in full (design.md §6).
    pub(super) fn lock_server(&mut self, now: Now, answer: Result<ServerState, LockUnavailable>) {
        match answer {
            Err(_) => {
                self.lock.away = true;
                self.alarm(Alarm::LockUnavailable);
            }
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
