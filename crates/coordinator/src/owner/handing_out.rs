//! Hand-outs: polls meet tasks that wait.
//!
//! A hand-out is a TaskAssigned that was read back as accepted and a lock that was asked for; only
//! then does the poll hear of it. Everything before that can be undone by nobody's noticing.

use std::collections::{BTreeSet, VecDeque};

use assignment_lock::{Holder, Lock};
use task_core::decide::{self, Assign, View};
use task_events::{SpanId, TaskId, TaskState, Text, TraceId, TraceParent};
use worker_protocol::{Assignment, Poll, PollAnswer};

use super::asking::Call;
use super::dispatching::{Gathering, HandOut};
use super::work::{Batch, Origin, Waiting};
use super::{Answer, Effect, Now, Owner};

impl Owner {
    /// Matches polls with tasks.
    pub(super) fn hand_out(&mut self, now: Now) {
        let blocked = self.owed.bytes() >= self.cfg.owed_bytes
            || self.draining.is_some()
            || !self.may_write(now)
            || self.paused_by_lock();
        if blocked || self.polls.is_empty() || self.dispatch.len() == 0 {
            return;
        }
        // One that is away is not waited for: locks are set when it is back.
        let without = self.lock.away;
        let lock = self.ticket(Call::Locks(Vec::new()));
        let (mut batches, mut locks) = (Vec::new(), Vec::new());
        let mut rest = VecDeque::new();
        while let Some(waiting) = self.polls.pop_front() {
            let mut given = BTreeSet::new();
            while (given.len() as u32) < waiting.poll.free_slots && batches.len() < self.room() {
                let Some(id) = self.next_for(now, &waiting) else { break };
                self.dispatch.take(now.boot_ms, id);
                // Offered again when what is in flight of it is settled.
                if self.is_taken(id) {
                    continue;
                }
                let Some((batch, taken)) = self.assign(now, id, &waiting.poll) else { continue };
                let holder = taken.holder.clone();
                let began_us = now.fine.boot_us;
                let hand_out =
                    HandOut { token: waiting.token, holder, lock, read_back: false, locked: without, began_us };
                self.dispatch.under_way.insert(id, hand_out);
                self.mind_key(now, id);
                given.insert(id);
                batches.push(batch);
                locks.push(taken);
            }
            if given.is_empty() {
                rest.push_back(waiting);
            } else {
                let gathering = Gathering { outstanding: given, ready: Vec::new(), waiting };
                self.dispatch.answers.insert(gathering.waiting.token, gathering);
            }
        }
        self.polls = rest;
        if locks.is_empty() {
            self.calls.remove(&lock);
            return;
        }
        let tasks: Vec<TaskId> = locks.iter().map(|taken| taken.task).collect();
        self.append(now, batches);
        if without {
            self.calls.remove(&lock);
        } else {
            self.calls.insert(lock, Call::Locks(tasks.clone()));
            self.out.push(Effect::TakeLocks(lock, locks));
        }
        if !self.rules.effects_after_read_back {
            tasks.into_iter().for_each(|id| self.hand_out_settled(now, id, |h| (h.read_back, h.locked) = (true, true)));
        }
    }

    fn next_for(&mut self, now: Now, waiting: &Waiting) -> Option<TaskId> {
        let tasks = &self.fold.tasks;
        let avoids = |id: TaskId| {
            let row = tasks.get(id).and_then(|slot| slot.row.as_deref());
            row.is_some_and(|r| r.avoid_workers.contains(&waiting.worker_id))
        };
        self.dispatch.pick(now.boot_ms, &waiting.poll.queues, avoids)
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
        let lock = Lock { task: id, holder, ttl_ms: self.lock_ttl_ms() };
        Some((Batch { drafts: vec![draft], origin: Origin::Assign(id) }, lock))
    }

    /// A TaskAssigned was read back as accepted.
    pub(super) fn assigned(&mut self, now: Now, task: TaskId) {
        self.hand_out_settled(now, task, |h| h.read_back = true);
    }

    /// A TaskAssigned is dead: nobody heard of it; the lock goes, the task waits on.
    pub(super) fn hand_out_died(&mut self, now: Now, task: TaskId) {
        let Some(hand_out) = self.dispatch.under_way.remove(&task) else { return };
        self.release_lock(task, hand_out.holder);
        self.mind_key(now, task);
        self.gathered(now, hand_out.token, task, false);
    }

    /// The attempt ended before its poll heard of it.
    pub(super) fn drop_hand_out(&mut self, now: Now, task: TaskId) {
        let Some(hand_out) = self.dispatch.under_way.get(&task) else { return };
        let slot = self.fold.tasks.get(task).filter(|slot| slot.core.state == TaskState::Assigned);
        let alive = slot.is_some_and(|slot| slot.core.exec_epoch == hand_out.holder.exec_epoch);
        if hand_out.read_back && !alive {
            let token = hand_out.token;
            self.dispatch.under_way.remove(&task);
            self.mind_key(now, task);
            self.gathered(now, token, task, false);
        }
    }

    pub(super) fn hand_out_settled(&mut self, now: Now, task: TaskId, part: impl FnOnce(&mut HandOut)) {
        let Some(hand_out) = self.dispatch.under_way.get_mut(&task) else { return };
        part(hand_out);
        if hand_out.read_back && hand_out.locked {
            let token = hand_out.token;
            if let Some(hand_out) = self.dispatch.under_way.remove(&task) {
                self.tell_hand_out(now, task, &hand_out);
            }
            self.gathered(now, token, task, true);
        }
    }

    // The poll hears of all its hand-outs at once.
    fn gathered(&mut self, now: Now, token: super::Token, task: TaskId, ok: bool) {
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
        let waits = gathering.waiting.until_ms > now.boot_ms && self.draining.is_none();
        if assignments.is_empty() && waits {
            // Unless nobody waits for it any more: then it must not be handed anything.
            if self.requests.contains_key(&token) {
                self.queue_poll(gathering.waiting);
            }
            return;
        }
        let stop = self.to_stop(&gathering.waiting.poll);
        self.reply(token, Answer::Poll(PollAnswer::Work { assignments, stop }));
    }

    fn assignment(&self, id: TaskId) -> Option<Assignment> {
        let slot = self.fold.tasks.get(id).filter(|slot| slot.core.state.is_live())?;
        let row = slot.row.as_deref()?;
        let attempt = slot.core.attempt();
        let terms = row.timeout_config.as_ref()?;
        Some(Assignment {
            task_id: id,
            attempt,
            attempt_token: Text::from(attempt.execution_id.to_string()),
            task_type: row.created.task_type.clone(),
            payload_hash: row.created.payload_hash,
            payload_ref: row.created.payload_ref.clone(),
            trace_id: row.trace_id.clone(),
            traceparent: TraceId::parse(row.trace_id.as_bytes()).map(|trace_id| TraceParent {
                trace_id,
                span_id: SpanId::of_attempt(attempt.execution_id),
                sampling: row.sampling,
            }),
            lease_ms: terms.lease_ms,
            heartbeat_ms: terms.heartbeat_ms,
            start_to_close_ms: terms.start_to_close_ms,
            optimistic_start: row.optimistic_start,
            steps_done: row.steps.iter().map(|s| s.done.clone()).collect(),
            skip: row.plan.as_ref().map(|p| p.skip.clone()).unwrap_or_default(),
        })
    }
}
