//! Whatever concerns a task that is not open: owed rows first, then the row (design.md §4.8).

use snapshot_store::{SnapshotRow, StoreError};
use task_core::Closed;
use task_core::decide::{self, Draft, Refusal};
use task_events::TaskId;

use super::asking::Call;
use super::work::Job;
use super::{Alarm, Answer, Command, Effect, Now, Owner, Phase, TaskSeen, Ticket, Why};

/// How long rows are kept, ms (design.md §7: 30 days).
const ROW_TTL_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// Reads of one closed task's row that are under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reads {
    out: u32,
    /// How often the task moved since the first of them.
    moves: u64,
}

impl Owner {
    /// A command about a task that may be open or closed.
    pub(super) fn about_task(&mut self, now: Now, job: Job, task: TaskId) {
        if task.partition() != self.partition() {
            return self.reply(job.token, Answer::NotFound);
        }
        let reads = job.command.is_read();
        // One closed-task command per task in flight: two replays must not both rest on one row.
        if !reads && self.rules.one_closed_command && self.wait_for(task, &job) {
            return;
        }
        if self.fold.tasks.get(task).is_some() && self.keeps_waiting(now, &job) {
            return self.awaits.insert(task, job);
        }
        if let Some(slot) = self.fold.tasks.get(task) {
            let answer = match slot.row.clone() {
                Some(row) if reads => {
                    let row = SnapshotRow { core: slot.core, row, closed_at: None };
                    self.told(now, &job, TaskSeen { row, as_of: self.as_of() })
                }
                _ => Answer::TaskOpen { state: slot.core.state, run_no: slot.core.run_no },
            };
            return self.answer_from_memory(now, job, answer);
        }
        if self.rules.owed_first
            && let Some(closed) = self.owed.closed(task).cloned()
        {
            return self.about_closed(now, job, task, Some(&closed));
        }
        let reads = self.reads.entry(task).or_default();
        reads.out += 1;
        let moves = reads.moves;
        let ticket = self.ticket(Call::Row(job, moves));
        self.out.push(Effect::ReadRow(ticket, task));
    }

    /// A task was opened, closed or reviewed: what is being read of it may be older than that, and
    /// by the time it arrives the row may be acknowledged and no longer owed.
    pub(super) fn moved(&mut self, task: TaskId) {
        if let Some(reads) = self.reads.get_mut(&task) {
            reads.moves += 1;
        }
    }

    // Whether the task moved since this read was asked for.
    fn read_ended(&mut self, task: TaskId, moves: u64) -> bool {
        let Some(reads) = self.reads.get_mut(&task) else { return false };
        let moved = reads.moves != moves;
        reads.out = reads.out.saturating_sub(1);
        if reads.out == 0 {
            self.reads.remove(&task);
        }
        moved
    }

    /// A closed task's row was read.
    pub(super) fn row_read(&mut self, now: Now, ticket: Ticket, answer: Result<Option<SnapshotRow>, StoreError>) {
        let Some(Call::Row(job, moves)) = self.calls.remove(&ticket) else { return };
        let task = match &job.command {
            Command::Cancel { task, .. }
            | Command::Replay { task, .. }
            | Command::Review { task, .. }
            | Command::Get { task }
            | Command::Await { task, .. }
            | Command::Why { task } => Some(*task),
            Command::Report(report) => report.attempt.execution_id.parts().map(|(task, _)| task),
            Command::Create(_)
            | Command::Poll(_)
            | Command::Heartbeat(_)
            | Command::Find { .. }
            | Command::Look(_)
            | Command::Release { .. }
            | Command::Activate { .. }
            | Command::Queue { .. } => None,
        };
        let Some(task) = task else { return };
        let outdated = self.read_ended(task, moves);
        if !self.requests.contains_key(&job.token) {
            // Answered while the store was slow: that nothing was written must stay true.
            return;
        }
        if self.phase != Phase::Owning {
            // Claiming again: decided anew when the claim is read back.
            return self.run(now, job);
        }
        // While the row was read the task may have been opened, closed or asked about again.
        // (A read waits for nothing: with a record in flight it would read the row again and again.)
        let reads = job.command.is_read();
        let moved = outdated
            || self.fold.tasks.get(task).is_some()
            || !reads && self.rules.one_closed_command && self.flight.is_busy(task)
            || self.rules.owed_first && self.owed.closed(task).is_some();
        if moved {
            return self.run(now, job);
        }
        match answer {
            Err(_) => {
                self.alarm(Alarm::StoreUnavailable);
                self.reply(job.token, Answer::Unavailable(Why::StoreUnavailable));
            }
            Ok(None) => self.about_closed(now, job, task, None),
            // A successor wrote it, within the time of this owner's proof: what it says of the task
            // is not for this one to tell.
            Ok(Some(row)) if row.row.applied_offset >= self.fold.next_offset => {
                self.reply(job.token, Answer::Unavailable(Why::NotOwner));
            }
            Ok(Some(SnapshotRow { core, row, closed_at: Some(closed_at_offset) })) if core.state.is_terminal() => {
                self.about_closed(now, job, task, Some(&Closed { core, row, closed_at_offset }));
            }
            // Older than the close, which was acknowledged: the store has lost it.
            Ok(Some(_)) => {
                self.alarm(Alarm::StoreUnavailable);
                self.reply(job.token, Answer::Unavailable(Why::StoreUnavailable));
            }
        }
    }

    fn about_closed(&mut self, now: Now, job: Job, task: TaskId, closed: Option<&Closed>) {
        if matches!(job.command, Command::Report(_)) {
            return self.report_closed(now, job, task, closed);
        }
        let Some(closed) = closed else {
            let young = task.unix_ms().saturating_add(ROW_TTL_MS) > self.clock.broker_ms(now);
            let answer = if young || task > self.fold.highest { Answer::NotFound } else { Answer::Gone };
            return self.answer_from_memory(now, job, answer);
        };
        let drafts: Result<(Draft, Answer), Refusal> = match &job.command {
            Command::Replay { ask, .. } => {
                let left = self.lease_left(now, closed);
                decide::replay(closed, ask.clone(), left)
                    .map(|d| (d.run_no, d))
                    .map(|(run_no, d)| (d, Answer::Replayed { run_no }))
            }
            Command::Review { run_no, outcome, instead_of, actor, note, .. } => {
                decide::review(closed, *run_no, *outcome, *instead_of, actor.clone(), note.clone())
                    .map(|d| (d, Answer::Reviewed))
            }
            Command::Get { .. } | Command::Await { .. } | Command::Why { .. } => {
                let row = SnapshotRow {
                    core: closed.core,
                    row: closed.row.clone(),
                    closed_at: Some(closed.closed_at_offset),
                };
                let seen = TaskSeen { row, as_of: self.as_of() };
                let answer = self.told(now, &job, seen);
                return self.answer_from_memory(now, job, answer);
            }
            Command::Cancel { .. } => {
                let answer = Answer::TaskClosed { state: closed.core.state, run_no: closed.core.run_no };
                return self.answer_from_memory(now, job, answer);
            }
            Command::Create(_)
            | Command::Poll(_)
            | Command::Heartbeat(_)
            | Command::Report(_)
            | Command::Find { .. }
            | Command::Look(_)
            | Command::Release { .. }
            | Command::Activate { .. }
            | Command::Queue { .. } => {
                return;
            }
        };
        match drafts {
            Ok((draft, answer)) => self.append_for(now, job, vec![draft], answer),
            Err(refusal) => self.answer_from_memory(now, job, Answer::Refused(refusal)),
        }
    }

    // What is left of a closed attempt's lease, by this owner's clock alone: from its own read-back
    // of the close, or else from its own claim.
    fn lease_left(&self, now: Now, closed: &Closed) -> u64 {
        let until = match self.holds.get(&closed.core.id) {
            Some(until) => *until,
            None => self.claimed_ms.saturating_add(closed.row.lease_left_ms),
        };
        until.saturating_sub(now.boot_ms).min(closed.row.lease_left_ms)
    }
}
