//! The invariants of design.md §5 that a fold can check by itself, one definition each; debug
//! assertions, simulator, searches and audit all call these. Predicates get the state before and
//! after a record; they know nothing of the rules that led from one to the other.

use task_events::{Body, Event, EventSequence, ExecEpoch, Kind, KindClass, RunNo, Service, TaskState, writer_of};

use crate::core_state::MAX_LOST;
use crate::{Change, CoreState, PartitionState, Record, Verdict};

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Number in design.md §5.
    pub invariant: u8,
    /// What was seen.
    pub what: String,
}

fn violation(invariant: u8, what: impl Into<String>) -> Result<(), Violation> {
    Err(Violation { invariant, what: what.into() })
}

/// What is known of the task of a record before it: the open state, or, once closed, the last
/// state a watcher remembers (the fold forgets it; an auditor does not).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Never created.
    Unborn,
    /// Open.
    Open(CoreState),
    /// Closed, with its last state.
    Closed(CoreState),
}

/// Checks one accepted record against the task's state before and after. Rejected records are
/// checked by [`unchanged`].
pub fn accepted_step(
    before: Before,
    event: &Event,
    after: Option<&CoreState>,
    partition: &PartitionState,
) -> Result<(), Violation> {
    let kind = event.kind;
    if event.producer.service != writer_of(kind) {
        return violation(5, format!("{kind} written by {}", event.producer.service));
    }
    let Some(id) = event.task_id else { return Ok(()) };
    if id.partition() != partition.partition {
        return violation(1, format!("task {id} in partition {}", partition.partition));
    }
    match kind.class() {
        KindClass::Annotation => annotation(before, event),
        KindClass::Report | KindClass::Seal | KindClass::Control => Ok(()),
        KindClass::TaskEvent => task_event(before, event, after),
    }
}

// An annotation stands where the event it explains can follow: a batch is not atomic, so nothing
// more can be asked of one that stands alone.
fn annotation(before: Before, event: &Event) -> Result<(), Violation> {
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

fn task_event(before: Before, event: &Event, after: Option<&CoreState>) -> Result<(), Violation> {
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
        Body::TaskTimedOut(b) => match b.execution_id {
            Some(execution) => execution,
            None if was.state.is_live() => return violation(8, "timeout of a live attempt does not name it"),
            None => return Ok(()),
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
    if !was.state.is_live() && !late && event.kind != Kind::TaskTimedOut {
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

/// A rejected record changes nothing but the row clock, the offset and the counters (invariant 11).
pub fn unchanged(before: &PartitionState, after: &PartitionState, record: &Record) -> Result<(), Violation> {
    let own = |s: &PartitionState| (s.epoch, s.owner_seq, s.highest, s.active_rules, s.tasks.hash_sum());
    if own(before) == own(after) {
        Ok(())
    } else {
        violation(11, format!("rejected {} at {} changed the state", record.event.kind, record.offset))
    }
}

/// Ownership: epochs rise by one, no former owner is heard, ids rise (invariants 2, 4, 5).
pub fn ownership(before: &PartitionState, event: &Event, verdict: &Verdict) -> Result<(), Violation> {
    if matches!(verdict, Verdict::Rejected(_)) || writer_of(event.kind) != Service::Coordinator {
        return Ok(());
    }
    if event.kind == Kind::OwnershipClaimed {
        return if event.partition_epoch == before.epoch.next() {
            Ok(())
        } else {
            violation(4, format!("claim of epoch {:?} after {}", event.partition_epoch, before.epoch))
        };
    }
    if event.partition_epoch != Some(before.epoch) {
        return violation(5, format!("{} of epoch {:?} in epoch {}", event.kind, event.partition_epoch, before.epoch));
    }
    if event.owner_seq <= Some(before.owner_seq) {
        return violation(11, format!("owner_seq {:?} after {}", event.owner_seq, before.owner_seq));
    }
    match (event.kind, event.task_id) {
        (Kind::TaskCreated, Some(id)) if id <= before.highest => {
            violation(2, format!("id {id} is not above {}", before.highest))
        }
        _ => Ok(()),
    }
}

/// Nothing is silently lost: every offset was applied, rejected or quarantined (invariant 19).
pub fn adds_up(state: &PartitionState) -> Result<(), Violation> {
    if state.counters.total() == state.next_offset.0 {
        Ok(())
    } else {
        violation(19, format!("{} records counted before offset {}", state.counters.total(), state.next_offset))
    }
}

/// Whether a change closed the task with this final state.
pub fn closed_state(verdict: &Verdict) -> Option<CoreState> {
    match verdict {
        Verdict::Accepted(Change::Closed(closed) | Change::Reviewed(closed)) => Some(closed.core),
        Verdict::Accepted(Change::Forgotten(core)) => Some(*core),
        Verdict::Accepted(_) | Verdict::Rejected(_) => None,
    }
}
