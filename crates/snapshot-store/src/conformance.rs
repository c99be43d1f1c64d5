//! What every adapter of the port promises, as tests. An adapter passes when
//! [`conformance_suite!`](crate::conformance_suite) with its [`Harness`] is green, a durable one
//! [`durability_suite!`](crate::durability_suite) besides.

pub mod checkpoints;
pub mod durable;
pub mod ended;
pub mod keys;
pub mod listings;
#[cfg(feature = "cassandra")]
pub mod node;
pub mod payloads;
pub mod rows;
pub mod sharing;

use std::future::Future;
use std::sync::Arc;

use task_core::decide::{self, Draft, NewTask, Stamp};
use task_core::{CoreState, HistoryEntry, PartitionState, Plan, Reason, Record, Row, StepEntry};
use task_events::{
    Body, ErrorCategory, EventSequence, ExecEpoch, ExecutionId, HashForm, Incarnation, Offset, OwnerSeq,
    OwnershipClaimed, PartitionEpoch, PartitionId, Producer, RecordKey, RuleVersion, Sampling, Service, Sha256Hash,
    SkippedStep, StepDone, TaskCreated, TaskId, TaskState, Timeouts, owner_event_id,
};

use crate::{PayloadItem, RowKind, RowWrite, SnapshotRow, SnapshotStore};

/// The time at which every case starts, Unix ms: an hour into a day.
pub const NOW_MS: i64 = 20_833 * crate::DAY_MS + 3_600_000;

/// The partition of most cases.
pub const PARTITION: PartitionId = PartitionId(3);

/// Parameters, as most cases name them; what the hash is of is the caller's affair.
pub const PARAMETERS: PayloadItem = PayloadItem::Parameters { payload_hash: Sha256Hash([6; 32]) };

/// A result, in the same way.
pub const RESULT: PayloadItem = PayloadItem::Result { result_data_hash: Sha256Hash([7; 32]) };

/// How a case gets a store, and does to it what no user of the port can. One harness is one empty
/// store whose clock stands at [`NOW_MS`].
pub trait Harness: Send + Sync + Sized + 'static {
    /// The adapter under test.
    type Store: SnapshotStore;

    /// A new, empty store.
    fn start() -> impl Future<Output = Self> + Send;

    /// A handle on it; all are alike.
    fn store(&self) -> Self::Store;

    /// Sets the store's clock, Unix ms.
    fn set_clock(&self, unix_ms: i64);
}

/// A harness whose store outlives its process.
pub trait Durable: Harness {
    /// Gives the store up and opens it again; the clock goes on from where it stands.
    fn reopen(self) -> impl Future<Output = Self> + Send;
}

/// Instantiates every case for a [`Harness`] (a type in scope) as a `#[tokio::test]`.
#[macro_export]
macro_rules! conformance_suite {
    ($harness:ty) => {
        $crate::conformance_cases! { $harness;
            rows: a_row_comes_back_whole, a_newer_row_replaces_all_of_an_older_one,
                an_older_write_never_takes_a_row_back, the_same_write_again_changes_nothing,
                the_newest_of_one_batch_stays, batches_are_read_in_the_order_asked,
                rows_of_closed_tasks_go_after_thirty_days, a_replayed_task_stays,
                history_beside_the_row_is_kept_by_task_and_offset, history_beside_the_row_outlives_the_row;
            keys: a_key_comes_back, the_newest_row_of_a_key_stays, a_key_goes_after_a_day;
            listings: a_trace_finds_its_tasks_newest_first, a_business_key_finds_the_tasks_of_its_creator,
                names_are_told_apart, a_task_is_listed_until_half_a_year_after_its_end, a_replayed_task_stays_listed,
                a_late_writer_changes_no_life, what_has_expired_takes_no_place;
            ended: ended_tasks_are_listed_page_by_page_in_both_orders, only_the_last_end_counts,
                a_code_finds_the_failures_it_ended, review_waits_until_somebody_decides,
                a_late_writer_brings_nothing_back, an_end_is_known_for_half_a_year, a_secret_stays;
            payloads: items_are_told_apart, a_payload_is_overwritten, several_are_one_write,
                several_are_read_in_the_order_asked, a_payload_goes_sixty_days_after_its_last_write;
            checkpoints: acked_never_goes_back, chunks_lie_under_their_hash, the_highest_comes_first,
                the_two_highest_stay, one_a_day_stays, the_same_name_again_changes_nothing,
                partitions_do_not_see_each_other;
            sharing: clones_are_one_store, writers_on_clones_lose_nothing, rivals_leave_the_newest;
        }
    };
}

/// Instantiates the cases for a [`Durable`] harness (a type in scope) as `#[tokio::test]`s.
#[macro_export]
macro_rules! durability_suite {
    ($harness:ty) => {
        $crate::conformance_cases! { $harness;
            durable: everything_acknowledged_is_there_again, what_was_decided_stays_decided, lives_go_on;
        }
    };
}

/// One test function per case; for [`conformance_suite!`].
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($harness:ty; $($module:ident : $($case:ident),+ ;)+) => {
        $(mod $module {
            use super::*;

            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::conformance::$module::$case::<$harness>().await;
            })+
        })+
    };
}

/// The `n`-th task of a partition.
pub fn task(partition: PartitionId, n: u16) -> TaskId {
    TaskId::from_parts(95_000_000_000, partition, n).expect("parts in range")
}

/// A hash by a number.
pub fn hash(n: u8) -> Sha256Hash {
    Sha256Hash([n; 32])
}

/// The row of a new task, as the fold makes it.
pub fn new_row(id: TaskId) -> SnapshotRow {
    let created = TaskCreated {
        task_type: "resize".into(),
        queue: "images".into(),
        creator: "conformance".into(),
        priority: 4,
        deadline: Some(NOW_MS + 1),
        not_before: None,
        payload_hash: hash(1),
        hash_form: HashForm::PlainSha256,
        payload_ref: Some("仓库/库存.csv".into()),
        business_key: Some("order-7".into()),
        labels: [("team".into(), "a".into())].into_iter().collect(),
        concurrency_key: None,
        timeouts: Timeouts { start_to_close_ms: 60_000, schedule_to_start_ms: Some(5_000) },
        max_retries: 3,
        trace_given: true,
        key_hash: Some(hash(2)),
        request_hash: None,
    };
    let trace_id = "4bf92f3577b34da6a3ce929d0e0e4736".into();
    let partition = id.partition();
    let mut fold = PartitionState::new(partition, true);
    let claim = Body::OwnershipClaimed(OwnershipClaimed { url: "http://a".into(), claim_attempt: 1 });
    let drafts =
        [Draft::control(claim), decide::create(id, NewTask { created, trace_id, sampling: Sampling::default() })];
    for (n, draft) in (0..).zip(drafts) {
        let event = draft.stamped(Stamp {
            event_id: owner_event_id(partition, PartitionEpoch(1), OwnerSeq(n), "coordinator-1", Incarnation(7), 1),
            partition_epoch: Some(PartitionEpoch(1)),
            owner_seq: Some(OwnerSeq(n)),
            event_time: NOW_MS,
            causation_id: None,
            producer: Producer {
                service: Service::Coordinator,
                instance: "coordinator-1".into(),
                incarnation: Incarnation(7),
            },
            rule_version: RuleVersion(1),
        });
        let key = event.task_id.map_or(RecordKey::Control(partition), RecordKey::Task);
        let verdict = fold.apply(&Record { offset: Offset(n), broker_ms: NOW_MS, key, event });
        assert_eq!(verdict.rejected(), None);
    }
    let slot = fold.tasks.get(id).expect("the task is open");
    SnapshotRow { core: slot.core, row: slot.row.clone().expect("rows are kept"), closed_at: None }
}

/// A row with something in every field that can be empty.
pub fn full_row(id: TaskId) -> SnapshotRow {
    let mut snapshot = new_row(id);
    snapshot.core = CoreState {
        state: TaskState::Executing,
        cancel_requested: true,
        closed_by_lost: true,
        assigned_from_retrying: true,
        version: EventSequence(9),
        exec_epoch: ExecEpoch(2),
        execution_id: ExecutionId::new(id, ExecEpoch(2)),
        retry_count: 1,
        lost_count: 2,
        ..snapshot.core
    };
    let done = StepDone { step: "hash".into(), index: 0, output_hash: hash(3), is_idempotent: true };
    let skip = SkippedStep { step: "hash".into(), rule: "completed".into(), evidence: vec![EventSequence(4)] };
    let row = Arc::make_mut(&mut snapshot.row);
    for (offset, rejected) in [(5, None), (900_000_000_000, Some(Reason::StaleEpoch))] {
        row.history.push(HistoryEntry { offset: Offset(offset), rejected });
    }
    *row = Row {
        worker_id: "worker-1".into(),
        handler_version: "v7".into(),
        assigned_at: Some(NOW_MS + 1),
        start_time: Some(NOW_MS + 2),
        started_at: Some(NOW_MS + 3),
        memory_usage_percent: 71,
        error_code: Some("DISK_FULL".into()),
        error_message: Some("no space left, 盘满".into()),
        category: Some(ErrorCategory::Resource),
        failed_step: Some("pack".into()),
        failed_step_idempotent: Some(false),
        steps: vec![StepEntry { done, evidence: EventSequence(4) }],
        plan: Some(Plan { resume_from_step: Some("pack".into()), skip: vec![skip] }),
        not_before: Some(NOW_MS + 4),
        avoid_workers: vec!["worker-2".into()],
        ..row.clone()
    };
    snapshot
}

/// The row of a task that ended at this time, Unix ms.
pub fn closed_row(id: TaskId, state: TaskState, ended_ms: i64) -> SnapshotRow {
    let mut snapshot = full_row(id);
    snapshot.core.state = state;
    snapshot.closed_at = Some(Offset(11));
    let row = Arc::make_mut(&mut snapshot.row);
    row.end_time = Some(ended_ms);
    row.result_data_hash = Some(hash(9));
    snapshot
}

/// A row that tells its version in a field.
pub fn marked_row(id: TaskId, mark: u32) -> SnapshotRow {
    let mut snapshot = new_row(id);
    Arc::make_mut(&mut snapshot.row).memory_usage_percent = mark;
    snapshot
}

/// The write of a row.
pub fn snapshot_write(timestamp_us: i64, row: SnapshotRow) -> RowWrite {
    RowWrite { timestamp_us, row: RowKind::Snapshot(row) }
}

/// Writes rows and expects the acknowledgement.
pub async fn write<S: SnapshotStore>(store: &S, rows: Vec<RowWrite>) {
    store.write(PARTITION, rows).await.expect("written");
}

/// The history beside the row of a task.
pub async fn overflow<S: SnapshotStore>(store: &S, n: u16) -> Vec<HistoryEntry> {
    store.history_overflow(task(PARTITION, n)).await.expect("read")
}

/// Reads one snapshot row.
pub async fn read<S: SnapshotStore>(store: &S, id: TaskId) -> Option<SnapshotRow> {
    let mut rows = store.snapshots(vec![id]).await.expect("read");
    assert_eq!(rows.len(), 1, "one answer for one id");
    rows.pop().flatten()
}
