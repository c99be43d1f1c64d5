//! TaskCancelRequested and TaskCancelled.

use task_events::{Body, Kind, TaskCancelRequested, TaskCancelled, Text};

use super::{Draft, Refusal, View};

/// Somebody wants the task cancelled. Refused when it was already requested.
pub fn cancel_request(view: View<'_>, actor: Text, reason: Text) -> Result<Draft, Refusal> {
    if view.core.cancel_requested {
        return Err(Refusal::CancelRequested(Kind::TaskCancelRequested));
    }
    view.next(Body::TaskCancelRequested(TaskCancelRequested { actor, reason }))
}

/// The end of a task whose cancel was requested: no live attempt, or its worker stopped, or the
/// grace is over (the caller's clock says which).
pub fn cancelled(view: View<'_>, worker_stopped: bool, lease_left_ms: u64) -> Result<Draft, Refusal> {
    if !view.core.cancel_requested {
        return Err(Refusal::NotRequested);
    }
    view.next(Body::TaskCancelled(TaskCancelled { worker_stopped, lease_left_ms }))
}
