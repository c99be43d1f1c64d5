//! What an own record was written for, and what waits for something.

use task_core::decide::Draft;
use task_events::{TaskId, Text};

use super::{Answer, Command, Token};

/// A request on its way through the owner.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) token: Token,
    pub(super) command: Command,
}

/// What an own record was written for.
#[derive(Debug)]
pub(super) enum Origin {
    /// A record of a batch whose last one bears the origin.
    Rider,
    /// A request; it gets this answer when the record is read back as accepted, and is decided
    /// anew from the fold when the record is dead.
    Job(Job, Answer),
    /// A create.
    Create(Job, TaskId),
    /// A hand-out to a waiting poll.
    Assign(TaskId),
    /// The owner's own doing: seen again by `pending_work` or a timer when the record is dead.
    Internal,
}

/// A batch to append.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) drafts: Vec<Draft>,
    pub(super) origin: Origin,
}

/// A poll that waits for work.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) token: Token,
    pub(super) worker_id: Text,
    pub(super) poll: worker_protocol::Poll,
    pub(super) until_ms: u64,
}
