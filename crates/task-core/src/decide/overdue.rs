//! TaskOverdue: a task waits too long, and this names for whom.

use task_events::{Body, TaskOverdue, TaskState, Text};

use super::{Draft, View};
use crate::{Pen, pen_of};

/// Waiting longer than this is overdue, ms (design.md §5).
pub const OVERDUE_AFTER_MS: i64 = 30_000;

/// What keeps a task that is due from being handed out, whatever workers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// Another task of its concurrency key runs.
    ConcurrencyKey,
    /// Its queue is paused.
    PausedQueue,
}

/// The annotation, or `None` when it was already written for this state and run. `held_back` is
/// what the owner knows of a task that waits for a worker.
pub fn overdue(view: View<'_>, since_ms: i64, held_back: Option<HeldBack>) -> Option<Draft> {
    if view.row.is_overdue_noted(view.core.state) {
        return None;
    }
    let waiting_for = match pen_of(view.core) {
        Pen::Engine => "task-engine",
        Pen::Replayer => "auto-replay",
        Pen::Owner if matches!(view.core.state, TaskState::Created | TaskState::Retrying) => match held_back {
            Some(HeldBack::ConcurrencyKey) => "concurrency_key",
            Some(HeldBack::PausedQueue) => "paused_queue",
            None => "worker",
        },
        Pen::Owner => "coordinator",
    };
    let body = TaskOverdue { state: view.core.state, waiting_for: Text::const_new(waiting_for), since: since_ms };
    Some(view.draft(view.core.version, Body::TaskOverdue(body)))
}
