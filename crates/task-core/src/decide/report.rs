//! What a worker tells of its attempt: start, step, success, failure; and what to answer.

use task_events::{
    Body, ErrorCategory, EventSequence, ExecutionId, RejectedReport, ReleaseReason, ReportedStatus, Sampling,
    TaskCompleted, TaskFailed, TaskFailureAnalysis, TaskStarted, TaskState, TaskStepCompleted, Text,
};

use super::{Draft, Refusal, View};
use crate::{Closed, Row};
pub use worker_protocol::{Report, ReportBody};

/// Longest error message in an event, characters (design.md §5).
pub const MAX_ERROR_CHARS: usize = 256;

/// What a report meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It may be written.
    Counts,
    /// It is already on record: answer `duplicate`.
    Duplicate,
    /// The attempt is over: answer `fenced`, the worker must stop.
    Fenced,
    /// It comes before the report it rests on (a step before STARTING): the worker repeats that one.
    TooEarly,
}

/// What a report meets at an open task.
pub fn classify(view: View<'_>, report: &Report) -> Fate {
    let core = view.core;
    if core.attempt() != report.attempt || core.exec_epoch.0 == 0 {
        return Fate::Fenced;
    }
    let live = core.state.is_live();
    match &report.body {
        ReportBody::Starting { .. } if core.state == TaskState::Assigned => Fate::Counts,
        ReportBody::Starting { .. } if core.state == TaskState::Executing => Fate::Duplicate,
        ReportBody::Declined { .. } if core.state == TaskState::Assigned => Fate::Counts,
        ReportBody::Step(_) if core.state == TaskState::Assigned => Fate::TooEarly,
        ReportBody::Step(step) if core.state == TaskState::Executing => {
            let known = view.row.steps.iter().any(|s| s.done == *step);
            if known { Fate::Duplicate } else { Fate::Counts }
        }
        ReportBody::Starting { .. } | ReportBody::Declined { .. } | ReportBody::Step(_) => Fate::Fenced,
        ReportBody::Success { .. } if live || core.is_late(report.attempt) => Fate::Counts,
        ReportBody::Failure { .. } if live => Fate::Counts,
        ReportBody::Failure { error_code, .. } if failed_so(view.row, error_code) => Fate::Duplicate,
        ReportBody::Success { .. } | ReportBody::Failure { .. } => Fate::Fenced,
    }
}

// The failure on record is the last attempt's own, and this one.
fn failed_so(row: &Row, error_code: &Text) -> bool {
    row.attempt_failed && row.error_code.as_ref() == Some(error_code)
}

/// What a report meets at a closed task.
pub fn classify_closed(closed: &Closed, report: &Report) -> Fate {
    if closed.core.execution_id != report.attempt.execution_id || closed.core.run_no != report.attempt.run_no {
        return Fate::Fenced;
    }
    let same = match &report.body {
        ReportBody::Success { result_data_hash, .. } => {
            closed.core.state == TaskState::Success && closed.row.result_data_hash == Some(*result_data_hash)
        }
        // A cancel ends a task whose attempt has failed already, often because of it.
        ReportBody::Failure { error_code, .. } => {
            closed.core.state != TaskState::Success && failed_so(&closed.row, error_code)
        }
        ReportBody::Step(step) => {
            closed.core.state == TaskState::Success && closed.row.steps.iter().any(|s| s.done == *step)
        }
        ReportBody::Starting { .. } | ReportBody::Declined { .. } => false,
    };
    if same { Fate::Duplicate } else { Fate::Fenced }
}

/// The events of a report that counts: a failure's analysis rides before it.
pub fn report(view: View<'_>, report: Report) -> Result<Vec<Draft>, Refusal> {
    let execution_id = report.attempt.execution_id;
    let body = match report.body {
        ReportBody::Starting { start_time, memory_usage_percent } => Body::TaskStarted(TaskStarted {
            execution_id,
            worker_id: report.worker_id,
            start_time,
            memory_usage_percent,
        }),
        ReportBody::Declined { draining } => {
            let reason = if draining { ReleaseReason::Drain } else { ReleaseReason::Declined };
            return Ok(vec![super::release(view, reason, 0)?]);
        }
        ReportBody::Step(done) => Body::TaskStepCompleted(TaskStepCompleted { execution_id, done }),
        ReportBody::Success { result_data_hash, execution_time_ms, steps_done, memory_usage_percent } => {
            Body::TaskCompleted(Box::new(TaskCompleted {
                execution_id,
                result_data_hash,
                execution_time_ms,
                steps_done,
                memory_usage_percent,
            }))
        }
        ReportBody::Failure {
            error_code,
            error_message,
            category,
            failed_step,
            is_idempotent,
            execution_time_ms,
            steps_done,
            memory_usage_percent,
        } => {
            let failed = view.next(Body::TaskFailed(Box::new(TaskFailed {
                execution_id,
                error_code,
                error_message: cut(&error_message),
                category,
                failed_step,
                is_idempotent,
                execution_time_ms,
                steps_done,
                memory_usage_percent,
            })))?;
            let analysis =
                Draft { body: Body::TaskFailureAnalysis(analysis(view, execution_id, category)), ..failed.clone() };
            return Ok(vec![analysis, failed]);
        }
    };
    Ok(vec![view.next(body)?])
}

fn analysis(view: View<'_>, execution_id: ExecutionId, category: ErrorCategory) -> TaskFailureAnalysis {
    let summary = format!(
        "attempt {} of run {} failed as {category} after {} completed steps, {} of {} retries used",
        view.core.exec_epoch,
        view.core.run_no,
        view.row.steps.len(),
        view.core.retry_count,
        view.core.max_retries
    );
    TaskFailureAnalysis { execution_id, category, summary: summary.into() }
}

/// The visible trace of a terminal report that is neither live, late nor a duplicate.
pub fn rejected_report(
    report: &Report,
    task: task_events::TaskId,
    (trace_id, sampling): (Text, Sampling),
    reason: &'static str,
) -> Option<Draft> {
    let (reported, result_data_hash, error_code) = match &report.body {
        ReportBody::Success { result_data_hash, .. } => (ReportedStatus::Success, Some(*result_data_hash), None),
        ReportBody::Failure { error_code, .. } => (ReportedStatus::Failed, None, Some(error_code.clone())),
        ReportBody::Starting { .. } | ReportBody::Declined { .. } | ReportBody::Step(_) => return None,
    };
    Some(Draft {
        task_id: Some(task),
        event_sequence: EventSequence(0),
        run_no: report.attempt.run_no,
        exec_epoch: report.attempt.exec_epoch,
        trace_id,
        sampling,
        body: Body::RejectedReport(Box::new(RejectedReport {
            execution_id: report.attempt.execution_id,
            reported,
            worker_id: report.worker_id.clone(),
            result_data_hash,
            error_code,
            reason: Text::const_new(reason),
        })),
    })
}

fn cut(message: &str) -> Text {
    match message.char_indices().nth(MAX_ERROR_CHARS) {
        Some((at, _)) => Text::new(&message[..at]),
        None => Text::new(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_on_a_character() {
        assert_eq!(cut(&"é".repeat(300)).chars().count(), 256);
        assert_eq!(cut("short"), "short");
    }
}
