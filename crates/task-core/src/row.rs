//! What stands beside the judged state: the fields people see in the snapshot row, the steps that
//! a resume needs, and what the writers of the next event must know. Never hashed, never judged.

mod steps;
mod take;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use task_events::{
    ClosedTask, ErrorCategory, EventSequence, Incarnation, Offset, ReplayFrom, ReviewOutcome, RuleVersion, Sampling,
    Sha256Hash, SkippedStep, StepDone, TaskCreated, TaskReplayRequested, TaskState, Text, TimeoutConfig, TimeoutKind,
};

use crate::{History, HistoryEntry, Reason, Record};

/// A completed step with the event that proves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEntry {
    /// The step.
    pub done: StepDone,
    /// event_sequence that reported it: the evidence for a skip (invariant 14).
    pub evidence: EventSequence,
}

/// What the replayer decided for the next attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// First step to run; `None` = from the start.
    pub resume_from_step: Option<Text>,
    /// Steps not to run again.
    pub skip: Vec<SkippedStep>,
}

/// What people have to do with a task's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Review {
    /// They should look at it, says TaskFailedPermanently.
    Waiting,
    /// They have, says TaskReviewed.
    Decided(ReviewOutcome),
}

/// Row fields of one open task. Times are Unix ms by the writer of the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// What TaskCreated said.
    pub created: Arc<TaskCreated>,
    /// Event time of TaskCreated.
    pub created_at: i64,
    /// Trace of the task.
    pub trace_id: Text,
    /// Whether its caller records that trace.
    #[serde(default, skip_serializing_if = "Sampling::is_recorded")]
    pub sampling: Sampling,
    /// Offset of the last accepted event, and so the row's `applied_offset`.
    pub applied_offset: Offset,
    /// Broker time of the last accepted event.
    pub changed_broker_ms: i64,
    /// Row clock at the last change, µs: the row's timestamp.
    pub row_clock_us: i64,
    /// Rules active at the last change.
    #[serde(default)]
    pub rule_version: RuleVersion,
    /// (offset, verdict) of every record with the task's key.
    pub history: History,
    /// Entries that no longer fit into `history`.
    pub history_overflow: u32,
    /// Worker of the last attempt.
    pub worker_id: Text,
    /// Its process.
    pub worker_incarnation: Incarnation,
    /// Handler version of the last attempt.
    pub handler_version: Text,
    /// Limits of the last attempt.
    pub timeout_config: Option<TimeoutConfig>,
    /// Largest lease of the last attempt, ms.
    pub lease_max_ms: u64,
    /// The last attempt may have entered its handler before STARTING was answered.
    pub optimistic_start: bool,
    /// Time of the last assignment.
    pub assigned_at: Option<i64>,
    /// Time the handler of the last attempt was entered.
    pub start_time: Option<i64>,
    /// The same by the broker's stamp of TaskStarted: what start-to-close counts from. The worker's
    /// clock may be wrong, and two owners' clocks may differ.
    #[serde(default)]
    pub started_at: Option<i64>,
    /// Time of the last failure, loss, timeout or end.
    pub end_time: Option<i64>,
    /// As last reported.
    pub memory_usage_percent: u32,
    /// Code of the last failure.
    pub error_code: Option<Text>,
    /// Message of the last failure.
    pub error_message: Option<Text>,
    /// Category of the last failure.
    pub category: Option<ErrorCategory>,
    /// Step of the last failure or loss.
    pub failed_step: Option<Text>,
    /// The error is that of the last attempt: its worker reported it, or it ran out of time. Not so
    /// after a loss, and once another attempt began.
    #[serde(default)]
    pub attempt_failed: bool,
    /// Whether that step was declared idempotent.
    pub failed_step_idempotent: Option<bool>,
    /// Steps completed in this run or taken over from the one before, one per name, in the order of
    /// their indices.
    pub steps: Vec<StepEntry>,
    /// Plan of the last retry.
    pub plan: Option<Plan>,
    /// Not to be assigned before.
    pub not_before: Option<i64>,
    /// Since when the task waits for a worker, and so what schedule-to-start counts from: its
    /// creation, then each TaskRetried. A release does not start the wait anew, or a task that every
    /// worker declines would never time out.
    pub waiting_since: i64,
    /// Longest time the closed attempt may still run, ms. Counts from the read-back of the event that
    /// said so; an owner that came later counts from its own claim.
    pub lease_left_ms: u64,
    /// Releases since the task last started, failed, was lost or timed out: five say that nobody
    /// takes it (design.md §5).
    pub released_in_a_row: u32,
    /// States of this run for which TaskOverdue was written, one bit each by index of the state.
    pub overdue_noted: u16,
    /// Result of the run.
    pub result_data_hash: Option<Sha256Hash>,
    /// Workers the engine wants avoided.
    pub avoid_workers: Vec<Text>,
    /// Whether people should look at the end of the run, or have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

impl Row {
    /// The completed steps without a gap from the first one: they are not run again. What lies
    /// beyond a gap is, since it may rest on the output of the step that is missing. Two handler
    /// versions may give one index to two steps; that is no gap.
    pub fn kept_steps(&self) -> &[StepEntry] {
        let mut next = 0;
        let gap = self.steps.iter().position(|step| {
            let follows = step.done.index <= next;
            next = next.max(step.done.index.saturating_add(1));
            !follows
        });
        &self.steps[..gap.unwrap_or(self.steps.len())]
    }

    /// The row of a new task.
    pub(crate) fn created(created: &TaskCreated, at: i64, trace_id: Text) -> Self {
        Self {
            not_before: created.not_before,
            created: Arc::new(created.clone()),
            created_at: at,
            waiting_since: at,
            trace_id,
            sampling: Sampling::default(),
            applied_offset: Offset(0),
            changed_broker_ms: 0,
            row_clock_us: 0,
            rule_version: RuleVersion::default(),
            history: History::default(),
            history_overflow: 0,
            worker_id: Text::default(),
            worker_incarnation: Incarnation::default(),
            handler_version: Text::default(),
            timeout_config: None,
            lease_max_ms: 0,
            optimistic_start: false,
            assigned_at: None,
            start_time: None,
            started_at: None,
            end_time: None,
            memory_usage_percent: 0,
            error_code: None,
            error_message: None,
            category: None,
            failed_step: None,
            attempt_failed: false,
            failed_step_idempotent: None,
            steps: Vec::new(),
            plan: None,
            lease_left_ms: 0,
            released_in_a_row: 0,
            overdue_noted: 0,
            result_data_hash: None,
            avoid_workers: Vec::new(),
            review: None,
        }
    }

    /// The row of a replayed task: what the carried closed state says. The steps it keeps are
    /// those the replay does not want run again, and the event that carries them is their evidence.
    /// `failed_step` is where the plan resumes, so it becomes what the replay asked for.
    pub(crate) fn replayed(b: &TaskReplayRequested, record: &Record) -> Self {
        let mut row = Self { result_data_hash: None, ..Self::reopened(&b.carried, record) };
        match b.replay_from {
            ReplayFrom::Failure => {}
            ReplayFrom::Start => {
                row.steps.clear();
                row.failed_step = None;
            }
            ReplayFrom::Step => {
                // Not among the completed ones is the step that failed: all before it stay.
                let from = row.steps.iter().position(|s| Some(&s.done.step) == b.from_step.as_ref());
                row.steps.truncate(from.unwrap_or(row.steps.len()));
                row.failed_step = b.from_step.clone();
            }
        }
        row
    }

    /// The row of a closed task as it is carried.
    pub(crate) fn reopened(carried: &ClosedTask, record: &Record) -> Self {
        let event = &record.event;
        let mut row = Self {
            history: History::before(&carried.history, record.offset),
            handler_version: carried.handler_version.clone().unwrap_or_default(),
            lease_left_ms: carried.lease_left_ms,
            not_before: None,
            worker_id: carried.worker_id.clone(),
            assigned_at: carried.assigned_at,
            start_time: carried.start_time,
            end_time: carried.end_time,
            memory_usage_percent: carried.memory_usage_percent,
            result_data_hash: carried.result_data_hash,
            error_code: carried.error_code.clone(),
            error_message: carried.error_message.clone(),
            category: carried.category,
            failed_step: carried.failed_step.clone(),
            // Not carried: a lost attempt's error is WORKER_LOST, which no worker reports.
            attempt_failed: carried.state == TaskState::FailedPermanently,
            ..Self::created(&carried.created, carried.created_at, event.trace_id.clone())
        };
        steps::merge(&mut row.steps, &carried.steps, event.event_sequence);
        row
    }

    /// Whether TaskOverdue was written for this state in this run.
    pub const fn is_overdue_noted(&self, state: TaskState) -> bool {
        self.overdue_noted & (1 << state as u16) != 0
    }

    /// Notes a record with this task's key.
    pub(crate) fn note(&mut self, offset: Offset, rejected: Option<Reason>) {
        if !self.history.push(HistoryEntry { offset, rejected }) {
            self.history_overflow += 1;
        }
    }
}

/// Error code and text of a timeout (closed list, docs/errors).
pub const fn timeout_error(kind: TimeoutKind) -> (&'static str, &'static str) {
    match kind {
        TimeoutKind::ScheduleToStart => ("TIMEOUT_SCHEDULE_TO_START", "no worker took the task in time"),
        TimeoutKind::StartToClose => ("TIMEOUT_START_TO_CLOSE", "the handler took longer than allowed"),
        TimeoutKind::Deadline => ("TIMEOUT_DEADLINE", "the deadline passed"),
    }
}
