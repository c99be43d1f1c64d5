//! Requests: who waits for what, and where a command goes.

use std::mem::take;

use task_core::timers::Timers as _;
use task_events::{Body, QueuePaused, QueueResumed, TaskId};
use worker_protocol::{HeartbeatAnswer, PollAnswer, ReportAnswer};

use task_core::decide::{self, Draft, View};

use super::flight::InFlight;
use super::owed::Owes;
use super::work::{Batch, Job, Origin};
use super::{Answer, Command, Effect, Now, Owner, Phase, Request, RequestKind, Timer, Token, Why};

/// An outstanding port call.
#[derive(Debug)]
pub(super) enum Call {
    /// An append; what it holds is in the flight table.
    Append,
    /// A claim.
    Claim,
    /// Locks of hand-outs.
    Locks(Vec<TaskId>),
    /// Rows being written.
    Rows(Vec<Owes>),
    /// A closed task's row, for a request.
    Row(Job),
    /// A key's row, for a create.
    Key(Job),
    /// A payload, for the create of this id.
    Payload(TaskId),
}

impl Owner {
    /// A request arrives.
    pub(super) fn command(&mut self, now: Now, token: Token, command: Command) {
        let kind = match &command {
            Command::Poll(_) => RequestKind::Poll,
            Command::Heartbeat(_) => RequestKind::Heartbeat,
            Command::Report(_) => RequestKind::Report,
            Command::Create(_)
            | Command::Cancel { .. }
            | Command::Replay { .. }
            | Command::Review { .. }
            | Command::Get { .. }
            | Command::Queue { .. } => RequestKind::Other,
        };
        self.requests.insert(token, Request { kind, has_record: false, minted: None });
        if kind != RequestKind::Poll {
            self.deadlines.arm(token, now.boot_ms + self.cfg.request_ms);
        }
        let job = Job { token, command };
        if self.draining.is_some() || self.phase == Phase::Done {
            self.reply(token, Answer::Unavailable(Why::Draining));
        } else if self.phase == Phase::Owning {
            self.run(now, job);
        } else if self.parked.len() < self.cfg.max_in_flight && !matches!(self.phase, Phase::Superseded { .. }) {
            self.parked.push_back(job);
        } else {
            self.reply(token, Answer::Unavailable(Why::NotOwner));
        }
    }

    /// Nobody waits for the answer any more. What is in flight stays, its outcome is just not told.
    pub(super) fn forget(&mut self, token: Token) {
        self.requests.remove(&token);
        self.deadlines.cancel(&token);
        self.polls.retain(|poll| poll.token != token);
    }

    /// Decides a request on the fold as it is now; also when an earlier record of it is dead.
    pub(super) fn run(&mut self, now: Now, job: Job) {
        if !self.requests.contains_key(&job.token) {
            return;
        }
        if self.phase != Phase::Owning {
            self.parked.push_back(job);
            return;
        }
        match &job.command {
            Command::Create(_) => self.create(now, job),
            Command::Poll(_) => self.poll(now, job),
            Command::Heartbeat(_) => self.heartbeat(now, job),
            Command::Report(_) => self.report(now, job),
            Command::Cancel { task, .. } => {
                let task = *task;
                self.cancel(now, job, task);
            }
            Command::Replay { task, .. } | Command::Review { task, .. } | Command::Get { task } => {
                let task = *task;
                self.about_task(now, job, task);
            }
            Command::Queue { .. } => self.queue(now, job),
        }
    }

    fn cancel(&mut self, now: Now, job: Job, task: TaskId) {
        if self.wait_for(task, &job) {
            return;
        }
        let Command::Cancel { actor, reason, .. } = &job.command else { return };
        let Some(slot) = self.fold.tasks.get(task) else { return self.about_task(now, job, task) };
        let Some(row) = slot.row.as_deref() else { return };
        if slot.core.cancel_requested {
            return self.answer_from_memory(now, job, Answer::CancelAccepted);
        }
        match decide::cancel_request(View { core: &slot.core, row }, actor.clone(), reason.clone()) {
            Ok(draft) => self.append_for(now, job, vec![draft], Answer::CancelAccepted),
            Err(refusal) => self.answer_from_memory(now, job, Answer::Refused(refusal)),
        }
    }

    fn queue(&mut self, now: Now, job: Job) {
        let Command::Queue { queue, pause, actor, reason } = &job.command else { return };
        let (queue, actor, reason) = (queue.clone(), actor.clone(), reason.clone());
        let body = if *pause {
            Body::QueuePaused(QueuePaused { queue, actor, reason })
        } else {
            Body::QueueResumed(QueueResumed { queue, actor, reason })
        };
        self.append_for(now, job, vec![Draft::control(body)], Answer::QueueChanged);
    }

    /// Appends for a request; it gets `answer` once the last record is read back as accepted.
    pub(super) fn append_for(&mut self, now: Now, job: Job, drafts: Vec<Draft>, answer: Answer) {
        if self.flight.len() + drafts.len() > self.cfg.max_in_flight {
            return self.reply(job.token, Answer::Unavailable(Why::InFlightFull));
        }
        if let Some(request) = self.requests.get_mut(&job.token) {
            request.has_record = true;
        }
        let token = job.token;
        let early = (!self.rules.effects_after_read_back).then(|| answer.clone());
        self.append(now, vec![Batch { drafts, origin: Origin::Job(job, answer) }]);
        if let Some(answer) = early {
            self.reply(token, answer);
        }
    }

    /// Answers from memory, now if the owner is proven to be current, else as soon as it is. The
    /// request is decided again then, since the fold may have moved.
    pub(super) fn answer_from_memory(&mut self, now: Now, job: Job, answer: Answer) {
        if self.is_current(now) {
            self.reply(job.token, answer);
        } else {
            self.wants_proof = true;
            self.unproven.push_back(job);
        }
    }

    /// Runs again what waited for a proof.
    pub(super) fn run_unproven(&mut self, now: Now) {
        if self.is_current(now) && !self.unproven.is_empty() {
            take(&mut self.unproven).into_iter().for_each(|job| self.run(now, job));
        }
    }

    /// Puts a request behind what is in flight of its task, or behind the task's back-off.
    pub(super) fn wait_for(&mut self, task: TaskId, job: &Job) -> bool {
        let busy = self.rules.one_in_flight && self.flight.is_busy(task);
        if busy || self.timers.due(&(task, Timer::Backoff)).is_some() {
            self.waiting.entry(task).or_default().push_back(job.clone());
            return true;
        }
        false
    }

    /// The task may be decided about again.
    pub(super) fn freed(&mut self, now: Now, task: TaskId) {
        while !self.flight.is_busy(task) && self.timers.due(&(task, Timer::Backoff)).is_none() {
            let Some(queue) = self.waiting.get_mut(&task) else { break };
            match queue.pop_front() {
                Some(job) => self.run(now, job),
                None => {
                    self.waiting.remove(&task);
                }
            }
        }
        self.todo.insert(task);
    }

    /// A record is dead: no copy of it can be accepted any more. Decide anew from the fold.
    pub(super) fn dead(&mut self, now: Now, record: InFlight) {
        if let Some(task) = record.task {
            self.closing.remove(&task);
            self.todo.insert(task);
        }
        match record.origin {
            Origin::Job(job, _) => {
                if let Some(request) = self.requests.get_mut(&job.token) {
                    request.has_record = false;
                }
                self.run(now, job);
            }
            Origin::Create(job, id) => self.create_died(now, job, id),
            Origin::Assign(task) => self.hand_out_died(now, task),
            Origin::Rider | Origin::Internal => {}
        }
        if let Some(task) = record.task
            && self.phase == Phase::Owning
        {
            self.freed(now, task);
        }
    }

    /// A record is dead and cannot be decided anew here.
    pub(super) fn abandon(&mut self, now: Now, record: InFlight, why: Why) {
        if let Some(task) = record.task {
            self.closing.remove(&task);
        }
        match record.origin {
            Origin::Job(job, _) => self.reply(job.token, Answer::Unavailable(why)),
            Origin::Create(job, _) => {
                self.reply(job.token, Answer::Unavailable(why));
                self.release_key(now, &job);
            }
            Origin::Assign(task) => self.hand_out_died(now, task),
            Origin::Rider | Origin::Internal => {}
        }
        if let Some(task) = record.task
            && self.phase == Phase::Owning
        {
            self.freed(now, task);
        }
    }

    /// Answers a request, once; what nobody waits for any more is dropped.
    pub(super) fn reply(&mut self, token: Token, answer: Answer) {
        let Some(request) = self.requests.remove(&token) else { return };
        self.deadlines.cancel(&token);
        let answer = match (answer, request.kind) {
            (Answer::Unavailable(_), RequestKind::Poll) => Answer::Poll(PollAnswer::Unavailable),
            (Answer::Unavailable(_), RequestKind::Heartbeat) => Answer::Heartbeat(HeartbeatAnswer::Unavailable),
            (Answer::Unavailable(_), RequestKind::Report) => Answer::Report(ReportAnswer::Unavailable),
            (Answer::OutcomeUnknown { .. }, RequestKind::Report) => Answer::Report(ReportAnswer::OutcomeUnknown),
            (answer, _) => answer,
        };
        self.out.push(Effect::Reply(token, answer));
    }

    /// Requests whose time is up: unknown if a record of theirs is in flight, else not done.
    pub(super) fn expire(&mut self, now: Now) {
        while let Some(token) = self.deadlines.pop_due(now.boot_ms) {
            let Some(request) = self.requests.get(&token) else { continue };
            let answer = if request.has_record {
                Answer::OutcomeUnknown { task_id: request.minted }
            } else {
                Answer::Unavailable(Why::NotOwner)
            };
            self.reply(token, answer);
        }
        while let Some(poll) = self.polls.front()
            && poll.until_ms <= now.boot_ms
        {
            let Some(poll) = self.polls.pop_front() else { break };
            self.answer_poll(now, &poll);
        }
    }
}
