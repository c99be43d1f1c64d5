//! Tasks that ended: by time, by code, and those that wait for somebody's decision.

use std::sync::Arc;

use task_core::Review;
use task_events::{PartitionId, ReviewOutcome, RunNo, TaskId, TaskState};

use super::{Harness, NOW_MS, PARTITION, closed_row, full_row, read, snapshot_write, task, write};
use crate::{DAY_MS, EndedList, EndedPage, EndedSpan, LISTING_TTL_MS, SNAPSHOT_TTL_MS, SnapshotRow, SnapshotStore};

/// A task that ended for good and that people should look at.
pub fn failed(n: u16, code: &str) -> SnapshotRow {
    let mut snapshot = closed_row(task(PARTITION, n), TaskState::FailedPermanently, NOW_MS);
    let row = Arc::make_mut(&mut snapshot.row);
    row.error_code = Some(code.into());
    row.review = Some(Review::Waiting);
    snapshot
}

fn succeeded(n: u16) -> SnapshotRow {
    let mut snapshot = closed_row(task(PARTITION, n), TaskState::Success, NOW_MS);
    Arc::make_mut(&mut snapshot.row).error_code = None;
    snapshot
}

fn of_run(mut snapshot: SnapshotRow, run_no: u32) -> SnapshotRow {
    snapshot.core.run_no = RunNo(run_no);
    snapshot
}

fn decided(mut snapshot: SnapshotRow) -> SnapshotRow {
    Arc::make_mut(&mut snapshot.row).review = Some(Review::Decided(ReviewOutcome::Abandoned));
    snapshot
}

fn open_again(n: u16, run_no: u32) -> SnapshotRow {
    of_run(full_row(task(PARTITION, n)), run_no)
}

/// A whole list of a partition.
pub fn whole(list: EndedList, partition: PartitionId, oldest_first: bool) -> EndedSpan {
    let high = TaskId::from_raw(i64::MAX).expect("an id");
    EndedSpan { list, partition, low: TaskId::ZERO, high, oldest_first }
}

async fn page<S: SnapshotStore>(store: &S, span: EndedSpan, limit: usize) -> EndedPage {
    store.ended(span, limit).await.expect("read")
}

/// Numbers of the tasks of a list of the usual partition, the oldest first.
pub async fn listed<S: SnapshotStore>(store: &S, list: EndedList) -> Vec<u16> {
    let page = page(store, whole(list, PARTITION, true), 1_000).await;
    assert_eq!(page.looked_to, None);
    page.tasks.iter().map(|ended| ended.id.sequence()).collect()
}

fn code(code: &str) -> EndedList {
    EndedList::Code(code.into())
}

/// Every task once, whatever the size of the page; the span bounds it on both sides.
pub async fn ended_tasks_are_listed_page_by_page_in_both_orders<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    assert_eq!(page(&store, whole(EndedList::All, PARTITION, true), 5).await, EndedPage::default());
    let mut rows: Vec<_> = (0..10).map(|n| snapshot_write(1, succeeded(n))).collect();
    rows.push(snapshot_write(1, full_row(task(PARTITION, 10))));
    let other = PartitionId(PARTITION.0 + 1);
    rows.push(snapshot_write(1, closed_row(task(other, 3), TaskState::Cancelled, NOW_MS)));
    write(&store, rows).await;
    for (oldest_first, size) in [(true, 1), (false, 1), (true, 3), (false, 3), (true, 10), (false, 10), (true, 11)] {
        let mut span = EndedSpan {
            low: task(PARTITION, 2),
            high: task(PARTITION, 8),
            ..whole(EndedList::All, PARTITION, oldest_first)
        };
        let mut found = Vec::new();
        loop {
            let page = page(&store, span.clone(), size).await;
            assert!(page.looked_at <= size && page.tasks.len() == page.looked_at, "{page:?}");
            found.extend(page.tasks.iter().map(|ended| ended.id.sequence()));
            let Some(last) = page.looked_to.map(TaskId::raw) else { break };
            let next = |raw| TaskId::from_raw(raw).expect("an id");
            if oldest_first { span.low = next(last + 1) } else { span.high = next(last - 1) }
        }
        let mut expected: Vec<u16> = (2..=8).collect();
        if !oldest_first {
            expected.reverse();
        }
        assert_eq!(found, expected, "{oldest_first} {size}");
    }
    let nothing =
        EndedSpan { low: task(PARTITION, 5), high: task(PARTITION, 4), ..whole(EndedList::All, PARTITION, true) };
    assert_eq!(page(&store, nothing, 5).await, EndedPage::default());
    let elsewhere = page(&store, whole(EndedList::All, other, false), 0).await;
    assert_eq!((elsewhere.tasks.len(), elsewhere.looked_to), (1, None), "a limit of 0 looks at one");
    let (summary, row) = (&elsewhere.tasks[0], read(&store, task(other, 3)).await.expect("a row"));
    assert_eq!((summary.state, summary.completed_at), (TaskState::Cancelled, Some(NOW_MS)));
    assert_eq!((&summary.queue, &summary.labels), (&row.row.created.queue, &row.row.created.labels));
    assert_eq!(store.ended_task(task(other, 3)).await.expect("read").as_ref(), Some(summary));
    assert_eq!(store.ended_task(task(PARTITION, 10)).await, Ok(None), "it is open");
}

/// One row per task; one that is open again is shown as it ended before.
pub async fn only_the_last_end_counts<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    write(&store, vec![snapshot_write(1, failed(1, "A"))]).await;
    write(&store, vec![snapshot_write(2, open_again(1, 2))]).await;
    let ended = store.ended_task(task(PARTITION, 1)).await.expect("read").expect("it ended once");
    assert_eq!((ended.run_no, ended.state), (RunNo(1), TaskState::FailedPermanently));
    write(&store, vec![snapshot_write(3, of_run(succeeded(1), 2))]).await;
    let ended = store.ended_task(task(PARTITION, 1)).await.expect("read").expect("it ended again");
    assert_eq!((ended.run_no, ended.state), (RunNo(2), TaskState::Success));
    assert_eq!(listed(&store, EndedList::All).await, [1]);
}

/// By the code of the last end, whatever the runs before ended with.
pub async fn a_code_finds_the_failures_it_ended<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let rows = [failed(1, "A"), failed(2, "A"), failed(3, "AB"), succeeded(4)];
    write(&store, rows.map(|row| snapshot_write(1, row)).to_vec()).await;
    assert_eq!((listed(&store, code("A")).await, listed(&store, code("AB")).await), (vec![1, 2], vec![3]));
    write(&store, vec![snapshot_write(2, of_run(failed(1, "B"), 2)), snapshot_write(2, of_run(succeeded(2), 2))]).await;
    assert_eq!((listed(&store, code("A")).await, listed(&store, code("B")).await), (vec![], vec![1]));
    assert!(listed(&store, code("")).await.is_empty());
    let looked = page(&store, whole(code("A"), PARTITION, false), 1).await;
    assert_eq!((looked.tasks.len(), looked.looked_at, looked.looked_to), (0, 1, Some(task(PARTITION, 2))));
}

/// Listed from the failure on until it is reviewed or open again; a new failure waits anew.
pub async fn review_waits_until_somebody_decides<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let mut unwanted = failed(5, "A");
    Arc::make_mut(&mut unwanted.row).review = None;
    let rows = [failed(1, "A"), failed(2, "A"), failed(3, "A"), succeeded(4), unwanted];
    write(&store, rows.map(|row| snapshot_write(1, row)).to_vec()).await;
    assert_eq!(listed(&store, EndedList::Review).await, [1, 2, 3]);
    write(&store, vec![snapshot_write(2, decided(failed(1, "A"))), snapshot_write(2, open_again(2, 2))]).await;
    assert_eq!(listed(&store, EndedList::Review).await, [3]);
    write(&store, vec![snapshot_write(3, of_run(failed(2, "B"), 2))]).await;
    assert_eq!(listed(&store, EndedList::Review).await, [2, 3]);
    write(&store, vec![snapshot_write(4, of_run(succeeded(2), 3))]).await;
    assert_eq!(listed(&store, EndedList::Review).await, [3]);
    assert_eq!(listed(&store, EndedList::All).await, [1, 2, 3, 4, 5], "reviewed tasks stay in the archive");
}

/// Entries follow the timestamps of their rows.
pub async fn a_late_writer_brings_nothing_back<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    write(&store, vec![snapshot_write(9, decided(failed(1, "A"))), snapshot_write(9, open_again(2, 2))]).await;
    write(&store, vec![snapshot_write(8, failed(1, "B")), snapshot_write(8, failed(2, "A"))]).await;
    assert!(listed(&store, EndedList::Review).await.is_empty());
    assert_eq!((listed(&store, code("A")).await, listed(&store, code("B")).await), (vec![1, 2], vec![]));
}

/// Half a year after the end, long after the row.
pub async fn an_end_is_known_for_half_a_year<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    write(&store, vec![snapshot_write(1, failed(1, "A"))]).await;
    h.set_clock(NOW_MS + SNAPSHOT_TTL_MS + DAY_MS);
    assert_eq!(read(&store, task(PARTITION, 1)).await, None);
    h.set_clock(NOW_MS + LISTING_TTL_MS - 1);
    for list in [EndedList::All, code("A"), EndedList::Review] {
        assert_eq!(listed(&store, list.clone()).await, [1], "{list:?}");
    }
    h.set_clock(NOW_MS + LISTING_TTL_MS);
    for list in [EndedList::All, code("A"), EndedList::Review] {
        assert!(listed(&store, list.clone()).await.is_empty(), "{list:?}");
    }
    assert_eq!(store.ended_task(task(PARTITION, 1)).await, Ok(None));
}

/// The first proposal of a name is its secret for good.
pub async fn a_secret_stays<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let (one, two) = tokio::join!(store.secret("a", [1; 32]), store.secret("a", [2; 32]));
    let one = one.expect("stored");
    assert_eq!(two, Ok(one), "two at once agree");
    h.set_clock(NOW_MS + 10_000 * DAY_MS);
    assert_eq!(h.store().secret("a", [3; 32]).await, Ok(one));
    assert_eq!(store.secret("b", [4; 32]).await, Ok([4; 32]));
}
