//! Traits and plain data of the port. What is written here is promised by every adapter and
//! checked by the conformance suite.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use task_events::{Event, Malformed, Offset, PartitionId, RecordKey, RecordParts, TraceParent, decode};

/// A record to append: key, value and headers exactly as they go to the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutRecord {
    /// Record key (decimal task id, or `#partition` for control records).
    pub key: Bytes,
    /// Record headers in order; names are ASCII.
    pub headers: Vec<(&'static str, Bytes)>,
    /// Framed Avro value.
    pub value: Bytes,
}

/// A record as it was read back. Nothing about it has been checked yet: any part may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRecord {
    /// Partition it was read from.
    pub partition: PartitionId,
    /// Its offset; contiguous in a healthy log.
    pub offset: Offset,
    /// LogAppendTime of the broker, Unix ms.
    pub broker_ms: i64,
    /// Key; `None` when the record has none.
    pub key: Option<Bytes>,
    /// Headers in order; a header without a value has an empty one.
    pub headers: Vec<(String, Bytes)>,
    /// Value; `None` for a tombstone.
    pub value: Option<Bytes>,
}

impl RawRecord {
    /// What it says, or why every reader quarantines it: the contract's own decoding.
    ///
    /// # Errors
    /// See [`task_events::decode`].
    pub fn event(&self) -> Result<Event, Malformed> {
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
        decode(RecordParts { headers, value: self.value.as_deref() })
    }

    /// Its key as the fold judges it.
    pub fn record_key(&self) -> RecordKey {
        RecordKey::parse(self.key.as_deref())
    }

    /// The span it was written in, if a `traceparent` says so. Whoever wrote it may have made it up.
    pub fn trace_parent(&self) -> Option<TraceParent> {
        TraceParent::of_headers(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_ref())))
    }

    /// CRC32C of the value; 0 without one. Names a record in checkpoints and verdict files.
    pub fn value_crc32c(&self) -> u32 {
        crc32c::crc32c(self.value.as_deref().unwrap_or_default())
    }
}

/// What became of an append. There is no third way to be sure: everything else is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendOutcome {
    /// Every record of the batch is durable. Visibility may come before or after this answer.
    Acknowledged,
    /// No record of the batch was or ever will be written (an error returned by send itself).
    NotSent(String),
    /// Some, all or none of the records may be in the log or may still arrive there. The caller
    /// must claim again (design.md §4.5); the port never sends them a second time by itself.
    Unknown(String),
}

/// Errors of the port; each says what the caller may do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Away for now: try again later, nothing is lost.
    #[error("event log is unavailable: {0}")]
    Unavailable(String),
    /// The offset was deleted by retention or lies beyond the end.
    #[error("offset {offset} of partition {partition} is outside the log's range {start}..{end}")]
    OutOfRange {
        /// Partition asked for.
        partition: PartitionId,
        /// Offset asked for.
        offset: Offset,
        /// First offset that is there.
        start: Offset,
        /// One past the last offset that is there.
        end: Offset,
    },
    /// The stored log is damaged; never skipped, never repaired by guessing.
    #[error("event log is damaged: {file} at byte {position} (offset {offset}): {reason}")]
    Damaged {
        /// File that holds the damage.
        file: String,
        /// Byte position in the file.
        position: u64,
        /// Offset of the damaged entry.
        offset: Offset,
        /// What does not match.
        reason: String,
    },
    /// The configuration of the topic or the directory contradicts the contract: refuse to start.
    #[error("event log refuses to start: {0}")]
    Refused(String),
    /// The member was dropped from its group or has left; join again.
    #[error("no longer a member of group {0}")]
    NotMember(String),
}

/// First and one-past-last offset of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetRange {
    /// Oldest retained offset.
    pub start: Offset,
    /// Offset the next record will get.
    pub end: Offset,
}

/// Who joins a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSpec {
    /// Group name, one per service, e.g. `coordinator`.
    pub group: String,
    /// `service|instance|rules=1-N|url`, visible to every other member (design.md §3).
    pub client_id: String,
}

/// A live member of some group, as the group's coordinator describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberInfo {
    /// Group name.
    pub group: String,
    /// What the member gave as [`MemberSpec::client_id`].
    pub client_id: String,
    /// Partitions it holds now.
    pub partitions: Vec<PartitionId>,
}

/// What happens to a member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembershipEvent {
    /// These partitions are ours from now on.
    Assigned(Vec<PartitionId>),
    /// These partitions will be given away: stop deciding, flush, then call
    /// [`GroupMember::release`] for each. At the deadline they are gone in any case.
    Revoked {
        /// Partitions to give up.
        partitions: Vec<PartitionId>,
        /// Time left, counted from the moment the event was queued.
        deadline: Duration,
    },
    /// These partitions are already somebody else's: drop them without another append.
    Lost(Vec<PartitionId>),
}

/// The topic. Cheap to clone; all clones share connections.
///
/// Futures are cancel safe unless said otherwise; dropping the future of an append makes its
/// outcome unknown to the caller but does not unsend it.
pub trait EventLog: Clone + Send + Sync + 'static {
    /// Reader of one partition.
    type Tail: Tail;
    /// Membership of one group.
    type Member: GroupMember;

    /// Number of partitions, fixed for life.
    fn partition_count(&self) -> u16;

    /// Appends a batch to one partition, in order, contiguous unless other writers interleave.
    /// Batches of one process to one partition keep the order in which this method was *called*
    /// (the call enqueues; the future only waits). A batch is not atomic.
    fn append(
        &self,
        partition: PartitionId,
        batch: Vec<OutRecord>,
    ) -> impl Future<Output = AppendOutcome> + Send + 'static;

    /// Opens a reader at `from`; it needs no group. An offset outside the range is an error, never a reset.
    fn tail(&self, partition: PartitionId, from: Offset) -> impl Future<Output = Result<Self::Tail, LogError>> + Send;

    /// Start and end as of now.
    fn range(&self, partition: PartitionId) -> impl Future<Output = Result<OffsetRange, LogError>> + Send;

    /// The records at exactly these offsets, in the order given.
    fn read_at(
        &self,
        partition: PartitionId,
        offsets: Vec<Offset>,
    ) -> impl Future<Output = Result<Vec<RawRecord>, LogError>> + Send;

    /// First offset whose broker time is at or after `unix_ms`; `None` when there is none yet.
    fn offset_at(
        &self,
        partition: PartitionId,
        unix_ms: i64,
    ) -> impl Future<Output = Result<Option<Offset>, LogError>> + Send;

    /// Joins a group; partitions are shared among its live members.
    fn join(&self, spec: MemberSpec) -> impl Future<Output = Result<Self::Member, LogError>> + Send;

    /// Every live member of every group of this topic.
    fn members(&self) -> impl Future<Output = Result<Vec<MemberInfo>, LogError>> + Send;
}

/// A reader of one partition.
pub trait Tail: Send + 'static {
    /// Waits for at least one record and returns what is there, in offset order, bounded by the
    /// adapter (about 1 MiB). Cancel safe: a dropped call loses no record.
    fn next(&mut self) -> impl Future<Output = Result<Vec<RawRecord>, LogError>> + Send;
}

/// Membership of a group. Dropping it leaves without waiting; the group notices by silence at the
/// latest. A member without partitions (there are more members than partitions) gets no event.
pub trait GroupMember: Send + 'static {
    /// Waits for the next event. Cancel safe. The member's liveness towards the group is kept by
    /// the adapter as long as the process runs (Kafka: a thread of its own; embedded: a task on
    /// the runtime that joined, so a runtime that stands still is dropped).
    ///
    /// # Errors
    /// [`LogError::NotMember`] once the membership is over; what was held was reported lost before.
    fn next(&mut self) -> impl Future<Output = Result<MembershipEvent, LogError>> + Send;

    /// Gives a revoked partition back, after the last append to it is settled. `applied` is the
    /// offset up to which the member has folded; it serves lag metrics only, never a position.
    fn release(&mut self, partition: PartitionId, applied: Offset);

    /// Records how far the member has folded, for lag metrics only.
    fn progress(&mut self, partition: PartitionId, applied: Offset);

    /// Leaves the group so that others take over at once; returns within `deadline`.
    fn leave(self, deadline: Duration) -> impl Future<Output = ()> + Send;
}
