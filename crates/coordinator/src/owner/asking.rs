//! Where a command goes, and what it waits for.

use std::mem::take;

use task_core::decide::{self, Draft, View};
use task_core::timers::Timers as _;
use task_events::{Body, QueuePaused, QueueResumed, TaskId, WorkerReleased};

use super::owed::Owes;
use super::work::{Batch, Job, Origin};
use super::{Answer, Command, Now, Owner, Phase, Timer, Why};

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
    Row(Job, u64),
    /// A key's row, for a create.
    Key(Job),
    /// Payloads, for the creates of these ids.
    Payloads(Vec<TaskId>),
}

impl Owner {
    /// Decides a request on the fold as it is now; also when an earlier record of it is dead.
    pub(super) fn run(&mut self, now: Now, job: Job) {
        if !self.requests.contains_key(&job.token) {
            return;
        }
        if self.phase != Phase::Owning {
            self.parked.push_back(job);
            return;
        }
        if self.draining.is_some() {
            // Whatever was written of it before is dead.
            return self.reply(job.token, Answer::Unavailable(Why::Draining));
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
            Command::Replay { task, .. }
            | Command::Review { task, .. }
            | Command::Get { task }
            | Command::Await { task, .. }
            | Command::Why { task } => {
                let task = *task;
                self.about_task(now, job, task);
            }
            Command::Find { .. } => self.find(now, job),
            Command::Look(_) => self.look(now, job),
            Command::Release { .. } => self.release_worker(now, job),
            Command::Activate { .. } => self.activate(now, job),
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

    fn release_worker(&mut self, now: Now, job: Job) {
        let Command::Release { worker, actor, reason } = &job.command else { return };
        let (worker_id, actor, reason) = (worker.clone(), actor.clone(), reason.clone());
        let body = Body::WorkerReleased(WorkerReleased { worker_id, actor, reason });
        self.append_for(now, job, vec![Draft::control(body)], Answer::WorkerReleased);
    }

    /// Appends for a request; it gets `answer` once the last record is read back as accepted.
    pub(super) fn append_for(&mut self, now: Now, job: Job, drafts: Vec<Draft>, answer: Answer) {
        if drafts.len() > self.room() {
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
        if self.is_taken(task) {
            self.waiting.entry(task).or_default().push_back(job.clone());
            return true;
        }
        false
    }

    /// The task may be decided about again.
    pub(super) fn freed(&mut self, now: Now, task: TaskId) {
        while !self.flight.is_busy(task) && self.acting.due(&(task, Timer::Backoff)).is_none() {
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
}
