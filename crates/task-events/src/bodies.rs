//! The kinds of design.md §5: one enum of names, one of bodies, and who may write what.
//!
//! There is no wildcard arm over a kind anywhere: a new kind is a build error until every table
//! has answered for it.

pub mod attempt;
pub mod control;
pub mod people;
pub mod shared;
pub mod verdict;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ExecutionId;

pub use attempt::*;
pub use control::*;
pub use people::*;
pub use shared::*;
pub use verdict::*;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($body:ty), $name:literal, $writer:ident, $class:ident;)*) => {
        /// Name of a kind. The discriminant is the index of the enum symbol and of the union branch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Kind { $($(#[$doc])* $kind,)* }

        impl Kind {
            /// Every kind, in schema order.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind,)*];

            /// The kind's name as it stands in the schema and in the header `kind`.
            pub const fn as_str(self) -> &'static str { match self { $(Kind::$kind => stringify!($kind),)* } }

            /// What the kind is to the fold.
            pub const fn class(self) -> KindClass { match self { $(Kind::$kind => KindClass::$class,)* } }
        }

        /// What happened: exactly one body per [`Kind`].
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Body { $($(#[$doc])* #[serde(rename = $name)] $kind($body),)* }

        impl Body {
            /// The kind of this body.
            pub const fn kind(&self) -> Kind { match self { $(Body::$kind(_) => Kind::$kind,)* } }
        }

        /// The only service that may write a kind (invariant 5). Detected by audit, not prevented.
        pub const fn writer_of(kind: Kind) -> Service { match kind { $(Kind::$kind => Service::$writer,)* } }
    };
}

/// What a kind is to the fold (design.md §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KindClass {
    /// Raises a task's version.
    TaskEvent,
    /// Explains an event and changes nothing.
    Annotation,
    /// `RejectedReport`: visible, event_sequence 0, changes nothing.
    Report,
    /// About the partition, not about a task; fenced.
    Control,
    /// `LogSealed`: accepted always, without effect.
    Seal,
}

kinds! {
    /// A task is born.
    TaskCreated(Box<TaskCreated>), "io.dualtrack.events.TaskCreated", Coordinator, TaskEvent;
    /// An attempt is handed to a worker.
    TaskAssigned(Box<TaskAssigned>), "io.dualtrack.events.TaskAssigned", Coordinator, TaskEvent;
    /// The handler was entered.
    TaskStarted(TaskStarted), "io.dualtrack.events.TaskStarted", Coordinator, TaskEvent;
    /// A step is done.
    TaskStepCompleted(TaskStepCompleted), "io.dualtrack.events.TaskStepCompleted", Coordinator, TaskEvent;
    /// An attempt comes back without its handler having been entered.
    TaskReleased(TaskReleased), "io.dualtrack.events.TaskReleased", Coordinator, TaskEvent;
    /// The attempt succeeded.
    TaskCompleted(Box<TaskCompleted>), "io.dualtrack.events.TaskCompleted", Coordinator, TaskEvent;
    /// The attempt failed.
    TaskFailed(Box<TaskFailed>), "io.dualtrack.events.TaskFailed", Coordinator, TaskEvent;
    /// No sign of life from the attempt.
    TaskLost(Box<TaskLost>), "io.dualtrack.events.TaskLost", Coordinator, TaskEvent;
    /// A limit of the task ran out.
    TaskTimedOut(TaskTimedOut), "io.dualtrack.events.TaskTimedOut", Coordinator, TaskEvent;
    /// The engine lets the task run again.
    TaskRetryApproved(Box<TaskRetryApproved>), "io.dualtrack.events.TaskRetryApproved", TaskEngine, TaskEvent;
    /// The engine gives the task up.
    TaskFailedPermanently(TaskFailedPermanently), "io.dualtrack.events.TaskFailedPermanently", TaskEngine, TaskEvent;
    /// What remains to be done.
    TaskReplayPlanned(Box<TaskReplayPlanned>), "io.dualtrack.events.TaskReplayPlanned", AutoReplay, TaskEvent;
    /// The task waits for a worker again.
    TaskRetried(TaskRetried), "io.dualtrack.events.TaskRetried", Coordinator, TaskEvent;
    /// Somebody wants the task cancelled.
    TaskCancelRequested(TaskCancelRequested), "io.dualtrack.events.TaskCancelRequested", Coordinator, TaskEvent;
    /// The task is cancelled.
    TaskCancelled(TaskCancelled), "io.dualtrack.events.TaskCancelled", Coordinator, TaskEvent;
    /// A closed task is opened again.
    TaskReplayRequested(Box<TaskReplayRequested>), "io.dualtrack.events.TaskReplayRequested", Coordinator, TaskEvent;
    /// People decided about a closed task.
    TaskReviewed(Box<TaskReviewed>), "io.dualtrack.events.TaskReviewed", Coordinator, TaskEvent;
    /// A terminal report that is neither live, late nor a duplicate.
    RejectedReport(Box<RejectedReport>), "io.dualtrack.events.RejectedReport", Coordinator, Report;
    /// A task waits too long.
    TaskOverdue(TaskOverdue), "io.dualtrack.events.TaskOverdue", Coordinator, Annotation;
    /// Explains the TaskFailed that follows.
    TaskFailureAnalysis(TaskFailureAnalysis), "io.dualtrack.events.TaskFailureAnalysis", Coordinator, Annotation;
    /// Explains the TaskRetryApproved that follows.
    TaskSkippedByPolicy(TaskSkippedByPolicy), "io.dualtrack.events.TaskSkippedByPolicy", TaskEngine, Annotation;
    /// Explains the TaskRetryApproved that follows.
    WorkerQuarantined(WorkerQuarantined), "io.dualtrack.events.WorkerQuarantined", TaskEngine, Annotation;
    /// A quarantine ends early.
    WorkerReleased(WorkerReleased), "io.dualtrack.events.WorkerReleased", Coordinator, Control;
    /// A queue stops handing out.
    QueuePaused(QueuePaused), "io.dualtrack.events.QueuePaused", Coordinator, Control;
    /// A queue goes on.
    QueueResumed(QueueResumed), "io.dualtrack.events.QueueResumed", Coordinator, Control;
    /// Too many tasks are overdue to name each.
    BacklogAlarm(BacklogAlarm), "io.dualtrack.events.BacklogAlarm", Coordinator, Control;
    /// An instance takes the partition.
    OwnershipClaimed(OwnershipClaimed), "io.dualtrack.events.OwnershipClaimed", Coordinator, Control;
    /// The owner shows that it is current.
    OwnershipRenewed(OwnershipRenewed), "io.dualtrack.events.OwnershipRenewed", Coordinator, Control;
    /// New rules are valid from here on.
    RulesActivated(RulesActivated), "io.dualtrack.events.RulesActivated", Coordinator, Control;
    /// A signed hash over a range of the log.
    LogSealed(LogSealed), "io.dualtrack.events.LogSealed", AuditReport, Seal;
}

impl Body {
    /// The attempt it belongs to: the one that begins with it, reports it, or ends by it.
    pub fn execution_id(&self) -> Option<ExecutionId> {
        match self {
            Self::TaskAssigned(b) => Some(b.execution_id),
            Self::TaskStarted(b) => Some(b.execution_id),
            Self::TaskStepCompleted(b) => Some(b.execution_id),
            Self::TaskReleased(b) => Some(b.execution_id),
            Self::TaskCompleted(b) => Some(b.execution_id),
            Self::TaskFailed(b) => Some(b.execution_id),
            Self::TaskLost(b) => Some(b.execution_id),
            Self::TaskTimedOut(b) => b.execution_id,
            Self::TaskFailureAnalysis(b) => Some(b.execution_id),
            Self::RejectedReport(b) => Some(b.execution_id),
            Self::TaskCreated(_)
            | Self::TaskRetryApproved(_)
            | Self::TaskFailedPermanently(_)
            | Self::TaskReplayPlanned(_)
            | Self::TaskRetried(_)
            | Self::TaskCancelRequested(_)
            | Self::TaskCancelled(_)
            | Self::TaskReplayRequested(_)
            | Self::TaskReviewed(_)
            | Self::TaskOverdue(_)
            | Self::TaskSkippedByPolicy(_)
            | Self::WorkerQuarantined(_)
            | Self::WorkerReleased(_)
            | Self::QueuePaused(_)
            | Self::QueueResumed(_)
            | Self::BacklogAlarm(_)
            | Self::OwnershipClaimed(_)
            | Self::OwnershipRenewed(_)
            | Self::RulesActivated(_)
            | Self::LogSealed(_) => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Kind {
    type Err = UnknownKind;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|k| k.as_str() == text).ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// A name that is no kind of this version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a kind of event")]
pub struct UnknownKind(pub String);

impl TaskState {
    /// Whether a run ends here: left only by a replay (invariant 9).
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Success | Self::FailedPermanently | Self::Cancelled => true,
            Self::Created
            | Self::Assigned
            | Self::Executing
            | Self::Failed
            | Self::Lost
            | Self::RetryApproved
            | Self::ReplayPlanned
            | Self::Retrying => false,
        }
    }

    /// Whether an attempt may be running.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Assigned | Self::Executing)
    }
}
