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
    /// Identity of the server's run and of the sentinel in it: of a server that was restarted or has
    /// forgotten everything it is another one, for each of those who ask.
    pub run_id: String,
    /// Whether the sentinel key of this run was still there; whoever finds it gone sets it again.
    pub sentinel: bool,
}

/// Why a lock server did not do what it was asked for. Nothing is broken by it: the log fences every
/// attempt without any lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockUnavailable {
    /// It did not answer in time, or the connection broke: whether it was done is unknown.
    #[error("the lock server does not answer: {0}")]
    Away(String),
    /// It answered, and will not do this or anything like it until somebody sees to it.
    #[error("the lock server refuses: {0}")]
    Refused(String),
    /// It is well, but what stands under one of these keys is no lock of ours. The other locks of the
    /// same request were served.
    #[error("a lock cannot be used: {0}")]
    Key(String),
}

impl LockUnavailable {
    /// Whether the server as a whole cannot be used, not just one of its keys.
    pub const fn is_server(&self) -> bool {
        match self {
            Self::Away(_) | Self::Refused(_) => true,
            Self::Key(_) => false,
        }
    }
}

/// Assignment locks. Cheap to clone; calls of one owner are pipelined.
pub trait AssignmentLock: Clone + Send + Sync + 'static {
    /// Takes locks for attempts about to be handed out (SET NX; a foreign value is replaced). After an
    /// unknown outcome it may be asked for again: what the same holder has is its own.
    fn take(&self, locks: Vec<Lock>) -> impl Future<Output = Result<Vec<Taken>, LockUnavailable>> + Send + 'static;

    /// Renews the locks of live attempts; one that is gone is set again, and so is one that an earlier
    /// attempt left. A later attempt's lock stays: whoever renews an older one has been superseded and
    /// has not noticed yet. Answers how many locks had been lost: they were not there with this value.
    fn renew(&self, locks: Vec<Lock>) -> impl Future<Output = Result<usize, LockUnavailable>> + Send + 'static;

    /// Releases locks that still hold these values (compare script).
    fn release(
        &self,
        locks: Vec<(TaskId, Holder)>,
    ) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static;

    /// Asks for the server's identity and sets the sentinel key.
    fn server(&self) -> impl Future<Output = Result<ServerState, LockUnavailable>> + Send + 'static;
}
