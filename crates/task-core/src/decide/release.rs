//! TaskReleased: an attempt comes back whose handler was not entered.

use task_events::{Body, ReleaseReason, TaskReleased};

use super::{Draft, Refusal, View};

/// Takes the attempt back; the task waits again where it waited before, its counters unchanged.
pub fn release(view: View<'_>, reason: ReleaseReason, lease_left_ms: u64) -> Result<Draft, Refusal> {
    view.next(Body::TaskReleased(TaskReleased { execution_id: view.core.execution_id, reason, lease_left_ms }))
}
