//! The closed list of rejection reasons. Every reader gives the same one for the same record,
//! because [`crate::PartitionState::apply`] checks in the order of the variants.

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why an intact record changes nothing (design.md §4.2).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason, in the order of the checks.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The name used in histories, metrics and the API.
            pub const fn as_str(self) -> &'static str { match self { $(Reason::$name => $text,)* } }
        }
    };
}

reasons! {
    /// Key missing, not canonical, or not that of the event's subject.
    WrongKey = "wrong_key",
    /// The task belongs to another partition.
    WrongPartition = "wrong_partition",
    /// A claim whose epoch is not current + 1.
    ClaimConflict = "claim_conflict",
    /// An owner kind of another partition epoch.
    StaleEpoch = "stale_epoch",
    /// An owner kind whose owner_seq is not above every accepted one of this epoch.
    StaleOwnerSeq = "stale_owner_seq",
    /// Rules that are not above the active ones.
    RulesNotForward = "rules_not_forward",
    /// A new task whose id is not above the highest accepted one.
    IdOrder = "id_order",
    /// No such open task (closed tasks are forgotten).
    UnknownTask = "unknown_task",
    /// The kind needs a closed task, and this one is open.
    TaskOpen = "task_open",
    /// The carried closed state is not terminal, or the numbers do not continue it.
    CarriedState = "carried_state",
    /// event_sequence does not continue the task's version.
    StaleSequence = "stale_sequence",
    /// Another run than the task's.
    WrongRun = "wrong_run",
    /// exec_epoch or execution_id are not those of the task's attempt.
    WrongAttempt = "wrong_attempt",
    /// The matrix does not allow the kind in this state.
    NotAllowed = "not_allowed",
    /// Not after a cancel request, or only after one.
    CancelRequested = "cancel_requested",
    /// No retry left.
    RetriesExhausted = "retries_exhausted",
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
