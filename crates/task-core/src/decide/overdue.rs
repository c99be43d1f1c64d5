//! TaskOverdue: a task waits too long, and this names for whom.

use task_events::{Body, TaskOverdue, TaskState, Text};

use super::{Draft, View};
use crate::{Pen, pen_of};

/// Waiting longer than this is overdue, ms (design.md §5).
pub const OVERDUE_AFTER_MS: i64 = 30_000;

/// The annotation, or `None` when it was already written for this state and run.
pub fn overdue(view: View<'_>, since_ms: i64) -> Option<Draft> {
    if view.row.is_overdue_noted(view.core.state) {
        return None;
    }
    let waiting_for = match pen_of(view.core) {
        Pen::Engine => "task-engine",
        Pen::Replayer => "auto-replay",
        Pen::Owner if matches!(view.core.state, TaskState::Created | TaskState::Retrying) => "worker",
        Pen::Owner => "coordinator",
    };
    let body = TaskOverdue { state: view.core.state, waiting_for: Text::const_new(waiting_for), since: since_ms };
    Some(view.draft(view.core.version, Body::TaskOverdue(body)))
}
