//! The worker's side of the lease, sans I/O: inputs in, outputs out.
//!
//! A shell feeds [`Machine::handle`] with answers, handler events and ticks, runs the outputs in
//! order, and calls again at [`Machine::next_due`] at the latest. Rules (design.md §9):
//!
//! - A lease runs on the worker's boot clock from the *sending* of the last accepted heartbeat, at
//!   first of the poll that brought the attempt. No handler is entered or continued after it.
//! - Confirmed start: entered once STARTING was answered accepted or duplicate. An attempt is
//!   entered once at most, and never while an older attempt of its task is still inside.
//! - Steps and results are kept until they are answered accepted, duplicate or fenced, and sent in
//!   order, one at a time per attempt.
//!
//! Answers may be lost, late, doubled or reordered: each names the request it answers, and facts
//! that never change (accepted, fenced, superseded) count whenever they come.

mod attempt;
mod backoff;
mod beats;
mod config;
mod handler;
mod io;
mod lease;
mod line;
mod polling;
mod shared;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use task_events::ExecutionId;
use worker_protocol::{HeartbeatAnswer, PollAnswer};

use attempt::Attempt;
pub use config::{Config, InvalidConfig};
pub use io::{
    CANCELLED, EntryKey, HANDLER_PANICKED, HandlerEnd, Input, Now, OutboxEntry, Output, RequestId, Stop,
    TIMEOUT_START_TO_CLOSE,
};
use polling::Polling;
use shared::Shared;

/// How long the id of an ended attempt is remembered, ms: longer than any answer can be late.
const ENDED_KEPT_MS: u64 = 600_000;

/// State of one worker process.
#[derive(Debug)]
pub struct Machine {
    shared: Shared,
    attempts: BTreeMap<ExecutionId, Attempt>,
    due: BTreeSet<(u64, ExecutionId)>,
    ended: BTreeSet<ExecutionId>,
    ended_order: VecDeque<(u64, ExecutionId)>,
    polling: Polling,
}

impl Machine {
    /// A worker that just started. `outbox` is what an earlier process of it could not deliver, in
    /// the order in which it was persisted.
    ///
    /// # Errors
    /// A setting that contradicts another one.
    pub fn new(config: Config, now: Now, outbox: Vec<OutboxEntry>) -> Result<Self, InvalidConfig> {
        config.check()?;
        let mut machine = Self {
            shared: Shared::new(config, now),
            attempts: BTreeMap::new(),
            due: BTreeSet::new(),
            ended: BTreeSet::new(),
            ended_order: VecDeque::new(),
            polling: Polling::new(now.boot_ms),
        };
        for entry in outbox {
            let id = entry.report.attempt.execution_id;
            machine.attempts.entry(id).or_insert_with(|| Attempt::restored(&entry, now.boot_ms)).line.restore(entry);
        }
        let ids: Vec<_> = machine.attempts.keys().copied().collect();
        ids.into_iter().for_each(|id| machine.service(id));
        machine.poll();
        Ok(machine)
    }

    /// Takes one input in. Run what [`Machine::take_output`] gives afterwards, in order.
    pub fn handle(&mut self, now: Now, input: Input) {
        self.shared.set_now(now);
        // What is due comes first: a late answer must not revive a handler whose lease is over.
        self.run_due();
        match input {
            Input::Tick => {}
            Input::PollAnswered { request, answer } => self.poll_answered(request, answer),
            Input::HeartbeatAnswered { request, answer } => self.heartbeat_answered(request, answer),
            Input::ReportAnswered { request, answer } => {
                self.with_request(request, |a, shared| a.report_answered(request, answer, shared));
            }
            Input::SendFailed { request } => {
                if !self.polling.failed(request, &self.shared) {
                    self.with_request(request, |a, shared| a.send_failed(request, shared));
                }
            }
            Input::StepStarted { execution_id, step, is_idempotent } => {
                self.with(execution_id, |a, shared| a.step_started(step, is_idempotent, shared));
            }
            Input::StepDone { execution_id, done } => {
                self.with(execution_id, |a, shared| a.step_done(done, shared));
            }
            Input::HandlerEnded { execution_id, end } => {
                self.with(execution_id, |a, shared| a.handler_ended(end, shared));
                self.unblock();
            }
            Input::Memory { percent } => self.shared.memory = percent,
            Input::Drain => self.shared.draining = true,
        }
        self.poll();
    }

    /// The next thing to do, in order.
    pub fn take_output(&mut self) -> Option<Output> {
        self.shared.out.pop_front()
    }

    /// When [`Input::Tick`] is due at the latest, boot ms.
    pub fn next_due(&self) -> Option<u64> {
        let attempts = self.due.first().map(|(at, _)| *at);
        attempts.into_iter().chain(self.polling.next_due(&self.shared, self.attempts.len())).min()
    }

    /// The guard for side effects: whether the handler of this attempt may still act at `boot_ms`.
    /// Ask right before each act, with a clock read right before; what happens between the check
    /// and the act can only be fenced by a sink that refuses lower exec_epochs.
    pub fn may_write(&self, execution_id: ExecutionId, boot_ms: u64) -> bool {
        self.attempts.get(&execution_id).is_some_and(|a| a.may_write(boot_ms))
    }

    /// Until when [`Machine::may_write`] holds if nothing else happens, boot ms; `None` when it
    /// does not hold at all.
    pub fn write_until(&self, execution_id: ExecutionId) -> Option<u64> {
        self.attempts.get(&execution_id).and_then(Attempt::write_until)
    }

    /// End of the lease of an attempt whose handler is inside, boot ms: what the handler left behind
    /// after it was told to stop for its time or a cancel may go on until then and no longer. `None`
    /// once nothing of it may go on.
    pub fn lease_until(&self, execution_id: ExecutionId) -> Option<u64> {
        self.attempts.get(&execution_id).and_then(Attempt::lease_until)
    }

    /// Whether the step in progress may run: it is idempotent, or the owner knows by an accepted
    /// heartbeat that the handler is inside it, and so will not take a silence for a safe retry.
    pub fn is_step_announced(&self, execution_id: ExecutionId) -> bool {
        self.attempts.get(&execution_id).is_some_and(Attempt::is_step_announced)
    }

    /// Whether it takes no new work (drain was asked for, or a newer process is the worker now).
    pub fn is_draining(&self) -> bool {
        self.shared.draining
    }

    /// Whether nothing runs and nothing waits to be delivered.
    pub fn is_idle(&self) -> bool {
        self.attempts.is_empty()
    }

    /// Number of attempts that occupy a slot: waiting for their start, or with a handler inside.
    pub fn active(&self) -> u32 {
        self.shared.active
    }

    /// Attempts known, those with nothing but reports left included.
    pub fn held(&self) -> usize {
        self.attempts.len()
    }

    fn poll_answered(&mut self, request: RequestId, answer: PollAnswer) {
        let sent_at = self.polling.answered(request, &answer, &self.shared);
        match answer {
            PollAnswer::Work { assignments, stop } => {
                for id in stop {
                    self.with(id, |a, shared| a.told_to_stop(shared));
                }
                // Work in an answer that was given up comes too late: the next poll has not listed
                // it, so its owner takes it for never delivered.
                let Some(sent_at) = sent_at else { return };
                for assignment in assignments {
                    let id = assignment.attempt.execution_id;
                    if !self.attempts.contains_key(&id) && !self.ended.contains(&id) {
                        let attempt = Attempt::received(assignment, sent_at, &self.shared);
                        if attempt.is_active() {
                            self.shared.take_one();
                        }
                        self.attempts.insert(id, attempt);
                        self.count(false, id);
                        self.service(id);
                    }
                }
            }
            PollAnswer::Superseded | PollAnswer::Drain => self.shared.draining = true,
            PollAnswer::Unavailable => {}
        }
    }

    fn heartbeat_answered(&mut self, request: RequestId, answer: HeartbeatAnswer) {
        self.with_request(request, |a, shared| a.heartbeat_answered(request, answer, shared));
    }

    fn poll(&mut self) {
        self.polling.end_if_idle(&mut self.shared, self.attempts.len());
        let held = self.attempts.values().filter(|a| a.is_listed()).map(|a| a.name.execution_id);
        self.polling.advance(&mut self.shared, self.attempts.len(), || held.collect());
        self.forget_ended();
    }

    fn run_due(&mut self) {
        while let Some(&(at, id)) = self.due.first() {
            if at > self.shared.now.boot_ms {
                return;
            }
            self.service(id);
        }
    }

    fn unblock(&mut self) {
        let blocked = std::mem::take(&mut self.shared.blocked);
        blocked.into_iter().for_each(|id| self.service(id));
    }

    fn with_request(&mut self, request: RequestId, change: impl FnOnce(&mut Attempt, &mut Shared)) {
        if let Some(id) = self.shared.requests.get(&request).copied() {
            self.with(id, change);
        }
    }

    fn with(&mut self, id: ExecutionId, change: impl FnOnce(&mut Attempt, &mut Shared)) {
        if let Some(attempt) = self.attempts.get_mut(&id) {
            let was_active = attempt.is_active();
            change(attempt, &mut self.shared);
            self.count(was_active, id);
            self.service(id);
        }
    }

    // Does what is due for an attempt, and files it anew.
    fn service(&mut self, id: ExecutionId) {
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        if let Some(at) = attempt.filed_under.take() {
            self.due.remove(&(at, id));
        }
        let was_active = attempt.is_active();
        attempt.advance(&mut self.shared);
        if attempt.is_over() {
            attempt.close(&mut self.shared);
            self.ended.insert(id);
            self.ended_order.push_back((self.shared.now.boot_ms, id));
        } else if let Some(at) = attempt.next_due(&self.shared.config) {
            attempt.filed_under = Some(at);
            self.due.insert((at, id));
        }
        self.count(was_active, id);
        if self.attempts.get(&id).is_some_and(Attempt::is_over) {
            self.attempts.remove(&id);
        }
    }

    fn count(&mut self, was_active: bool, id: ExecutionId) {
        let is_active = self.attempts.get(&id).is_some_and(Attempt::is_active);
        self.shared.active = self.shared.active + u32::from(is_active) - u32::from(was_active);
    }

    fn forget_ended(&mut self) {
        while let Some(&(at, id)) = self.ended_order.front() {
            if at.saturating_add(ENDED_KEPT_MS) > self.shared.now.boot_ms {
                return;
            }
            self.ended_order.pop_front();
            self.ended.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests;
