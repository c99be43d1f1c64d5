//! What a kind means to the fold, apart from the matrix: which attempt it speaks of, and whether a
//! cancel request stands in its way.

use task_events::{Body, Event, ExecutionId, Kind};

use crate::{CancelRule, CoreState};

/// The attempt an event speaks of.
pub(crate) enum Meant {
    /// None.
    None,
    /// The one it opens.
    Next,
    /// The task's last one, by this id.
    Last(ExecutionId),
}

/// Which attempt an event speaks of, by what its body says.
pub(crate) fn attempt_of(event: &Event, core: &CoreState) -> Meant {
    match &event.body {
        Body::TaskAssigned(_) => Meant::Next,
        Body::TaskStarted(b) => Meant::Last(b.execution_id),
        Body::TaskStepCompleted(b) => Meant::Last(b.execution_id),
        Body::TaskReleased(b) => Meant::Last(b.execution_id),
        Body::TaskCompleted(b) => Meant::Last(b.execution_id),
        Body::TaskFailed(b) => Meant::Last(b.execution_id),
        Body::TaskLost(b) => Meant::Last(b.execution_id),
        Body::TaskFailureAnalysis(b) => Meant::Last(b.execution_id),
        // With a live attempt the timeout is the attempt's, without one the task's.
        Body::TaskTimedOut(b) if core.state.is_live() => Meant::Last(b.execution_id.unwrap_or(ExecutionId::NONE)),
        Body::TaskTimedOut(_)
        | Body::TaskCreated(_)
        | Body::TaskRetryApproved(_)
        | Body::TaskFailedPermanently(_)
        | Body::TaskReplayPlanned(_)
        | Body::TaskRetried(_)
        | Body::TaskCancelRequested(_)
        | Body::TaskCancelled(_)
        | Body::TaskReplayRequested(_)
        | Body::TaskReviewed(_)
        | Body::RejectedReport(_)
        | Body::TaskOverdue(_)
        | Body::TaskSkippedByPolicy(_)
        | Body::WorkerQuarantined(_)
        | Body::WorkerReleased(_)
        | Body::QueuePaused(_)
        | Body::QueueResumed(_)
        | Body::BacklogAlarm(_)
        | Body::OwnershipClaimed(_)
        | Body::OwnershipRenewed(_)
        | Body::RulesActivated(_)
        | Body::LogSealed(_) => Meant::None,
    }
}

/// A cancel request stops whatever would hand the task on; reports of its attempt still count.
pub(crate) const fn standard_cancel(kind: Kind) -> CancelRule {
    match kind {
        Kind::TaskAssigned
        | Kind::TaskRetryApproved
        | Kind::TaskFailedPermanently
        | Kind::TaskSkippedByPolicy
        | Kind::WorkerQuarantined
        | Kind::TaskReplayPlanned
        | Kind::TaskRetried
        | Kind::TaskCancelRequested => CancelRule::Without,
        Kind::TaskCancelled => CancelRule::With,
        Kind::TaskCreated
        | Kind::TaskStarted
        | Kind::TaskStepCompleted
        | Kind::TaskReleased
        | Kind::TaskCompleted
        | Kind::TaskFailed
        | Kind::TaskLost
        | Kind::TaskTimedOut
        | Kind::TaskReplayRequested
        | Kind::TaskReviewed
        | Kind::RejectedReport
        | Kind::TaskOverdue
        | Kind::TaskFailureAnalysis
        | Kind::WorkerReleased
        | Kind::QueuePaused
        | Kind::QueueResumed
        | Kind::BacklogAlarm
        | Kind::OwnershipClaimed
        | Kind::OwnershipRenewed
        | Kind::RulesActivated
        | Kind::LogSealed => CancelRule::Either,
    }
}
