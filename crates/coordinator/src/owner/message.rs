//! What goes into the owner and what comes out: commands and answers, inputs and effects, all data.

mod now;

use std::time::Duration;

use assignment_lock::{Holder, Lock, LockUnavailable, ServerState};
use bytes::Bytes;
use event_log::{AppendOutcome, OutRecord, RawRecord};
use serde::{Deserialize, Serialize};
use snapshot_store::{CheckpointName, KeyRow, PayloadItem, RowWrite, SnapshotRow, StoreError};
use task_core::decide::{NewTask, Refusal, Replay};
use task_events::{
    Offset, PartitionId, ReviewOutcome, RuleVersion, RunNo, Sha256Hash, TaskId, TaskState, Text, TraceParent,
};
use worker_protocol::{Heartbeat, HeartbeatAnswer, Poll, PollAnswer, Report, ReportAnswer};

use super::alarm::{Alarm, Stop};
use super::checkpointing::Checkpoint;
use super::looking::{Look, Looked};
use super::why::WhyFacts;

pub use now::{Fine, Now};

/// Where an answer goes; chosen by the caller, unique while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// An outstanding port call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Idempotency key of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// SHA-256 over client, 0x00 and key.
    pub key_hash: Sha256Hash,
    /// SHA-256 over the request.
    pub request_hash: Sha256Hash,
}

/// A task to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateTask {
    /// Validated content.
    pub task: NewTask,
    /// Its key, if the caller gave one.
    pub key: Option<Key>,
    /// Inline payload, stored before the event that names its hash.
    pub payload: Option<Bytes>,
    /// The span that asks for it; its trace may be another than the task's.
    #[serde(default)]
    pub parent: Option<TraceParent>,
}

/// What the owner can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Create a task in this partition.
    Create(Box<CreateTask>),
    /// Work for a worker.
    Poll(Poll),
    /// A sign of life.
    Heartbeat(Heartbeat),
    /// A report.
    Report(Report),
    /// Cancel a task.
    Cancel {
        /// Task.
        task: TaskId,
        /// Who asks.
        actor: Text,
        /// Why.
        reason: Text,
    },
    /// Open a closed task again.
    Replay {
        /// Task.
        task: TaskId,
        /// What is asked.
        ask: Replay,
    },
    /// A decision about a closed task.
    Review {
        /// Task.
        task: TaskId,
        /// Run that was seen.
        run_no: RunNo,
        /// Decision.
        outcome: ReviewOutcome,
        /// The one that stands and is taken back.
        instead_of: Option<ReviewOutcome>,
        /// Who decided.
        actor: Text,
        /// Free text.
        note: Text,
    },
    /// Read a task.
    Get {
        /// Task.
        task: TaskId,
    },
    /// Read a task once it is terminal, or as it is when the wait is over.
    Await {
        /// Task.
        task: TaskId,
        /// Longest wait, ms; at most [`AWAIT_MAX_MS`].
        wait_ms: u64,
    },
    /// What keeps a task where it is.
    Why {
        /// Task.
        task: TaskId,
    },
    /// Tasks of this partition that the store may not show yet. Whoever wants all of them asks every
    /// owner first and the store's index after that: a row that is acknowledged in between is then
    /// found twice, never missed.
    Find {
        /// By what.
        by: FindBy,
        /// At most so many, the newest ones.
        limit: usize,
    },
    /// Many tasks at once, queues, workers.
    Look(Look),
    /// A worker's quarantine ends, in this partition.
    Release {
        /// Worker.
        worker: Text,
        /// Who asks.
        actor: Text,
        /// Why.
        reason: Text,
    },
    /// Activate acceptance rules in this partition, for good. Whoever asks has made sure that every reader
    /// knows them.
    Activate {
        /// Version.
        version: RuleVersion,
    },
    /// Pause or resume a queue in this partition.
    Queue {
        /// Queue.
        queue: Text,
        /// Pause, else resume.
        pause: bool,
        /// Who asks.
        actor: Text,
        /// Why.
        reason: Text,
    },
}

/// Longest a [`Command::Await`] is kept waiting, whatever it asks for, ms.
pub const AWAIT_MAX_MS: u64 = 60_000;

/// What tasks are found by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FindBy {
    /// Trace.
    Trace(Text),
    /// What the creator calls it.
    BusinessKey {
        /// Creator.
        creator: Text,
        /// Key.
        key: Text,
    },
}

impl Command {
    /// Whether it only reads: asking again is always safe.
    pub const fn is_read(&self) -> bool {
        match self {
            Self::Get { .. } | Self::Await { .. } | Self::Why { .. } | Self::Find { .. } | Self::Look(_) => true,
            Self::Create(_)
            | Self::Poll(_)
            | Self::Heartbeat(_)
            | Self::Report(_)
            | Self::Cancel { .. }
            | Self::Replay { .. }
            | Self::Review { .. }
            | Self::Release { .. }
            | Self::Activate { .. }
            | Self::Queue { .. } => false,
        }
    }

    /// How long its answer may keep waiting on purpose, ms; what an owner needs besides is
    /// [`super::OwnerConfig::request_ms`].
    pub fn patience_ms(&self) -> u64 {
        match self {
            Self::Poll(poll) => poll.wait_ms.min(super::polling::POLL_MAX_MS),
            Self::Await { wait_ms, .. } => (*wait_ms).min(AWAIT_MAX_MS),
            Self::Create(_)
            | Self::Heartbeat(_)
            | Self::Report(_)
            | Self::Cancel { .. }
            | Self::Replay { .. }
            | Self::Review { .. }
            | Self::Get { .. }
            | Self::Why { .. }
            | Self::Find { .. }
            | Self::Look(_)
            | Self::Release { .. }
            | Self::Activate { .. }
            | Self::Queue { .. } => 0,
        }
    }
}

/// Why nobody can answer now; nothing was written, asking again is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Why {
    /// Not (or no longer) the owner, or not proven to be.
    NotOwner,
    /// Rows owed to the store are half of their limit.
    StoreBehind,
    /// The store does not answer.
    StoreUnavailable,
    /// Clocks disagree.
    ClockUnsettled,
    /// Too many records in flight.
    InFlightFull,
    /// The log takes no records.
    LogUnavailable,
    /// The owner is handing over.
    Draining,
    /// The record does not fit the schema: a defect of whoever let the request in.
    Unwritable,
}

/// A task as [`Command::Get`] shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSeen {
    /// Row, open or closed.
    #[serde(with = "crate::forwarding::RowForm")]
    pub row: SnapshotRow,
    /// Next offset to fold when it was read.
    pub as_of: Offset,
}

/// What the owner answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// 201.
    Created {
        /// Task.
        task_id: TaskId,
        /// Creation time, Unix ms.
        created_at: i64,
    },
    /// 200: the key's first task.
    Duplicate {
        /// Task.
        task_id: TaskId,
    },
    /// 409: the key is another request's.
    KeyConflict {
        /// The key's first task.
        task_id: TaskId,
    },
    /// 429.
    BacklogFull {
        /// Limit of open tasks per creator and partition.
        limit: usize,
    },
    /// To a poll.
    Poll(PollAnswer),
    /// To a heartbeat.
    Heartbeat(HeartbeatAnswer),
    /// To a report.
    Report(ReportAnswer),
    /// The cancel request is on record.
    CancelAccepted,
    /// A new run is open.
    Replayed {
        /// Its number.
        run_no: RunNo,
    },
    /// The decision is on record.
    Reviewed,
    /// The queue's state is on record.
    QueueChanged,
    /// A task.
    Task(Box<TaskSeen>),
    /// What keeps a task where it is.
    Why(Box<WhyFacts>),
    /// Tasks, the newest one first.
    Found(Vec<TaskSeen>),
    /// Many tasks at once, queues, workers.
    Looked(Box<Looked>),
    /// The release is on record.
    WorkerReleased,
    /// The rules are active.
    RulesActive,
    /// 409: they are not the newest ones, or this owner does not know them.
    RulesRefused {
        /// Asked for.
        version: RuleVersion,
        /// Active.
        active: RuleVersion,
        /// Newest that this owner knows.
        known: RuleVersion,
    },
    /// 422: the partition that was asked for cannot keep the promise of the concurrency key.
    PlacementConflict {
        /// Partition of the task it shall stand beside.
        beside: PartitionId,
        /// Partition of its concurrency key.
        of_key: PartitionId,
    },
    /// 409: the task is closed.
    TaskClosed {
        /// Its state.
        state: TaskState,
        /// Its last run.
        run_no: RunNo,
    },
    /// 409: the task is open.
    TaskOpen {
        /// Its state.
        state: TaskState,
        /// Its run.
        run_no: RunNo,
    },
    /// 404.
    NotFound,
    /// 410: older than rows are kept.
    Gone,
    /// 409 or 422.
    Refused(Refusal),
    /// 503.
    Unavailable(Why),
    /// 504: final at the next claim; never "failed".
    OutcomeUnknown {
        /// The id the owner minted, for an unkeyed create.
        task_id: Option<TaskId>,
    },
}

impl Answer {
    /// Whether nothing was written and another owner is to be asked.
    pub const fn is_away(&self) -> bool {
        matches!(self, Self::Unavailable(Why::NotOwner | Why::Draining))
    }
}

/// What happens to the owner.
#[derive(Debug)]
pub enum Input {
    /// Records were read.
    Records(Vec<RawRecord>),
    /// An append is settled.
    Appended(Ticket, AppendOutcome),
    /// Locks were asked for.
    LocksTaken(Ticket, Result<(), LockUnavailable>),
    /// The lock server was asked who it is.
    LockServer(Result<ServerState, LockUnavailable>),
    /// Rows were written.
    RowsWritten(Ticket, Result<(), StoreError>),
    /// A snapshot row was read.
    RowRead(Ticket, Result<Option<SnapshotRow>, StoreError>),
    /// A key row was read.
    KeyRead(Ticket, Result<Option<KeyRow>, StoreError>),
    /// Payloads were stored.
    PayloadsStored(Ticket, Result<(), StoreError>),
    /// What checkpoints of the partition are published.
    Checkpoints(Vec<CheckpointName>),
    /// A request.
    Command(Token, Command),
    /// Nobody waits for this answer any more.
    Forget(Token),
    /// Time passed.
    Tick,
    /// The partition is being taken away: settle within the time and say [`Effect::Drained`].
    Drain(Duration),
}

/// What the shell has to do; only while it owns the partition does anything come out.
#[derive(Debug)]
pub enum Effect {
    /// Append a batch.
    Append(Ticket, Vec<OutRecord>),
    /// Take locks; a hand-out waits for the answer.
    TakeLocks(Ticket, Vec<Lock>),
    /// Renew locks; nothing waits.
    RenewLocks(Vec<Lock>),
    /// Release locks; nothing waits.
    ReleaseLocks(Vec<(TaskId, Holder)>),
    /// Ask the lock server who it is.
    AskLockServer,
    /// Write rows.
    WriteRows(Ticket, Vec<RowWrite>),
    /// Read a snapshot row.
    ReadRow(Ticket, TaskId),
    /// Read a key row.
    ReadKey(Ticket, Sha256Hash),
    /// Store payloads.
    StorePayloads(Ticket, Vec<(TaskId, PayloadItem, Bytes)>),
    /// Remember that all rows owed below the offset are acknowledged.
    PutAcked(Offset),
    /// Write and publish a checkpoint; nothing waits.
    Publish(Box<Checkpoint>),
    /// Answer a request.
    Reply(Token, Answer),
    /// Tell people.
    Alarm(Alarm),
    /// The oldest own record that was read back as accepted in this turn, µs since its append.
    ReadBack(u64),
    /// Something is over that was done for a task.
    Span(Box<spans::Span>),
    /// The hand-over is done.
    Drained,
    /// This reader must not go on.
    Stop(Stop),
}
