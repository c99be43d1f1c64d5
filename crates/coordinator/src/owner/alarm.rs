//! What people are told, and why a reader stops.

use task_events::{Offset, RuleVersion, TaskId};

/// Something people should see; counted by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// Another incarnation owns the partition.
    Superseded,
    /// The outcome of an append is unknown; the partition is claimed again.
    OutcomeUnknown,
    /// A task's records were rejected three times for one reason.
    RejectedRepeatedly(TaskId, task_core::Reason),
    /// Clocks disagree by this many ms; creates are stopped.
    ClockUnsettled(i64),
    /// The lock server is away or refuses; what it said, and what to do.
    LockUnavailable(String),
    /// A key that is no lock stands where a lock should.
    LockUnusable(String),
    /// The store is away.
    StoreUnavailable,
    /// A malformed record.
    Quarantined(Offset, task_events::Malformed),
    /// Two results for one attempt.
    ResultConflict(TaskId),
    /// No accepted record of the partition's owner for 15 s although there is work.
    OwnerSilent,
    /// Somebody else counted up this owner's own epoch; the partition is claimed again.
    OwnerSeqTaken,
    /// A record does not fit the schema and was not written.
    Unwritable(task_events::Kind, String),
}

impl Alarm {
    /// Name it is counted by.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Superseded => "superseded",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::RejectedRepeatedly(..) => "rejected_repeatedly",
            Self::ClockUnsettled(_) => "clock_unsettled",
            Self::LockUnavailable(_) => "lock_unavailable",
            Self::LockUnusable(_) => "lock_unusable",
            Self::StoreUnavailable => "store_unavailable",
            Self::Quarantined(..) => "quarantined",
            Self::ResultConflict(_) => "result_conflict",
            Self::OwnerSilent => "owner_silent",
            Self::OwnerSeqTaken => "owner_seq_taken",
            Self::Unwritable(..) => "unwritable",
        }
    }
}

/// Why a reader stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// It does not know the rules that are active from here on.
    #[error(
        "rules {version} are active at offset {offset}, this binary knows rules up to {known}: \
         install a release that knows them and start it again"
    )]
    UnknownRules {
        /// Active.
        version: RuleVersion,
        /// Where they were activated, or the checkpoint under them.
        offset: Offset,
        /// Newest known.
        known: RuleVersion,
    },
    /// Records are missing.
    #[error("offset {found} follows {expected}: records are missing, the log or its reader is broken")]
    Gap {
        /// Next offset to fold.
        expected: Offset,
        /// Offset that came.
        found: Offset,
    },
    /// Another reader folded the same log to another state.
    #[error("{0}: one of both readers is broken; compare their versions before starting this one again")]
    StateDiffers(task_core::HashDiffers),
}
