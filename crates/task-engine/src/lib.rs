//! task-engine: may a broken-off task run again? (design.md §5, §10)
//!
//! It folds every record, and when a task is FAILED or LOST the pen is its own: it writes
//! TaskRetryApproved or TaskFailedPermanently. It calls nobody, remembers nothing that the log
//! does not say, and never decides because of an event, only because of the state.

mod config;
pub mod metrics;
mod projection;

use std::sync::Arc;

use event_log::{EventLog, MemberSpec};
use parking_lot::Mutex;
use service_kit::projection::{ProjectionConfig, ProjectionError, run_projection};
use service_kit::{Clock, Entropy, Metrics, Shutdown, Standings};
use verdict_writer::{FoldSource, client_id};

pub use config::{EngineConfig, InvalidConfig, MAX_BACKOFF_CAP_MS};
pub use projection::{Engine, EngineProjection};

/// Name of the service's group.
pub const GROUP: &str = "task-engine";

/// What the engine runs on.
pub struct Deps<L, C> {
    /// The topic.
    pub log: L,
    /// Both clocks.
    pub clock: C,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// Shows how far its folds are.
    pub standings: Standings,
    /// Source of the jitter.
    pub entropy: Box<dyn Entropy>,
    /// Where a partition's fold starts.
    pub source: FoldSource,
}

/// Runs the engine until `shutdown` is requested or it cannot go on.
///
/// # Errors
/// Settings that cannot work, or a log that cannot be read on; an alarm was raised.
pub async fn run<L: EventLog, C: Clock>(
    deps: Deps<L, C>,
    config: EngineConfig,
    shutdown: Shutdown,
) -> Result<(), EngineError> {
    config.check()?;
    let client_id = client_id(GROUP, &config.producer, &config.url);
    let member = MemberSpec { group: GROUP.into(), client_id };
    let loop_config = ProjectionConfig { member, leave_within: config.leave_within };
    let engine = Engine {
        metrics: deps.metrics.clone(),
        entropy: Arc::new(Mutex::new(deps.entropy)),
        source: deps.source,
        config,
    };
    run_projection(deps.log, deps.clock, deps.metrics, deps.standings, engine, loop_config, shutdown).await?;
    Ok(())
}

/// Why the engine ended by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It did not start.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// Its loop cannot go on.
    #[error(transparent)]
    Loop(#[from] ProjectionError),
}

#[cfg(test)]
mod tests;
