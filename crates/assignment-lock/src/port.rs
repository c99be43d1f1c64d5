//! Traits and plain data of the port.

use std::fmt;
use std::future::Future;

use task_events::{ExecEpoch, TaskId, Text};

/// Holder of a lock: `worker_id#exec_epoch`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Worker.
    pub worker_id: Text,
    /// Fencing token of the attempt.
    pub exec_epoch: ExecEpoch,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.worker_id, self.exec_epoch)
    }
}

/// A lock to take or to renew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Task; the key is `task:ID:assignee`.
    pub task: TaskId,
    /// Who holds it.
    pub holder: Holder,
    /// Time to live, ms: min(30 s, lease).
    pub ttl_ms: u64,
}

/// Answer to a lock that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is ours.
    Yes,
    /// Somebody else's value was there. The owner's fold shows no live attempt, so it was replaced.
    Replaced,
}

/// What is known of the lock server itself. Absence of locks is evidence of nothing: after the
/// server was away, changed its run id or lost its sentinel key, all leases start anew in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// Identity of the server's run.
    pub run_id: String,
    /// Whether the sentinel key of this run was still there.
    pub sentinel: bool,
}

/// The lock server did not answer in time: whether the lock was taken is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("assignment lock is unavailable: {0}")]
pub struct LockUnavailable(pub String);

/// Assignment locks. Cheap to clone; calls of one owner are pipelined.
pub trait AssignmentLock: Clone + Send + Sync + 'static {
    /// Takes locks for attempts about to be handed out (SET NX EX; a foreign value is replaced).
    fn take(&self, locks: Vec<Lock>) -> impl Future<Output = Result<Vec<Taken>, LockUnavailable>> + Send + 'static;

    /// Renews the locks of live attempts; one that is gone is set again.
    fn renew(&self, locks: Vec<Lock>) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static;

    /// Releases locks that still hold these values (compare script).
    fn release(
        &self,
        locks: Vec<(TaskId, Holder)>,
    ) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static;

    /// Asks for the server's identity and sets the sentinel key.
    fn server(&self) -> impl Future<Output = Result<ServerState, LockUnavailable>> + Send + 'static;
}
