//! TaskTimedOut: a limit of the task ran out.

use task_events::{Body, TaskState, TaskTimedOut, Text, TimeoutKind};

use super::{Draft, Refusal, View};

/// The limit that is next to run out in this state, and when (Unix ms). The deadline wins a tie,
/// since it is never retried.
pub fn due_timeout(view: View<'_>) -> Option<(i64, TimeoutKind)> {
    let row = view.row;
    let ms = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let waiting = matches!(view.core.state, TaskState::Created | TaskState::Retrying);
    let own = if waiting {
        // The wait counts from when the task could first be handed out.
        let since = row.waiting_since.max(row.not_before.unwrap_or(i64::MIN));
        row.created.timeouts.schedule_to_start_ms.map(|n| (since.saturating_add(ms(n)), TimeoutKind::ScheduleToStart))
    } else if view.core.state == TaskState::Executing {
        // By the broker's time: a worker whose clock is wrong must neither lose its attempt nor keep it.
        let since = row.started_at.or(row.assigned_at)?;
        Some((since.saturating_add(ms(row.created.timeouts.start_to_close_ms)), TimeoutKind::StartToClose))
    } else {
        None
    };
    let deadline = if waiting || view.core.state.is_live() { row.created.deadline } else { None };
    match (deadline, own) {
        (Some(d), Some((at, _))) if d <= at => Some((d, TimeoutKind::Deadline)),
        (Some(d), None) => Some((d, TimeoutKind::Deadline)),
        (Some(_) | None, own) => own,
    }
}

/// Closes the attempt, or ends the wait. `step`: the one last told to be in progress, and whether it
/// is idempotent.
pub fn timed_out(
    view: View<'_>,
    timeout: TimeoutKind,
    step: Option<(Text, bool)>,
    lease_left_ms: u64,
) -> Result<Draft, Refusal> {
    let live = view.core.state.is_live();
    let (step_in_progress, step_is_idempotent) = step.filter(|_| live).unzip();
    let execution_id = live.then_some(view.core.execution_id);
    view.next(Body::TaskTimedOut(TaskTimedOut {
        timeout,
        execution_id,
        step_in_progress,
        step_is_idempotent,
        lease_left_ms,
    }))
}
