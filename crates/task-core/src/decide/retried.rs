//! TaskRetried: the plan is there, the task waits for a worker again.

use task_events::{Body, Kind, TaskRetried};

use super::{Draft, Refusal, View};

/// Puts a planned task back into the queue.
pub fn retried(view: View<'_>) -> Result<Draft, Refusal> {
    if view.core.cancel_requested {
        return Err(Refusal::CancelRequested(Kind::TaskRetried));
    }
    view.next(Body::TaskRetried(TaskRetried { not_before: view.row.not_before }))
}
