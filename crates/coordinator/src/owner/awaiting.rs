//! Who waits for a task's end (`GET /task/{id}?wait=30s`). Nothing is kept for them but their place:
//! each is decided like a fresh read when the task closes, when its time is up, and after a claim.

use std::collections::BTreeMap;

use task_core::timers::{TimerWheel, Timers as _};
use task_events::TaskId;

use super::work::Job;
use super::{Command, Map, Now, Owner, Token};

/// Requests that wait for the end of a task.
#[derive(Debug, Default)]
pub(super) struct Awaits {
    by_task: Map<TaskId, BTreeMap<Token, Job>>,
    tasks: Map<Token, TaskId>,
    due: TimerWheel<Token>,
}

impl Awaits {
    pub(super) fn insert(&mut self, task: TaskId, job: Job) {
        self.tasks.insert(job.token, task);
        self.by_task.entry(task).or_default().insert(job.token, job);
    }

    /// It does not wait any more.
    pub(super) fn remove(&mut self, token: Token) -> Option<Job> {
        let task = self.tasks.remove(&token)?;
        self.due.cancel(&token);
        let jobs = self.by_task.get_mut(&task)?;
        let job = jobs.remove(&token);
        if jobs.is_empty() {
            self.by_task.remove(&task);
        }
        job
    }

    /// Everybody, in the order they came.
    pub(super) fn take_all(&mut self) -> Vec<Job> {
        let mut tokens: Vec<Token> = self.tasks.keys().copied().collect();
        tokens.sort_unstable();
        tokens.into_iter().filter_map(|token| self.remove(token)).collect()
    }

    pub(super) fn advance(&mut self, now_ms: u64) {
        self.due.advance(now_ms);
    }

    pub(super) fn next_due(&self) -> Option<u64> {
        self.due.next_due()
    }
}

impl Owner {
    /// Whether this request waits on for the end of its open task; it is woken at its time.
    pub(super) fn keeps_waiting(&mut self, now: Now, job: &Job) -> bool {
        if !matches!(job.command, Command::Await { .. }) {
            return false;
        }
        let until_ms = self.requests.get(&job.token).map_or(0, |request| request.until_ms);
        let waits = until_ms > now.boot_ms;
        if waits {
            self.awaits.due.arm(job.token, until_ms);
        }
        waits
    }

    /// A task was closed: whoever waited for that is answered, with the proof any read needs.
    pub(super) fn tell_awaits(&mut self, now: Now, task: TaskId) {
        let Some(jobs) = self.awaits.by_task.get(&task) else { return };
        let tokens: Vec<Token> = jobs.keys().copied().collect();
        for token in tokens {
            if let Some(job) = self.awaits.remove(token) {
                self.run(now, job);
            }
        }
    }

    /// Whose time is up is answered with the task as it is.
    pub(super) fn end_awaits(&mut self, now: Now) {
        while let Some(token) = self.awaits.due.pop_due(now.boot_ms) {
            if let Some(job) = self.awaits.remove(token) {
                self.run(now, job);
            }
        }
    }
}
