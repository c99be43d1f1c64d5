//! Polls: which process of a worker asks, what it holds, how long it waits.

use std::collections::BTreeSet;

use task_core::decide::{self, View};
use task_events::{ExecutionId, Incarnation, ReleaseReason, TaskId, TaskState, Text};
use worker_protocol::{Poll, PollAnswer};

use super::why::note_polled;
use super::work::{Batch, Job, Origin, Waiting};
use super::{Answer, Command, Now, Owner, Seen};

/// Longest a poll is kept waiting, whatever it asks for, ms.
pub(super) const POLL_MAX_MS: u64 = 60_000;

/// Workers remembered by their newest process before those not seen for a while are forgotten.
const WORKERS: usize = 10_000;
const WORKER_FORGOTTEN_MS: u64 = 10 * 60_000;

impl Owner {
    /// A poll arrives.
    pub(super) fn poll(&mut self, now: Now, job: Job) {
        let Command::Poll(poll) = &job.command else { return };
        if !self.is_current(now) {
            self.wants_proof = true;
            self.unproven.push_back(job);
            return;
        }
        if self.saw_worker(now, &poll.worker_id, poll.incarnation) > poll.incarnation {
            return self.reply(job.token, Answer::Poll(PollAnswer::Superseded));
        }
        note_polled(&mut self.polled, now, &poll.queues);
        self.release_undelivered(now, poll);
        let waiting = Waiting {
            token: job.token,
            worker_id: poll.worker_id.clone(),
            until_ms: now.boot_ms.saturating_add(poll.wait_ms.min(POLL_MAX_MS)),
            poll: poll.clone(),
        };
        // A worker has one poll open: an older one of it is answered, whoever still waits for it.
        if let Some(at) = self.polls.iter().position(|p| p.worker_id == waiting.worker_id)
            && let Some(old) = self.polls.remove(at)
        {
            self.answer_poll(now, &old);
        }
        if !self.to_stop(&waiting.poll).is_empty() {
            return self.answer_poll(now, &waiting);
        }
        self.queue_poll(waiting);
    }

    pub(super) fn queue_poll(&mut self, waiting: Waiting) {
        let at = self.polls.partition_point(|p| p.until_ms <= waiting.until_ms);
        self.polls.insert(at, waiting);
    }

    /// The newest process seen of a worker.
    pub(super) fn saw_worker(&mut self, now: Now, worker: &Text, incarnation: Incarnation) -> Incarnation {
        if self.workers.len() >= WORKERS && !self.workers.contains_key(worker) {
            let by_worker = &self.by_worker;
            self.workers.retain(|id, seen| {
                by_worker.contains_key(id) || now.boot_ms.saturating_sub(seen.at_ms) < WORKER_FORGOTTEN_MS
            });
        }
        let seen = self.workers.entry(worker.clone()).or_insert(Seen { incarnation, at_ms: now.boot_ms });
        seen.at_ms = now.boot_ms;
        seen.incarnation = seen.incarnation.max(incarnation);
        seen.incarnation
    }

    /// Answers polls that have waited long enough; after hand-outs, so that one that does not wait
    /// at all gets what is there.
    pub(super) fn expire_polls(&mut self, now: Now) {
        while let Some(poll) = self.polls.front()
            && poll.until_ms <= now.boot_ms
        {
            let Some(poll) = self.polls.pop_front() else { break };
            self.answer_poll(now, &poll);
        }
    }

    /// An empty answer, with what the worker must stop.
    pub(super) fn answer_poll(&mut self, now: Now, waiting: &Waiting) {
        let stop = if self.is_current(now) { self.to_stop(&waiting.poll) } else { Vec::new() };
        self.reply(waiting.token, Answer::Poll(PollAnswer::Work { assignments: Vec::new(), stop }));
    }

    /// Attempts the worker holds that are over, or whose task's cancel was requested.
    pub(super) fn to_stop(&self, poll: &Poll) -> Vec<ExecutionId> {
        let over = |execution: &&ExecutionId| match execution.parts() {
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
        let held: BTreeSet<ExecutionId> = poll.held.iter().copied().collect();
        let undelivered = |id: &TaskId| {
            let Some(slot) = self.fold.tasks.get(*id) else { return false };
            let Some(row) = slot.row.as_deref() else { return false };
            let assigned = slot.core.state == TaskState::Assigned && !row.optimistic_start;
            row.worker_incarnation <= poll.incarnation
                && (assigned || !self.rules.release_assigned_only)
                && !held.contains(&slot.core.execution_id)
                && !self.dispatch.is_under_way(*id)
                && !self.is_taken(*id)
        };
        let lost: Vec<TaskId> = tasks.iter().copied().filter(undelivered).take(self.room()).collect();
        let batches = lost.into_iter().filter_map(|id| {
            let slot = self.fold.tasks.get(id)?;
            let view = View { core: &slot.core, row: slot.row.as_deref()? };
            let draft = decide::release(view, ReleaseReason::NeverDelivered, 0).ok()?;
            Some(Batch { drafts: vec![draft], origin: Origin::Internal })
        });
        let batches = batches.collect();
        self.append(now, batches);
    }
}
