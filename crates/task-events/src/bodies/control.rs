//! Control kinds: fence only, no task (design.md section 4.2). Fields, ranges and docs as in `schemas/task-execution-event.avsc`.

use serde::{Deserialize, Serialize};

use crate::{RuleVersion, Text};

/// A quarantine ends early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReleased {
    /// Who.
    pub worker_id: Text,
    /// Who asked.
    pub actor: Text,
    /// Why, as given.
    pub reason: Text,
}

/// A queue stops handing out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePaused {
    /// Which.
    pub queue: Text,
    /// Who asked.
    pub actor: Text,
    /// Why, as given.
    pub reason: Text,
}

/// A queue goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueResumed {
    /// Which.
    pub queue: Text,
    /// Who asked.
    pub actor: Text,
    /// Why, as given.
    pub reason: Text,
}

/// Too many tasks are overdue to name each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BacklogAlarm {
    /// In this partition.
    pub overdue_per_minute: u64,
    /// Who is waited for.
    pub waiting_for: Text,
    /// In this partition.
    pub open_tasks: u64,
}

/// An instance takes the partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnershipClaimed {
    /// Where its edge answers.
    pub url: Text,
    /// Number of this claim of the process.
    pub claim_attempt: u64,
}

/// The owner shows that it is current.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnershipRenewed {}

/// New rules are valid from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesActivated {
    /// Rule version.
    pub activated: RuleVersion,
}

/// A signed hash over a range of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSealed {
    /// Signed note in C2SP checkpoint form.
    pub note: Text,
}
