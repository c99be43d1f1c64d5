//! What owners answered, against the log (invariant 18): what each answer promises.
//!
//! `201`, `accepted` and the like promise that it is in the log as accepted. `Unavailable` and every
//! refusal promise that it is not and never will be. `fenced` promises that no copy of the report
//! will be accepted. `OutcomeUnknown` promises nothing but the id. An answer from memory is not older
//! than the proof of being current.

use std::fmt;

use coordinator::owner::{Answer, Key, TaskSeen};
use task_events::{Body, ExecutionId, Offset, RunNo, Sha256Hash, TaskId, TaskState, Text};
use worker_protocol::{HeartbeatAnswer, Report, ReportAnswer, ReportBody};

use super::{Audit, Map, Set};

/// A request of an upstream client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op-{}", self.0)
    }
}

impl OpId {
    /// Trace that names it.
    pub fn trace(self) -> Text {
        Text::from(format!("{:032x}", self.0))
    }

    /// Actor that names it.
    pub fn actor(self) -> Text {
        Text::from(self.to_string())
    }

    pub(super) fn of_trace(trace: &Text) -> Option<Self> {
        u64::from_str_radix(trace.get(16..)?, 16).ok().map(Self)
    }

    pub(super) fn of_actor(actor: &Text) -> Option<Self> {
        actor.strip_prefix("op-")?.parse().ok().map(Self)
    }
}

/// What a report says, as far as an answer speaks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReportTag {
    Starting,
    Declined,
    Step(u32, Sha256Hash),
    Success(Sha256Hash),
    Failure,
}

impl ReportTag {
    fn of(body: &ReportBody) -> Self {
        match body {
            ReportBody::Starting { .. } => Self::Starting,
            ReportBody::Declined { .. } => Self::Declined,
            ReportBody::Step(s) => Self::Step(s.index, s.output_hash),
            ReportBody::Success { result_data_hash, .. } => Self::Success(*result_data_hash),
            ReportBody::Failure { .. } => Self::Failure,
        }
    }

    pub(super) fn of_event(body: &Body) -> Option<(ExecutionId, Self)> {
        Some(match body {
            Body::TaskStarted(b) => (b.execution_id, Self::Starting),
            Body::TaskReleased(b) => (b.execution_id, Self::Declined),
            Body::TaskStepCompleted(b) => (b.execution_id, Self::Step(b.done.index, b.done.output_hash)),
            Body::TaskCompleted(b) => (b.execution_id, Self::Success(b.result_data_hash)),
            Body::TaskFailed(b) => (b.execution_id, Self::Failure),
            // The limit that the worker would report: on record as the owner's word.
            Body::TaskTimedOut(b) => (b.execution_id?, Self::Failure),
            _ => return None,
        })
    }
}

/// What was asked.
#[derive(Clone, Debug)]
pub enum Asked {
    /// A create.
    Create(OpId, Option<Key>),
    /// A cancel.
    Cancel(OpId, TaskId),
    /// A replay.
    Replay(OpId, TaskId),
    /// A review.
    Review(OpId, TaskId),
    /// A read.
    Get(TaskId),
    /// A report.
    Report(Report),
    /// A heartbeat.
    Heartbeat(TaskId, worker_protocol::Attempt),
    /// A poll, a queue.
    Other,
}

/// What accepted records and answers established.
#[derive(Default)]
pub(crate) struct Facts {
    pub done: Map<OpId, (TaskId, Offset)>,
    pub not_done: Map<OpId, &'static str>,
    pub unknown_id: Map<OpId, TaskId>,
    pub cancelled: Set<(TaskId, u32)>,
    pub reports: Set<(ExecutionId, ReportTag)>,
    pub fenced: Set<(ExecutionId, ReportTag)>,
    /// Steps on record, whichever attempt did them.
    pub steps: Set<(TaskId, u32, Sha256Hash)>,
}

impl Audit {
    /// An owner answers what arrived at `since`, true µs.
    pub fn answered(&mut self, (since, now): (u64, u64), asked: &Asked, answer: &Answer) {
        self.now = now;
        match asked {
            Asked::Create(op, key) => self.create_answered(*op, *key, answer),
            Asked::Cancel(op, task) => self.cancel_answered(since, *op, *task, answer),
            Asked::Replay(op, task) | Asked::Review(op, task) => self.replay_answered(*op, *task, answer),
            Asked::Get(task) => self.get_answered(*task, answer),
            Asked::Report(report) => self.report_answered(report, answer),
            Asked::Heartbeat(task, attempt) => {
                // An owner that is a moment behind may not know of the run yet.
                if *answer == Answer::Heartbeat(HeartbeatAnswer::Fenced)
                    && self.task(*task).is_some_and(|(core, open)| open && core.is_live(*attempt))
                    && self.assigned_us(*task).is_some_and(|at| at + self.stale_us < self.now)
                {
                    let what = format!("heartbeat of the live attempt {} of task {task} is fenced", attempt.exec_epoch);
                    self.find(18, what, Some(*task), None);
                }
            }
            Asked::Other => {}
        }
    }

    /// When the current attempt of a task was assigned, true µs.
    pub(super) fn assigned_us(&self, task: TaskId) -> Option<u64> {
        let part = &self.parts[usize::from(task.partition().0)];
        let rows = part.rows.get(&task)?;
        let epoch = rows.last()?.core.exec_epoch;
        let first = rows.iter().find(|r| r.core.exec_epoch == epoch && r.core.state.is_live())?;
        part.landed_us.get(first.offset.0 as usize).copied()
    }

    fn create_answered(&mut self, op: OpId, key: Option<Key>, answer: &Answer) {
        match answer {
            Answer::Created { task_id, .. } => {
                if self.facts.done.get(&op).is_none_or(|(id, _)| id != task_id) {
                    self.find(
                        18,
                        format!("{op} got 201 for task {task_id}, which is not in the log as accepted"),
                        Some(*task_id),
                        None,
                    );
                }
            }
            Answer::Duplicate { task_id } | Answer::KeyConflict { task_id } => {
                let part = &self.parts[usize::from(task_id.partition().0)];
                let first = key.and_then(|key| part.keys.get(&key.key_hash));
                let same = first.is_some_and(|f| f.request.is_none() || f.request == key.map(|k| k.request_hash));
                let wanted = matches!(answer, Answer::Duplicate { .. });
                if first.is_none_or(|f| f.task != *task_id) || same != wanted {
                    self.find(
                        18,
                        format!("{op} got {answer:?}, the first task of its key is {first:?}"),
                        Some(*task_id),
                        None,
                    );
                }
                // Asked once, and it may itself be the first.
            }
            Answer::OutcomeUnknown { task_id: Some(id) } => {
                self.facts.unknown_id.insert(op, *id);
                if self.facts.done.get(&op).is_some_and(|(done, _)| done != id) {
                    self.find(18, format!("{op} was told of task {id}, it is another"), Some(*id), None);
                }
            }
            Answer::OutcomeUnknown { task_id: None } => {}
            other => self.never(op, other),
        }
    }

    fn cancel_answered(&mut self, since: u64, op: OpId, task: TaskId, answer: &Answer) {
        match answer {
            Answer::CancelAccepted => {
                let last = self.task(task).map_or(0, |(core, _)| core.run_no.0);
                // Of a run that was the task's after it was asked, as the owner may know it then.
                let first = self.run_at(task, since.saturating_sub(self.stale_us));
                if !(first..=last).any(|r| self.facts.cancelled.contains(&(task, r))) {
                    self.find(
                        18,
                        format!("cancel of task {task} was accepted and is not in the log"),
                        Some(task),
                        None,
                    );
                }
            }
            Answer::OutcomeUnknown { .. } => {}
            Answer::TaskClosed { state, run_no } => {
                self.was_closed(task, *state, *run_no);
                self.never(op, answer);
            }
            other => {
                self.absent(task, other);
                self.never(op, other);
            }
        }
    }

    fn run_at(&self, task: TaskId, us: u64) -> u32 {
        let part = &self.parts[usize::from(task.partition().0)];
        let rows = part.rows.get(&task).map_or(&[][..], Vec::as_slice);
        let landed = rows.partition_point(|row| part.landed_us[row.offset.0 as usize] <= us);
        rows[..landed].last().map_or(0, |row| row.core.run_no.0)
    }

    fn replay_answered(&mut self, op: OpId, task: TaskId, answer: &Answer) {
        match answer {
            Answer::Replayed { .. } | Answer::Reviewed => {
                if self.facts.done.get(&op).is_none_or(|(id, _)| *id != task) {
                    self.find(
                        18,
                        format!("{op} of task {task} got {answer:?} and is not in the log as accepted"),
                        Some(task),
                        None,
                    );
                }
            }
            Answer::OutcomeUnknown { .. } => {}
            other => {
                self.absent(task, other);
                self.never(op, other);
            }
        }
    }

    // Nothing of this request is in the log or ever will be.
    fn never(&mut self, op: OpId, answer: &Answer) {
        if let Some((id, _)) = self.facts.done.get(&op).copied() {
            self.find(
                18,
                format!("{op} was answered {answer:?} although task {id} has it as accepted"),
                Some(id),
                None,
            );
        }
        let name = match answer {
            Answer::Unavailable(_) => "unavailable",
            Answer::BacklogFull { .. } => "backlog_full",
            Answer::Refused(_) => "refused",
            Answer::NotFound => "not_found",
            _ => "a refusal",
        };
        self.facts.not_done.insert(op, name);
    }

    fn was_closed(&mut self, task: TaskId, state: TaskState, run: RunNo) {
        let part = &self.parts[usize::from(task.partition().0)];
        let seen =
            part.rows.get(&task).is_some_and(|rows| rows.iter().any(|r| (r.core.state, r.core.run_no) == (state, run)));
        if !seen {
            self.find(18, format!("task {task} was said to be {state} in run {run}, and never was"), Some(task), None);
        }
    }

    // A task that the log had long enough ago is not unknown.
    fn absent(&mut self, task: TaskId, answer: &Answer) {
        if !matches!(answer, Answer::NotFound | Answer::Gone) {
            return;
        }
        let part = &self.parts[usize::from(task.partition().0)];
        let born = part.rows.get(&task).and_then(|rows| rows.first()).map(|r| part.landed_us[r.offset.0 as usize]);
        if born.is_some_and(|born| born + self.stale_us < self.now) {
            self.find(18, format!("task {task} was answered {answer:?}"), Some(task), None);
        }
    }

    fn get_answered(&mut self, task: TaskId, answer: &Answer) {
        self.absent(task, answer);
        if let Answer::Task(seen) = answer {
            self.seen(task, seen);
        }
    }

    fn seen(&mut self, task: TaskId, seen: &TaskSeen) {
        let part = &self.parts[usize::from(task.partition().0)];
        let rows = part.rows.get(&task).map_or(&[][..], Vec::as_slice);
        let clock = seen.row.row.row_clock_us;
        let known = rows.iter().find(|r| r.clock_us == clock);
        let newest = rows.iter().rev().find(|r| r.offset < seen.as_of);
        let fresh = self.now.saturating_sub(self.stale_us);
        let floor = part.landed_us.partition_point(|at| *at < fresh) as u64;
        if known.is_none_or(|k| k.core != seen.row.core) {
            self.find(16, format!("task {task} was shown in a state it never had"), Some(task), None);
        } else if newest.is_some_and(|n| n.clock_us > clock) {
            let what = format!(
                "task {task} was shown as of {} without its event at {:?}",
                seen.as_of,
                newest.map(|n| n.offset)
            );
            self.find(16, what, Some(task), None);
        } else if seen.as_of.0 < floor {
            self.find(
                18,
                format!("task {task} was shown as of {}, the log had {floor} long ago", seen.as_of),
                Some(task),
                None,
            );
        }
    }

    fn report_answered(&mut self, report: &Report, answer: &Answer) {
        let Answer::Report(answer) = answer else { return };
        let (execution, tag) = (report.attempt.execution_id, ReportTag::of(&report.body));
        let task = execution.parts().map(|(task, _)| task);
        match answer {
            ReportAnswer::Accepted | ReportAnswer::Duplicate => {
                // A step that an earlier attempt did with the same output is on record too.
                let step = match (tag, task) {
                    (ReportTag::Step(index, hash), Some(task)) => self.facts.steps.contains(&(task, index, hash)),
                    _ => false,
                };
                let duplicate = *answer == ReportAnswer::Duplicate && step;
                if !duplicate && !self.facts.reports.contains(&(execution, tag)) {
                    self.find(
                        18,
                        format!("{tag:?} of {execution} was answered {answer:?} and is not in the log"),
                        task,
                        None,
                    );
                }
            }
            ReportAnswer::Fenced => {
                self.facts.fenced.insert((execution, tag));
            }
            ReportAnswer::TooEarly | ReportAnswer::OutcomeUnknown | ReportAnswer::Unavailable => {}
        }
    }
}
