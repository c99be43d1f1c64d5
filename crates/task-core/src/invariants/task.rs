//! What a record may say of its task: sequences, runs, attempts, verdicts.
#![expect(clippy::wildcard_enum_match_arm, reason = "a law names the kinds it speaks of, and is silent about the rest")]

use task_events::{Body, Event, EventSequence, ExecEpoch, Kind, RunNo, TaskState};

use super::{Before, Violation, violation};
use crate::CoreState;
use crate::core_state::MAX_LOST;

// An annotation stands where the event it explains can follow: a batch is not atomic, so nothing
// more can be asked of one that stands alone.
pub(super) fn annotation(before: Before, event: &Event) -> Result<(), Violation> {
    let kind = event.kind;
    let Before::Open(was) = before else {
        return violation(9, format!("{kind} for a task that is not open"));
    };
    let expected = if kind == Kind::TaskOverdue { Some(was.version) } else { was.version.next() };
    if Some(event.event_sequence) != expected {
        return violation(3, format!("{kind} has event_sequence {} at {}", event.event_sequence, was.version));
    }
    if event.run_no != was.run_no {
        return violation(15, format!("{kind} of run {} in run {}", event.run_no, was.run_no));
    }
    match &event.body {
        Body::TaskFailureAnalysis(b) => {
            if event.exec_epoch != was.exec_epoch || b.execution_id != was.execution_id {
                return violation(8, format!("{kind} of attempt {} meets {}", event.exec_epoch, was.exec_epoch));
            }
            if was.state.is_live() { Ok(()) } else { violation(8, format!("a failure explained while {}", was.state)) }
        }
        Body::TaskSkippedByPolicy(_) | Body::WorkerQuarantined(_) => {
            let judged = matches!(was.state, TaskState::Failed | TaskState::Lost) && !was.cancel_requested;
            if judged { Ok(()) } else { violation(14, format!("{kind} explains no verdict while {}", was.state)) }
        }
        _ => Ok(()),
    }
}

pub(super) fn task_event(before: Before, event: &Event, after: Option<&CoreState>) -> Result<(), Violation> {
    let kind = event.kind;
    let (was, open) = match before {
        Before::Unborn if kind == Kind::TaskCreated => return birth(event),
        Before::Unborn => return violation(2, format!("{kind} for a task that was never created")),
        Before::Open(core) => (core, true),
        Before::Closed(core) => (core, false),
    };
    if kind == Kind::TaskCreated {
        return violation(2, format!("task {} created again", was.id));
    }
    if Some(event.event_sequence) != was.version.next() {
        return violation(3, format!("{kind} has event_sequence {} after {}", event.event_sequence, was.version));
    }
    if !open && !matches!(kind, Kind::TaskReplayRequested | Kind::TaskReviewed) {
        return violation(9, format!("{kind} for a closed task ({})", was.state));
    }
    if open && matches!(kind, Kind::TaskReplayRequested | Kind::TaskReviewed) {
        return violation(9, format!("{kind} for an open task ({})", was.state));
    }
    runs(&was, event)?;
    attempts(&was, event)?;
    verdicts(&was, event)?;
    if let Some(after) = after
        && after.state.is_terminal()
    {
        return violation(9, format!("{} is kept open in {}", after.id, after.state));
    }
    Ok(())
}

fn birth(event: &Event) -> Result<(), Violation> {
    if (event.event_sequence, event.run_no) != (EventSequence(1), RunNo(1)) {
        return violation(3, format!("born with event_sequence {} in run {}", event.event_sequence, event.run_no));
    }
    Ok(())
}

fn runs(was: &CoreState, event: &Event) -> Result<(), Violation> {
    if let Body::TaskReplayRequested(b) = &event.body {
        let c = &b.carried;
        if Some(event.run_no) != was.run_no.next() {
            return violation(9, format!("replay opens run {} after run {}", event.run_no, was.run_no));
        }
        let carried = (c.state, c.run_no, c.event_sequence, c.exec_epoch, c.execution_id);
        let known = (was.state, was.run_no, was.version, was.exec_epoch, was.execution_id);
        if carried != known {
            return violation(9, format!("replay carries {carried:?}, the task was {known:?}"));
        }
        return Ok(());
    }
    if event.run_no != was.run_no {
        return violation(15, format!("{} of run {} in run {}", event.kind, event.run_no, was.run_no));
    }
    Ok(())
}

fn attempts(was: &CoreState, event: &Event) -> Result<(), Violation> {
    let execution = match &event.body {
        Body::TaskAssigned(_) => {
            if Some(event.exec_epoch) != was.exec_epoch.next() {
                return violation(6, format!("exec_epoch {} after {}", event.exec_epoch, was.exec_epoch));
            }
            if was.state.is_live() {
                return violation(7, format!("assigned while {}", was.state));
            }
            if !matches!(was.state, TaskState::Created | TaskState::Retrying) {
                return violation(12, format!("assigned in {}, without an approved plan", was.state));
            }
            return Ok(());
        }
        Body::TaskStarted(b) => b.execution_id,
        Body::TaskStepCompleted(b) => b.execution_id,
        Body::TaskReleased(b) => b.execution_id,
        Body::TaskCompleted(b) => b.execution_id,
        Body::TaskFailed(b) => b.execution_id,
        Body::TaskLost(b) => b.execution_id,
        // Without a live attempt the timeout is the task's, whatever attempt it names.
        Body::TaskTimedOut(_) if !was.state.is_live() => return Ok(()),
        Body::TaskTimedOut(b) => match b.execution_id {
            Some(execution) => execution,
            None => return violation(8, "timeout of a live attempt does not name it"),
        },
        _ => return Ok(()),
    };
    if event.exec_epoch != was.exec_epoch || execution != was.execution_id || was.exec_epoch == ExecEpoch(0) {
        return violation(
            8,
            format!("{} of attempt {} meets attempt {}", event.kind, event.exec_epoch, was.exec_epoch),
        );
    }
    let late = was.closed_by_lost && event.kind == Kind::TaskCompleted;
    if !was.state.is_live() && !late {
        return violation(8, format!("{} while {}", event.kind, was.state));
    }
    match event.kind {
        Kind::TaskStarted | Kind::TaskReleased if was.state != TaskState::Assigned => {
            violation(8, format!("{} while {}", event.kind, was.state))
        }
        Kind::TaskStepCompleted if was.state != TaskState::Executing => {
            violation(8, format!("a step while {}", was.state))
        }
        _ => Ok(()),
    }
}

fn verdicts(was: &CoreState, event: &Event) -> Result<(), Violation> {
    let kind = event.kind;
    let hands_on = matches!(
        kind,
        Kind::TaskAssigned
            | Kind::TaskRetryApproved
            | Kind::TaskFailedPermanently
            | Kind::TaskReplayPlanned
            | Kind::TaskRetried
    );
    if hands_on && was.cancel_requested {
        return violation(12, format!("{kind} after the cancel request"));
    }
    match kind {
        Kind::TaskRetryApproved => {
            let (used, limit) = match was.state {
                TaskState::Failed => (was.retry_count, was.max_retries),
                TaskState::Lost => (was.lost_count, MAX_LOST),
                other => return violation(12, format!("retry approved in {other}")),
            };
            if used >= limit { violation(12, format!("retry {} of {limit}", used + 1)) } else { Ok(()) }
        }
        Kind::TaskFailedPermanently if !matches!(was.state, TaskState::Failed | TaskState::Lost) => {
            violation(12, format!("given up in {}", was.state))
        }
        Kind::TaskReplayPlanned if was.state != TaskState::RetryApproved => {
            violation(12, format!("planned in {}", was.state))
        }
        Kind::TaskRetried if was.state != TaskState::ReplayPlanned => {
            violation(12, format!("retried in {}", was.state))
        }
        // Waiting for a worker and running have a limit; waiting for a verdict has none.
        Kind::TaskTimedOut
            if !was.state.is_live() && !matches!(was.state, TaskState::Created | TaskState::Retrying) =>
        {
            violation(13, format!("timed out while {}", was.state))
        }
        Kind::TaskCancelled if !was.cancel_requested => violation(12, "cancelled without a request"),
        Kind::TaskCancelRequested if was.cancel_requested => violation(11, "cancel requested twice"),
        _ => Ok(()),
    }
}
