//! What a run came to.

use std::collections::BTreeMap;

use task_core::Reason;

use crate::audit::Finding;
use crate::faults::Tally;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// Seed.
    pub seed: u64,
    /// Records in the log.
    pub records: u64,
    /// Tasks born.
    pub tasks: u64,
    /// Claims by another process than the one before.
    pub takeovers: u64,
    /// Polls of the executor.
    pub polls: u64,
    /// Acts of handlers.
    pub acts: u64,
    /// Virtual µs.
    pub virtual_us: u64,
    /// Requests of clients: ok, fail, unknown.
    pub ops: [u64; 3],
    /// Faults that happened.
    pub tally: Tally,
    /// Rejected records by reason.
    pub rejected: [u64; Reason::ALL.len()],
    /// Malformed records.
    pub quarantined: u64,
    /// Alarms and counters of owners.
    pub counters: BTreeMap<&'static str, u64>,
    /// Hash over every verdict and state.
    pub fingerprint: u128,
    /// The broken promise, if any.
    pub finding: Option<Finding>,
}
