//! Case 2: thousands of tasks that run when all workers die.

use std::collections::BTreeMap;

use dualtrack::dev::Dev;
use rest_client::Client;
use rest_client::contract::{CreateBatch, ItemOutcome};
use task_events::Kind;

use crate::book::Book;
use crate::kit::{WorkerProcess, request, settings, until};

const TASKS: usize = 5_000;
const PER_BATCH: usize = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_five_thousand_tasks_of_killed_workers_each_attempt_ends_exactly_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut settings = settings(dir.path(), 4, 12_000);
    // Shorter than the lease, so that it is this which ends what was never entered.
    settings.coordinator.not_started_ms = 6_000;
    let mut dev = Dev::start(&settings).expect("it starts");
    dev.ready().await.expect("it is ready");
    let url = dev.urls().remove(0);
    let client = Client::new(&url).expect("a URL");
    let workers: Vec<_> =
        ["a", "b", "c", "d", "e"].map(|id| WorkerProcess::start(&url, id, PER_BATCH as u32, "hang", dir.path())).into();
    for _ in 0..TASKS / PER_BATCH {
        let batch = CreateBatch { tasks: (0..PER_BATCH as u64).map(|n| request("t", n)).collect() };
        let answer = client.create_batch(&batch, None).await.expect("an answer");
        assert!(answer.items.iter().all(|item| item.outcome == ItemOutcome::Created));
    }
    until("all of them with workers", async || {
        let book = Book::read(dev.log()).await;
        // Nine of ten entered: some are killed between hand-out and start.
        let started = book.tasks(Kind::TaskStarted).len() >= TASKS * 9 / 10;
        let live = book.open.values().filter(|state| Book::is_live(**state)).count();
        (started && live == TASKS).then_some(())
    })
    .await;
    // SIGKILL, all of them; the coordinator stays.
    drop(workers);

    let book = until("the end of lease and grace", async || {
        let book = Book::read(dev.log()).await;
        let all = book.open.len() == TASKS;
        (all && !book.open.values().any(|state| Book::is_live(*state))).then_some(book)
    })
    .await;
    let (lost, released) = (book.by_attempt(Kind::TaskLost), book.by_attempt(Kind::TaskReleased));
    let started = book.by_attempt(Kind::TaskStarted);
    let assigned = book.by_attempt(Kind::TaskAssigned);
    assert!(assigned.len() >= TASKS && started.len() >= TASKS * 9 / 10);
    let none = |of: &BTreeMap<_, usize>, attempt| of.get(attempt).copied().unwrap_or(0);
    for attempt in assigned.keys() {
        let ended = (none(&lost, attempt), none(&released, attempt));
        let expected = if started.contains_key(attempt) { (1, 0) } else { (0, 1) };
        assert_eq!(ended, expected, "(lost, released) of {attempt:?}");
    }
    for kind in [Kind::TaskCompleted, Kind::TaskFailed, Kind::TaskTimedOut] {
        assert_eq!(book.accepted(kind).count(), 0, "{kind:?}");
    }
}
