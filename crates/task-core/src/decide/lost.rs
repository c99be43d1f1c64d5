//! TaskLost: no sign of life from the attempt.

use task_events::{Body, Probe, TaskLost, Text};

use super::{Draft, Refusal, View};

/// What the owner knows of the silence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Last sign of life, Unix ms.
    pub last_sign_of_life: i64,
    /// Step last told to be in progress, and whether it is idempotent.
    pub step_in_progress: Option<(Text, bool)>,
    /// Failed probes of the backup address.
    pub probes: Vec<Probe>,
    /// How long the attempt may still run at most, ms.
    pub lease_left_ms: u64,
}

/// Closes the live attempt.
pub fn lost(view: View<'_>, seen: Lost) -> Result<Draft, Refusal> {
    let (step_in_progress, step_is_idempotent) = seen.step_in_progress.unzip();
    view.next(Body::TaskLost(Box::new(TaskLost {
        execution_id: view.core.execution_id,
        last_sign_of_life: seen.last_sign_of_life,
        step_in_progress,
        step_is_idempotent,
        probes: seen.probes,
        lease_left_ms: seen.lease_left_ms,
    })))
}
