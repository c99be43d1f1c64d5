//! A record as it goes into the fold, and what comes out.

use task_events::{Event, Offset, RecordKey, RuleVersion, TaskId};

use crate::{Closed, CoreState, Reason};

/// An intact record as it was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its offset.
    pub offset: Offset,
    /// LogAppendTime, Unix ms.
    pub broker_ms: i64,
    /// Its key.
    pub key: RecordKey,
    /// What it says.
    pub event: Event,
}

/// What a record did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It counts.
    Accepted(Change),
    /// It changes nothing, but is counted and visible.
    Rejected(Reason),
}

impl Verdict {
    /// The reason, if it was rejected.
    pub const fn rejected(&self) -> Option<Reason> {
        match self {
            Self::Accepted(_) => None,
            Self::Rejected(reason) => Some(*reason),
        }
    }
}

/// What an accepted record changed: reactions are derived from it by the reader's shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A task is open now that was not (created or replayed).
    Opened(TaskId),
    /// An open task moved on.
    Moved(TaskId),
    /// A task is closed and forgotten; the owner owes its rows.
    Closed(Box<Closed>),
    /// The same for readers that keep no rows: the last judged state.
    Forgotten(CoreState),
    /// An annotation of an open task.
    Annotated(TaskId),
    /// A RejectedReport, for a task open or not.
    Reported(TaskId),
    /// A review of a closed task: its row changes, the fold does not.
    Reviewed(Box<Closed>),
    /// About the partition.
    Control(ControlChange),
    /// LogSealed.
    Sealed,
}

/// What an accepted control record changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlChange {
    /// The partition has a new owner.
    Claimed,
    /// The owner is current.
    Renewed,
    /// New rules are valid; `known` says whether this binary can go on.
    RulesActivated {
        /// Which rules.
        version: RuleVersion,
        /// Whether this binary knows them. If not, the reader must leave its group and stop.
        known: bool,
    },
    /// A queue was paused or resumed.
    Queue,
    /// Advisory only.
    Advice,
}
