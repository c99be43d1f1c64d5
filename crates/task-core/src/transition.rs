//! What an accepted task event does to the judged state (`docs/acceptance.md`, last table).

use task_events::{Body, Event, EventSequence, ExecEpoch, TaskState};

use crate::CoreState;

/// Moves an open task on.
pub(crate) fn transition(core: &mut CoreState, event: &Event) {
    // Accepted means version + 1; a mutant without that check must still not run backwards.
    core.version = EventSequence(core.version.0.saturating_add(1));
    let next = match &event.body {
        Body::TaskAssigned(b) => {
            core.assigned_from_retrying = core.state == TaskState::Retrying;
            core.exec_epoch = ExecEpoch(core.exec_epoch.0.saturating_add(1));
            core.execution_id = b.execution_id;
            core.closed_by_lost = false;
            TaskState::Assigned
        }
        Body::TaskStarted(_) => TaskState::Executing,
        Body::TaskReleased(_) if core.assigned_from_retrying => TaskState::Retrying,
        Body::TaskReleased(_) => TaskState::Created,
        Body::TaskCompleted(_) => TaskState::Success,
        Body::TaskFailed(_) | Body::TaskTimedOut(_) => {
            core.closed_by_lost = false;
            TaskState::Failed
        }
        Body::TaskLost(_) => {
            core.closed_by_lost = true;
            TaskState::Lost
        }
        Body::TaskRetryApproved(_) => {
            if core.state == TaskState::Lost {
                core.lost_count = core.lost_count.saturating_add(1);
            } else {
                core.retry_count = core.retry_count.saturating_add(1);
            }
            TaskState::RetryApproved
        }
        Body::TaskFailedPermanently(_) => TaskState::FailedPermanently,
        Body::TaskReplayPlanned(_) => TaskState::ReplayPlanned,
        Body::TaskRetried(_) => TaskState::Retrying,
        Body::TaskCancelled(_) => TaskState::Cancelled,
        Body::TaskCancelRequested(_) => {
            core.cancel_requested = true;
            core.state
        }
        Body::TaskStepCompleted(_)
        | Body::TaskCreated(_)
        | Body::TaskReplayRequested(_)
        | Body::TaskReviewed(_)
        | Body::RejectedReport(_)
        | Body::TaskOverdue(_)
        | Body::TaskFailureAnalysis(_)
        | Body::TaskSkippedByPolicy(_)
        | Body::WorkerQuarantined(_)
        | Body::WorkerReleased(_)
        | Body::QueuePaused(_)
        | Body::QueueResumed(_)
        | Body::BacklogAlarm(_)
        | Body::OwnershipClaimed(_)
        | Body::OwnershipRenewed(_)
        | Body::RulesActivated(_)
        | Body::LogSealed(_) => core.state,
    };
    core.state = next;
}
