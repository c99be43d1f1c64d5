//! The loop of every service that folds the log and writes verdicts into it: join the group, fold
//! each assigned partition to its end, then act while the fold says a subject is ours to move.
//!
//! - **Level-triggered** (design.md §4.7): it acts by what the fold says now, looks again when
//!   something was read back, after a restart and every 5 s, and never because of an event as such.
//! - One undecided verdict per subject. **Nothing is ever sent again**: after an unknown outcome
//!   the subject is decided anew, once the record was read back or after a bounded wait.
//! - One future, no tasks: it may be dropped at any await, which is a crash, and a simulator can
//!   run many of them on one thread.
//!
//! What a subject is, and what may be decided about it, only the [`Projection`] knows.

mod desk;
mod group;
mod live;
mod run;
mod tries;
mod work;

use std::fmt::Debug;

use event_log::{OutRecord, RawRecord};
use futures::future::BoxFuture;
use task_events::{EventId, Offset, PartitionId, RuleVersion};

pub use run::{ProjectionConfig, ProjectionError, run_projection};

use crate::Clock;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// CLOCK_BOOTTIME, ms: waits and deadlines.
    pub boot_ms: u64,
    /// Unix ms: what goes into records.
    pub wall_ms: i64,
}

impl Moment {
    /// Reads both.
    pub fn of(clock: &impl Clock) -> Self {
        Self { boot_ms: clock.boot_ms(), wall_ms: clock.wall_ms() }
    }
}

/// The fold of one partition and the decisions that rest on it.
pub trait Projection: Send + 'static {
    /// What verdicts are about.
    type Subject: Copy + Ord + Debug + Send + 'static;
    /// Answer to a question of [`Projection::questions`].
    type Answer: Send + 'static;

    /// Offset of the next record to fold.
    fn next_offset(&self) -> Offset;

    /// Folds the record at [`Projection::next_offset`]; never fails, but may have to stop.
    ///
    /// # Errors
    /// The reader cannot go on after this record.
    fn fold(&mut self, record: &RawRecord) -> Result<Folded<Self::Subject>, Stop>;

    /// The level of a subject that is ours to move now, else `None`. Levels of one subject rise: a
    /// verdict decided at an older level can no longer be accepted.
    fn pending(&self, subject: Self::Subject) -> Option<u64>;

    /// Every subject that is ours to move, in ascending order.
    fn all_pending(&self) -> Vec<Self::Subject>;

    /// Decides about a subject that is pending. `attempt` counts from 1 per subject and level for as
    /// long as the process lives, for identities that no other attempt of this process has.
    fn decide(&mut self, subject: Self::Subject, attempt: u32, now: Moment) -> Decision;

    /// Questions to others that decisions wait for; each is asked once, when it is returned here.
    /// The loop folds and acts on while they are open.
    fn questions(&mut self, now: Moment) -> Vec<BoxFuture<'static, Self::Answer>>;

    /// Takes an answer in and says which subjects to look at again.
    ///
    /// # Errors
    /// The reader cannot go on after this answer.
    fn answered(&mut self, answer: Self::Answer, now: Moment) -> Result<Vec<Self::Subject>, Stop>;
}

/// Where projections come from.
pub trait Projector: Send {
    /// What it makes.
    type Projection: Projection;

    /// The state to start a partition from: of a checkpoint, or the one before offset 0.
    fn load(&self, partition: PartitionId) -> BoxFuture<'static, Result<Self::Projection, NoStart>>;
}

/// What one record did to the fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folded<S> {
    /// Subject whose level may have changed.
    pub touched: Option<S>,
    /// The record was a verdict of this process.
    pub own: Option<Own<S>>,
}

impl<S> Folded<S> {
    /// Nothing that concerns decisions.
    pub const NOTHING: Self = Self { touched: None, own: None };
}

/// A verdict of this process that was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own<S> {
    /// What it is about.
    pub subject: S,
    /// Its identity.
    pub event_id: EventId,
    /// Why it does not count; `None` = accepted. Equal numbers are equal reasons.
    pub rejected: Option<u32>,
}

/// What to do about a subject now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Append these records in one batch; `verdict` is the identity of the last one, by which the
    /// others stand or fall.
    Write {
        /// Annotations first, then the verdict.
        records: Vec<OutRecord>,
        /// Identity of the verdict.
        verdict: EventId,
    },
    /// Look again at this boot time, or when a question is answered.
    Later(u64),
    /// Nothing, until the fold or the next look says otherwise.
    Nothing,
}

/// Why a partition cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoStart {
    /// Not now: asked again later. The text is for the alarm.
    Later(String),
    /// The reader must not go on.
    Stop(Stop),
}

/// Why a reader cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// Rules were activated that this binary does not know.
    #[error("rules {0} are active, this binary does not know them: install a newer one")]
    UnknownRules(RuleVersion),
    /// Records are missing.
    #[error("offset {expected} is missing, the log goes on at {found}")]
    OffsetGap {
        /// The next one to fold.
        expected: Offset,
        /// The one that was read.
        found: Offset,
    },
    /// The fold is not what it should be.
    #[error("state differs: {0}")]
    StateDiffers(String),
}

#[cfg(test)]
mod tests;
