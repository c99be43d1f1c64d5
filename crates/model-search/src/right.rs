//! The numbers a record of a kind would have here if its writer knew the state: what histories
//! leave unsaid, and where a writer without rules starts from.
#![expect(clippy::wildcard_enum_match_arm, reason = "most kinds have the usual numbers")]

use task_core::CoreState;
use task_events::{Kind, KindClass, RecordKey, Service, TaskState, writer_of};

use crate::audit::Audit;
use crate::fold::Fold;
use crate::rec::{Carried, Rec};
use crate::subject::task_id;

/// Kinds whose event speaks of an attempt.
pub fn names_attempt(kind: Kind) -> bool {
    match kind {
        Kind::TaskAssigned
        | Kind::TaskStarted
        | Kind::TaskStepCompleted
        | Kind::TaskReleased
        | Kind::TaskCompleted
        | Kind::TaskFailed
        | Kind::TaskLost
        | Kind::TaskTimedOut
        | Kind::TaskFailureAnalysis
        | Kind::RejectedReport => true,
        Kind::TaskCreated
        | Kind::TaskRetryApproved
        | Kind::TaskFailedPermanently
        | Kind::TaskReplayPlanned
        | Kind::TaskRetried
        | Kind::TaskCancelRequested
        | Kind::TaskCancelled
        | Kind::TaskReplayRequested
        | Kind::TaskReviewed
        | Kind::TaskOverdue
        | Kind::TaskSkippedByPolicy
        | Kind::WorkerQuarantined
        | Kind::WorkerReleased
        | Kind::QueuePaused
        | Kind::QueueResumed
        | Kind::BacklogAlarm
        | Kind::OwnershipClaimed
        | Kind::OwnershipRenewed
        | Kind::RulesActivated
        | Kind::LogSealed => false,
    }
}

/// A record of this kind, about this task, with every number right.
pub fn right(fold: &Fold, audit: &Audit, kind: Kind, task: usize) -> Rec {
    let mut rec = Rec::bare(kind);
    if writer_of(kind) == Service::Coordinator {
        rec.p = Some(fold.epoch.0);
        rec.o = Some(fold.owner_seq.0 + 1);
    }
    if kind == Kind::OwnershipClaimed {
        (rec.p, rec.o) = (Some(fold.epoch.0 + 1), Some(0));
    }
    if matches!(kind.class(), KindClass::Control | KindClass::Seal) {
        return rec;
    }
    let id = task_id(task);
    (rec.task, rec.key) = (Some(id), RecordKey::Task(id));
    let open = fold.core(task);
    let core = open.copied().or(audit.tasks[task].closed).unwrap_or_else(|| unborn(id));
    (rec.seq, rec.run, rec.max) = (core.version.0 + 1, core.run_no.0, core.max_retries);
    match kind {
        Kind::TaskCreated => (rec.seq, rec.run) = (1, 1),
        Kind::TaskOverdue => rec.seq = core.version.0,
        Kind::RejectedReport => rec.seq = 0,
        Kind::TaskReplayRequested | Kind::TaskReviewed => {
            // Of an open task it claims what it would have to: that the task is closed.
            let state = if core.state.is_terminal() { core.state } else { TaskState::Success };
            let (run, seq, e) = (core.run_no.0, core.version.0, core.exec_epoch.0);
            rec.carried = Some(Carried { state, run, seq, e, x: e });
            rec.run = run + u32::from(kind == Kind::TaskReplayRequested);
        }
        _ => {}
    }
    if names_attempt(kind) {
        rec.e = core.exec_epoch.0 + u32::from(kind == Kind::TaskAssigned);
        let unnamed = kind == Kind::TaskTimedOut && !core.state.is_live();
        rec.x = (!unnamed).then_some(rec.e);
    }
    rec
}

// A task nobody has heard of: its first event would be number 1.
fn unborn(id: task_events::TaskId) -> CoreState {
    CoreState { version: task_events::EventSequence(0), ..CoreState::created(id, 1) }
}
