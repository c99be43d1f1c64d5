//! What every adapter of the port promises, as tests. An adapter passes when
//! [`conformance_suite!`](crate::conformance_suite) with its [`Harness`] is green; the embedded
//! and the Kafka adapter run the same cases (`tests/embedded.rs`, `tests/kafka.rs`).
//!
//! Cases wait for conditions with a deadline and never for time to pass.

pub mod append;
pub mod broker;
pub mod groups;
pub mod reads;
pub mod storms;

use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use task_events::{Offset, PartitionId};

use crate::{AppendOutcome, EventLog, OutRecord, RawRecord, Tail};

/// Longest that any single wait of a case takes before it fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How a case gets a log, and does to it what no client can. One harness is one empty log.
pub trait Harness: Send + Sync + Sized + 'static {
    /// The adapter under test.
    type Log: EventLog;

    /// A new, empty log with this many partitions. Retention can delete its older records.
    fn start(partitions: u16) -> impl Future<Output = Self> + Send;

    /// The log as the first process sees it.
    fn log(&self) -> Self::Log;

    /// The same log as another process sees it (the embedded log has only one).
    fn other(&self) -> impl Future<Output = Self::Log> + Send;

    /// Appends a record of which any part may be missing, as a foreign writer can.
    fn append_foreign(&self, record: RawRecord) -> impl Future<Output = ()> + Send;

    /// A log handle whose next append is written but whose answer is lost, for whatever reason
    /// the adapter has (a response that never comes back). Later appends through it work again
    /// after [`Harness::heal`].
    fn losing_answers(&self) -> impl Future<Output = Self::Log> + Send;

    /// Ends what [`Harness::losing_answers`] began.
    fn heal(&self) -> impl Future<Output = ()> + Send;

    /// Deletes everything of the partition that is at least a whole unit of retention before
    /// its end; at least offset 0 must go when the case wrote enough.
    fn delete_old(&self, partition: PartitionId) -> impl Future<Output = ()> + Send;
}

/// Instantiates every case for a harness (a type in scope) as a `#[tokio::test]`.
#[macro_export]
macro_rules! conformance_suite {
    ($harness:ty) => {
        $crate::conformance_cases! { $harness;
            append: reads_back_what_was_appended, keeps_the_order_of_calls, offsets_are_contiguous,
                keeps_every_part_of_a_record, keeps_big_records, refuses_what_can_not_be_sent,
                unknown_outcome_is_never_sent_again, two_processes_interleave;
            reads: tail_starts_anywhere, tail_waits_for_records, tail_survives_a_dropped_wait,
                tail_refuses_offsets_outside, tails_are_independent, slow_reader_loses_nothing,
                reads_single_records, finds_offsets_by_time, range_moves, retention_moves_the_start;
            groups: a_single_member_gets_all, members_share_evenly, a_leaving_member_hands_over,
                a_vanished_member_is_replaced, revocation_has_a_deadline, members_are_listed,
                groups_are_independent;
            storms: members_that_come_and_go_settle;
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

/// Waits, but not for ever; `None` after [`PATIENCE`].
#[expect(clippy::disallowed_methods, reason = "the adapters under test run on real time")]
pub async fn in_time<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(PATIENCE, future).await.ok()
}

/// Waits, but not for ever.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match in_time(future).await {
        Some(value) => value,
        None => panic!("nothing within {PATIENCE:?}: {what}"),
    }
}

/// Polls a future once and drops it.
pub async fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        })
    })
    .await
}

/// A record whose value is this text.
pub fn record(text: impl Into<String>) -> OutRecord {
    let headers = vec![("kind", Bytes::from_static(b"Test")), ("rule-version", Bytes::from_static(b"1"))];
    OutRecord { key: Bytes::from_static(b"1"), headers, value: Bytes::from(text.into()) }
}

/// Texts of these records' values.
pub fn texts(records: &[RawRecord]) -> Vec<String> {
    let text = |record: &RawRecord| String::from_utf8_lossy(record.value.as_deref().unwrap_or(b"<none>")).into_owned();
    records.iter().map(text).collect()
}

/// Appends texts as one batch and expects the acknowledgement.
pub async fn append_texts<L: EventLog>(log: &L, partition: PartitionId, range: std::ops::Range<usize>) {
    let batch = range.map(|i| record(format!("r{i}"))).collect();
    let outcome = within("an acknowledgement", log.append(partition, batch)).await;
    assert_eq!(outcome, AppendOutcome::Acknowledged);
}

/// Reads exactly `count` records and checks that their offsets follow each other.
pub async fn read<L: EventLog>(log: &L, partition: PartitionId, from: Offset, count: usize) -> Vec<RawRecord> {
    let mut tail = within("a tail", log.tail(partition, from)).await.expect("tail");
    read_on(&mut tail, from, count).await
}

/// Reads on with an open tail until there are `count` records; there must not be more.
pub async fn read_on<T: Tail>(tail: &mut T, from: Offset, count: usize) -> Vec<RawRecord> {
    let mut out: Vec<RawRecord> = Vec::with_capacity(count);
    while out.len() < count {
        let records = within("records", tail.next()).await.expect("records");
        assert!(!records.is_empty(), "a tail returned nothing instead of waiting");
        out.extend(records);
    }
    assert_eq!(out.len(), count, "more records than were appended");
    for (at, record) in out.iter().enumerate() {
        assert_eq!(record.offset, Offset(from.0 + at as u64), "offsets follow each other");
    }
    out
}
