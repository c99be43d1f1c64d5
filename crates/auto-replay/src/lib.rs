//! auto-replay: what remains to be done of a broken-off task? (design.md §5, §10)
//!
//! It folds every record, and when a task is RETRY_APPROVED the pen is its own: it writes
//! TaskReplayPlanned from the whole history. Before that the [`Guard`] holds the task's snapshot
//! row against the fold, so that a disagreement of both tracks is found where it matters. A store
//! that is slow or away delays a plan by 5 s at most and holds up nothing else.

mod config;
mod guard;
pub mod metrics;
mod projection;

use event_log::{EventLog, MemberSpec};
use service_kit::projection::{ProjectionConfig, ProjectionError, run_projection};
use service_kit::{Clock, Metrics, Shutdown, Standings};
use snapshot_store::SnapshotStore;
use verdict_writer::{FoldSource, client_id};

pub use config::{InvalidConfig, ReplayConfig};
pub use guard::{Finding, Guard, Opinion};
pub use projection::{Heard, ReplayProjection, Replayer};

/// Name of the service's group.
pub const GROUP: &str = "auto-replay";

/// What the replayer runs on.
pub struct Deps<L, S, C> {
    /// The topic.
    pub log: L,
    /// The snapshot track; read only.
    pub store: S,
    /// Both clocks.
    pub clock: C,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// Shows how far its folds are.
    pub standings: Standings,
    /// Where a partition's fold starts.
    pub source: FoldSource,
}

/// Runs the replayer until `shutdown` is requested or it cannot go on.
///
/// # Errors
/// Settings that cannot work, or a log that cannot be read on; an alarm was raised.
pub async fn run<L: EventLog, S: SnapshotStore, C: Clock>(
    deps: Deps<L, S, C>,
    config: ReplayConfig,
    shutdown: Shutdown,
) -> Result<(), ReplayError> {
    config.check()?;
    let client_id = client_id(GROUP, &config.producer, &config.url);
    let member = MemberSpec { group: GROUP.into(), client_id };
    let loop_config = ProjectionConfig { member, leave_within: config.leave_within };
    let replayer = Replayer {
        store: deps.store,
        clock: deps.clock.clone(),
        metrics: deps.metrics.clone(),
        source: deps.source,
        config,
    };
    run_projection(deps.log, deps.clock, deps.metrics, deps.standings, replayer, loop_config, shutdown).await?;
    Ok(())
}

/// Why the replayer ended by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// It did not start.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// Its loop cannot go on.
    #[error(transparent)]
    Loop(#[from] ProjectionError),
}

#[cfg(test)]
mod tests;
