//! Calls to ports that may be away for a while.

use event_log::LogError;
use service_kit::Clock;
use snapshot_store::StoreError;
use task_events::{Offset, PartitionId, RuleVersion, SUPPORTED_RULES};

/// Wait before a port that is away is asked again, ms.
const PAUSE_MS: u64 = 100;

/// Why a fold cannot start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// For good, or until people act.
    #[error("{0}")]
    Unreadable(String),
    /// The partition's newest checkpoint is judged by rules that this binary does not know.
    #[error(
        "checkpoint at offset {at} of partition {partition} stands under rules {version}, this binary knows rules up to {}: \
         install a release that knows them and start it again",
        SUPPORTED_RULES
    )]
    UnknownRules {
        /// Partition.
        partition: PartitionId,
        /// Offset of the checkpoint; the rules were activated before it.
        at: Offset,
        /// Rules that are active there.
        version: RuleVersion,
    },
    /// A checkpoint whose bytes are intact does not hold the state it was named by: whoever wrote it
    /// folded the log to another state.
    #[error("{0}")]
    StateDiffers(String),
}

/// Waits a moment for a port that is away.
pub async fn pause(clock: &impl Clock) {
    clock.sleep_until(clock.boot_ms().saturating_add(PAUSE_MS)).await;
}

/// Calls until it is answered, for as long as the port is only away.
///
/// # Errors
/// An error that another call cannot mend.
pub async fn patient<T, E: Away, F>(clock: &impl Clock, call: impl Fn() -> F) -> Result<T, LoadError>
where
    F: Future<Output = Result<T, E>>,
{
    loop {
        match call().await {
            Ok(value) => return Ok(value),
            Err(why) if why.is_away() => pause(clock).await,
            Err(why) => return Err(LoadError::Unreadable(why.to_string())),
        }
    }
}

/// Errors of ports, by whether the port is only away for now.
pub trait Away: std::fmt::Display {
    /// Whether the same call may succeed later.
    fn is_away(&self) -> bool;
}

impl Away for LogError {
    fn is_away(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl Away for StoreError {
    fn is_away(&self) -> bool {
        self.is_retryable()
    }
}
