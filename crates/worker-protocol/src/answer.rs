//! Answers to heartbeats and reports.

use serde::{Deserialize, Serialize};

/// Answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeartbeatAnswer {
    /// The lease is renewed, counted from the sending of the heartbeat.
    Accepted {
        /// Lease, ms.
        lease_ms: u64,
        /// The task's cancel was requested: stop the handler and report.
        cancel_requested: bool,
    },
    /// The attempt is over: stop at once.
    Fenced,
    /// Nobody can answer now; the lease goes on running out.
    Unavailable,
}

/// Answer to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReportAnswer {
    /// It is in the log as accepted.
    Accepted,
    /// It was on record before; as good as accepted.
    Duplicate,
    /// The attempt is over, and no copy of the report can still be accepted (409).
    Fenced,
    /// It rests on a report that is not on record yet: send that one first.
    TooEarly,
    /// Whether it will be accepted is not known (504): send it again.
    OutcomeUnknown,
    /// Nobody can answer now (503): the outbox keeps it.
    Unavailable,
}
