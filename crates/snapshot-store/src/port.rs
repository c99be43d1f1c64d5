//! Traits and plain data of the port.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use task_core::{CoreState, HistoryEntry, Row};
use task_events::{Offset, PartitionEpoch, PartitionId, RuleVersion, Sha256Hash, TaskId, Text};

use crate::{EndedPage, EndedSpan, TaskSummary};

/// The row of a task in `task_state_snapshots`: whole, never a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRow {
    /// Judged state; terminal for a closed task.
    pub core: CoreState,
    /// Everything beside it.
    pub row: Arc<Row>,
    /// Offset of the event that closed it; `None` while it is open.
    pub closed_at: Option<Offset>,
}

/// The row of an idempotency key, 24 h.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// SHA-256 over client, 0x00 and key.
    pub key_hash: Sha256Hash,
    /// SHA-256 over the request: another one under the same key is a conflict.
    pub request_hash: Option<Sha256Hash>,
    /// First task of the key.
    pub task_id: TaskId,
    /// Creation time of that task, Unix ms.
    pub created_at: i64,
}

/// One write. Idempotent: the same write again changes nothing, an older one loses. A row clock is that
/// of one record, so the timestamp names the content: two different rows never bear the same one, and
/// which of them would stay is nowhere said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowWrite {
    /// Row clock in µs: the write's timestamp.
    pub timestamp_us: i64,
    /// What is written.
    pub row: RowKind,
}

/// Which table a write goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// `task_state_snapshots`, and with it, all or nothing and at the same timestamp, what it is
    /// found by: `tasks_by_trace` if the caller gave a trace, `tasks_by_business_key` if it gave one; of
    /// a closed task `tasks_by_time`, `failures_by_code` if it ended with a code, and `review_queue` if
    /// somebody must look at it. One that is reviewed or open again leaves `review_queue`.
    Snapshot(SnapshotRow),
    /// `idempotency_keys`.
    Key(KeyRow),
    /// History of a task after its close, or beyond what its row holds; written without reading.
    HistoryOverflow {
        /// Task whose key the record bears.
        task_id: TaskId,
        /// The record and its verdict.
        entry: HistoryEntry,
    },
}

/// Item of `task_payloads`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PayloadItem {
    /// Parameters of the task. The hash is part of the name: an owner that was superseded mints, before it
    /// knows that, the id that its successor mints in the same ms, and must not take away the parameters
    /// that the accepted event names.
    Parameters {
        /// SHA-256 of the bytes, as TaskCreated names it.
        payload_hash: Sha256Hash,
    },
    /// Output of a step, named by its hash as well: so cannot an attempt that was fenced, or a step that
    /// ran again.
    StepOutput {
        /// Step name.
        step: Text,
        /// SHA-256 of the bytes, as the step's event names it.
        output_hash: Sha256Hash,
    },
    /// Result of the task, named by its hash for the same reason as outputs.
    Result {
        /// SHA-256 of the bytes, as the task's last event names it.
        result_data_hash: Sha256Hash,
    },
    /// Whole error text, of which the event holds the first 256 characters.
    ErrorText,
}

/// Name of a checkpoint: two writers of the same state choose the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CheckpointName {
    /// Partition.
    pub partition: PartitionId,
    /// Offset of the next record to fold.
    pub offset: Offset,
    /// Epoch in which it was written.
    pub epoch: PartitionEpoch,
    /// Rules active at the offset.
    pub rule_version: RuleVersion,
    /// State hash at the offset.
    pub state_hash: u128,
}

/// Errors of the port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Away, or no answer in time: the outcome is unknown, and the same call may be repeated.
    #[error("snapshot store is unavailable: {0}")]
    Unavailable(String),
    /// What is stored cannot be what was written: bytes that do not match their checksum, or cannot
    /// be decoded. Named by table and key. Repeating does not help; a row is healed by its next
    /// newer write, instead of a checkpoint an older one is used.
    #[error("snapshot store is damaged: {0}")]
    Damaged(String),
}

impl StoreError {
    /// Whether repeating the call can help.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) => true,
            Self::Damaged(_) => false,
        }
    }
}

/// The snapshot store. Cheap to clone. All calls are idempotent; reads and writes are at
/// LOCAL_QUORUM, so a row that was acknowledged is what the next reader sees.
pub trait SnapshotStore: Clone + Send + Sync + 'static {
    /// Writes rows; `Ok` = all acknowledged. After an error any of them may have been written.
    fn write(
        &self,
        partition: PartitionId,
        rows: Vec<RowWrite>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'static;

    /// Snapshot rows by id, in the order given, an id named twice twice; `None` for what is not
    /// there or has expired.
    fn snapshots(
        &self,
        ids: Vec<TaskId>,
    ) -> impl Future<Output = Result<Vec<Option<SnapshotRow>>, StoreError>> + Send + 'static;

    /// The row of a key.
    fn key(&self, key_hash: Sha256Hash) -> impl Future<Output = Result<Option<KeyRow>, StoreError>> + Send + 'static;

    /// The history of a task beside its row ([`RowKind::HistoryOverflow`]), ascending by offset, each
    /// offset once: records after a close, and those its row has no room for. The whole history is
    /// what the row holds and this, merged by offset: after a replay the row goes on beyond entries
    /// that are here. Both are owed one by one, so an entry may be there before the row it continues.
    /// Lives [`OVERFLOW_TTL_MS`](crate::OVERFLOW_TTL_MS) from its record on.
    fn history_overflow(
        &self,
        task: TaskId,
    ) -> impl Future<Output = Result<Vec<HistoryEntry>, StoreError>> + Send + 'static;

    /// Tasks whose caller gave this trace, the newest first (by id, and so by the time in it), at
    /// most `limit`. Tasks whose trace is their own are not here.
    ///
    /// Listed from the first snapshot row on, while the task is open and for [`LISTING_TTL_MS`] after
    /// its end: longer than the row itself, which may be gone when it is asked for.
    ///
    /// [`LISTING_TTL_MS`]: crate::LISTING_TTL_MS
    fn tasks_by_trace(
        &self,
        trace_id: Text,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<TaskId>, StoreError>> + Send + 'static;

    /// Tasks that this creator gave this business key; all else is as in
    /// [`tasks_by_trace`](Self::tasks_by_trace).
    fn tasks_by_business_key(
        &self,
        creator: Text,
        business_key: Text,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<TaskId>, StoreError>> + Send + 'static;

    /// Tasks that ended, in the order of the span; looks at `limit` entries at most (at least one) and
    /// says how far that was. What is found is the task's last end that was written: one that is open
    /// again is still shown as it ended before. Each lives [`LISTING_TTL_MS`](crate::LISTING_TTL_MS)
    /// after its end.
    fn ended(
        &self,
        span: EndedSpan,
        limit: usize,
    ) -> impl Future<Output = Result<EndedPage, StoreError>> + Send + 'static;

    /// The `tasks_by_time` row of a task: its last end that was written.
    fn ended_task(
        &self,
        task: TaskId,
    ) -> impl Future<Output = Result<Option<TaskSummary>, StoreError>> + Send + 'static;

    /// The secret of this name, shared by all who use the store: the one that is there, else from now
    /// on the proposed one. Never changes, never expires.
    fn secret(
        &self,
        name: &'static str,
        proposed: [u8; 32],
    ) -> impl Future<Output = Result<[u8; 32], StoreError>> + Send + 'static;

    /// Stores payload bytes: primary data, before the event that names their hash. Each item lives
    /// [`PAYLOAD_TTL_MS`](crate::PAYLOAD_TTL_MS) from this write on; of one item named twice the later
    /// bytes stay. `Ok` = all acknowledged; after an error any of them may have been written.
    fn put_payloads(
        &self,
        items: Vec<(TaskId, PayloadItem, Bytes)>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'static;

    /// [`put_payloads`](Self::put_payloads) of one.
    fn put_payload(
        &self,
        task: TaskId,
        item: PayloadItem,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'static {
        self.put_payloads(vec![(task, item, bytes)])
    }

    /// Reads payload bytes, in the order given, an item named twice twice; `None` for what is not
    /// there or has expired. The caller verifies them against the hash in the log.
    fn payloads(
        &self,
        wanted: Vec<(TaskId, PayloadItem)>,
    ) -> impl Future<Output = Result<Vec<Option<Bytes>>, StoreError>> + Send + 'static;

    /// [`payloads`](Self::payloads) of one.
    fn payload(
        &self,
        task: TaskId,
        item: PayloadItem,
    ) -> impl Future<Output = Result<Option<Bytes>, StoreError>> + Send + 'static {
        let found = self.payloads(vec![(task, item)]);
        async move { Ok(found.await?.pop().flatten()) }
    }

    /// Remembers that every row owed below `offset` is acknowledged; never goes back.
    fn put_acked(
        &self,
        partition: PartitionId,
        offset: Offset,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'static;

    /// The offset remembered; 0 when none is.
    fn acked(&self, partition: PartitionId) -> impl Future<Output = Result<Offset, StoreError>> + Send + 'static;

    /// Stores a chunk of a checkpoint under its SHA-256.
    fn put_chunk(
        &self,
        hash: Sha256Hash,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'static;

    /// Reads a chunk; the reader verifies the hash.
    fn chunk(&self, hash: Sha256Hash) -> impl Future<Output = Result<Option<Bytes>, StoreError>> + Send + 'static;

    /// Publishes a checkpoint: its manifest comes last, when all chunks are there. Of those of the
    /// partition the two highest are kept, and the highest of each day of publishing. The same name
    /// again changes nothing.
    fn publish(
        &self,
        name: CheckpointName,
        manifest: Bytes,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'static;

    /// Published checkpoints of a partition, highest offset first, of one offset the newest epoch.
    fn checkpoints(
        &self,
        partition: PartitionId,
    ) -> impl Future<Output = Result<Vec<(CheckpointName, Bytes)>, StoreError>> + Send + 'static;
}
