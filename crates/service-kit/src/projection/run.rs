//! Running a member: join, loop, and join again when the group dropped it.

use std::pin::pin;
use std::time::Duration;

use event_log::{EventLog, LogError, MemberSpec};
use task_events::PartitionId;

use super::group::Group;
use super::tries::Tries;
use super::work::{Backoff, Desktop};
use super::{Projector, Stop};
use crate::{Clock, Metrics, Shutdown, Standings};

/// Settings of a projection loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectionConfig {
    /// Group and name of this member.
    pub member: MemberSpec,
    /// Time a clean stop takes at most: appends are settled, then the group is left.
    pub leave_within: Duration,
}

/// Why the loop ended by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionError {
    /// A partition's fold cannot go on.
    #[error("partition {partition} stopped: {stop}")]
    Stopped {
        /// Which.
        partition: PartitionId,
        /// Why.
        stop: Stop,
    },
    /// The log cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Runs a member until `shutdown` is requested or it cannot go on; then it leaves the group. What it
/// holds it shows in `standings`.
///
/// Dropping the future is a crash: nothing is settled, the group notices by silence.
///
/// # Errors
/// See [`ProjectionError`]; an alarm was raised before.
pub async fn run_projection<L, C, J>(
    log: L,
    clock: C,
    metrics: Metrics,
    standings: Standings,
    projector: J,
    config: ProjectionConfig,
    shutdown: Shutdown,
) -> Result<(), ProjectionError>
where
    L: EventLog,
    C: Clock,
    J: Projector,
{
    let mut stop = shutdown.requested();
    let service = config.member.group.clone();
    let desktop = Desktop { log, clock, metrics, service };
    let mut tries = Tries::new();
    loop {
        let joining = pin!(join(&desktop, config.member.clone()));
        let member = match futures::future::select(&mut stop, joining).await {
            futures::future::Either::Left(_) => return Ok(()),
            futures::future::Either::Right((joined, _)) => joined?,
        };
        let mut group = Group::new(desktop.clone(), standings.clone(), &projector, &mut tries);
        match group.run(member, &mut stop, config.leave_within).await {
            Err(ProjectionError::Log(LogError::NotMember(_))) => {}
            ended => return ended,
        }
    }
}

async fn join<L: EventLog, C: Clock>(desktop: &Desktop<L, C>, spec: MemberSpec) -> Result<L::Member, LogError> {
    let mut backoff = Backoff::default();
    loop {
        match desktop.log.join(spec.clone()).await {
            Err(LogError::Unavailable(_) | LogError::NotMember(_)) => desktop.pause(&mut backoff).await,
            joined => return joined,
        }
    }
}
