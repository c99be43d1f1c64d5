//! Case 3: two coordinators, one dead worker, and a retry handler that takes long. Its 30 s are scaled
//! to 6 s, together with the lease (3 s): still twice as long as a lease.

use dualtrack::dev::Dev;
use rest_client::Client;
use task_events::Kind;

use crate::book::{Book, check};
use crate::kit::{WorkerProcess, request, settings, until};

const TASKS: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_death_is_processed_once_by_two_coordinators_however_long_the_retry_takes() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut settings = settings(dir.path(), 4, 3_000);
    settings.dev.instances = 2;
    let mut dev = Dev::start(&settings).expect("it starts");
    dev.ready().await.expect("it is ready");
    let urls = dev.urls();
    let dead = WorkerProcess::start(&urls[0], "dead", TASKS as u32, "hang", dir.path());
    for n in 0..TASKS {
        // By either of them.
        let client = Client::new(&urls[n % 2]).expect("a URL");
        client.create(&request("t", n as u64), None).await.expect("created");
    }
    until("all of them entered", async || {
        (Book::read(dev.log()).await.tasks(Kind::TaskStarted).len() == TASKS).then_some(())
    })
    .await;
    drop(dead);
    let _next = WorkerProcess::start(&urls[1], "next", TASKS as u32, "6000", dir.path());
    let book = until("the end of all of them", async || {
        let book = Book::read(dev.log()).await;
        (book.tasks(Kind::TaskCompleted).len() == TASKS).then_some(book)
    })
    .await;
    let (lost, approved) = (book.by_attempt(Kind::TaskLost), book.by_attempt(Kind::TaskRetryApproved));
    assert_eq!(lost.len(), TASKS);
    assert!(lost.iter().all(|((_, epoch), times)| (*epoch, *times) == (1, 1)), "{lost:?}");
    assert_eq!(approved.values().sum::<usize>(), TASKS);
    assert_eq!(book.tasks(Kind::TaskRetryApproved), book.tasks(Kind::TaskLost));
    assert_eq!(book.accepted(Kind::TaskAssigned).count(), 2 * TASKS, "two attempts each");
    dev.stop().await.expect("a clean end");
    check(&dir.path().join("data"), &["--complete"]);
}
