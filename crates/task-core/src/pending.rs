//! Whose move it is. Every pen is level-triggered: a service acts while its fold says so, not
//! because it has just read some event (design.md §4.7).

use task_events::{Service, TaskState};

use crate::CoreState;

/// Who may write the next event of an open task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pen {
    /// The partition's owner.
    Owner,
    /// task-engine.
    Engine,
    /// auto-replay.
    Replayer,
}

impl Pen {
    /// The service that holds this pen.
    pub const fn service(self) -> Service {
        match self {
            Self::Owner => Service::Coordinator,
            Self::Engine => Service::TaskEngine,
            Self::Replayer => Service::AutoReplay,
        }
    }
}

/// The pen of an open task.
pub const fn pen_of(core: &CoreState) -> Pen {
    if core.cancel_requested {
        return Pen::Owner;
    }
    match core.state {
        TaskState::Failed | TaskState::Lost => Pen::Engine,
        TaskState::RetryApproved => Pen::Replayer,
        TaskState::Created
        | TaskState::Assigned
        | TaskState::Executing
        | TaskState::ReplayPlanned
        | TaskState::Retrying
        | TaskState::Success
        | TaskState::FailedPermanently
        | TaskState::Cancelled => Pen::Owner,
    }
}

/// Work that only this service can do for the task, without waiting for a worker, a timer or a
/// person. `false` for the owner in ASSIGNED and EXECUTING (it waits for the worker) and while a
/// task merely waits for a slot (CREATED, RETRYING): that is dispatch.
pub const fn pending_work(core: &CoreState, pen: Pen) -> bool {
    match (pen, pen_of(core)) {
        (Pen::Engine, Pen::Engine) | (Pen::Replayer, Pen::Replayer) => true,
        (Pen::Owner, Pen::Owner) => {
            core.cancel_requested && !core.state.is_live() || matches!(core.state, TaskState::ReplayPlanned)
        }
        (Pen::Owner | Pen::Engine | Pen::Replayer, _) => false,
    }
}
