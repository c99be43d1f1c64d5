//! What becomes of programs when their worker dies, stands still, drains, or when the supervisor
//! between them dies.

use rest_client::Client;
use rustix::process::Signal;
use service_kit::{Clock as _, SystemClock};
use task_events::TaskState;

use crate::exec_kit::{ExecWorker, code, create, ended, send};
use crate::kit::{DevProcess, flags, until};

const LEASE_MS: u64 = 3_000;

/// A tree with an orphan and a session of its own: four processes.
const TREE: &str = r#"if [ -e "ran-$DUALTRACK_TASK_ID" ]; then echo 2; exit 0; fi
: > "ran-$DUALTRACK_TASK_ID"
sleep 600 & (sleep 600 &) ; setsid sleep 600 & wait"#;
const PROCESSES: usize = 4;

fn dev(dir: &std::path::Path) -> (DevProcess, String, Client) {
    let mut dev = DevProcess::spawn(&dir.join("data"), "127.0.0.1:0", &flags(LEASE_MS), &[]);
    let url = dev.ready();
    let client = Client::new(&url).expect("a URL");
    (dev, url, client)
}

async fn tree_is_up(worker: &ExecWorker) {
    until("the whole tree", async || (worker.programs() == PROCESSES).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_takes_its_programs_along() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_dev, url, client) = dev(dir.path());
    let mut worker = ExecWorker::start(&url, dir.path(), "killed", &[], TREE);
    let task = create(&client, "", 3, None).await;
    tree_is_up(&worker).await;
    let supervisors = worker.supervisors();
    assert_eq!(supervisors.len(), 1);
    worker.kill();
    until("the end of the tree", async || (worker.programs() == 0).then_some(())).await;
    until("the end of the supervisor", async || (!supervisors[0].is_alive()).then_some(())).await;
    // Another worker does the rest.
    let next = ExecWorker::start(&url, dir.path(), "next", &[], TREE);
    let view = ended(&client, task).await;
    assert_eq!((view.status, view.lost_count), (TaskState::Success, 1));
    next.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_of_a_worker_that_stands_still_end_with_its_lease() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_dev, url, client) = dev(dir.path());
    let worker = ExecWorker::start(&url, dir.path(), "frozen", &[], TREE);
    let task = create(&client, "", 3, None).await;
    tree_is_up(&worker).await;
    worker.signal(Signal::STOP);
    let stopped_at = SystemClock.boot_ms();
    until("the end of the tree", async || (worker.programs() == 0).then_some(())).await;
    let took_ms = SystemClock.boot_ms() - stopped_at;
    assert!(took_ms < LEASE_MS + 500, "{took_ms} ms after the worker was stopped");
    let next = ExecWorker::start(&url, dir.path(), "next", &[], TREE);
    let view = ended(&client, task).await;
    assert_eq!((view.status, view.worker_id.as_deref()), (TaskState::Success, Some("next")));
    // It goes on as if nothing had been.
    worker.signal(Signal::CONT);
    drop(next);
    worker.nothing_is_left().await;
    let again = create(&client, "", 3, None).await;
    tree_is_up(&worker).await;
    client.cancel(again, &Default::default()).await.expect("asked for");
    assert_eq!(ended(&client, again).await.status, TaskState::Cancelled);
    worker.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_supervisor_leaves_behind_is_ended_by_the_worker() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_dev, url, client) = dev(dir.path());
    let worker = ExecWorker::start(&url, dir.path(), "orphaned", &[], TREE);
    let task = create(&client, "", 0, None).await;
    tree_is_up(&worker).await;
    send(worker.supervisors()[0].pid, Signal::KILL);
    let view = ended(&client, task).await;
    assert_eq!(code(&view), ("EXEC_SUPERVISOR_LOST", 1));
    worker.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_worker_reports_what_it_ended_and_a_second_signal_ends_at_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_dev, url, client) = dev(dir.path());
    let mut drained = ExecWorker::start(&url, dir.path(), "drained", &["--drain", "1s"], TREE);
    let task = create(&client, "", 0, None).await;
    tree_is_up(&drained).await;
    drained.signal(Signal::TERM);
    let status = until("its end", async || drained.ended()).await;
    assert_eq!(status.code(), Some(0));
    assert_eq!(drained.programs(), 0, "nothing is left when it has ended");
    let view = ended(&client, task).await;
    assert_eq!(code(&view), ("WORKER_STOPPED", 1));

    let mut hurried = ExecWorker::start(&url, dir.path(), "hurried", &[], TREE);
    create(&client, "", 0, None).await;
    tree_is_up(&hurried).await;
    hurried.signal(Signal::TERM);
    until("that it drains", async || {
        let said = std::fs::read_to_string(dir.path().join("hurried.says")).ok()?;
        said.contains("draining").then_some(())
    })
    .await;
    hurried.signal(Signal::TERM);
    let status = until("its end", async || hurried.ended()).await;
    assert_eq!(status.code(), Some(1));
    assert_eq!(hurried.programs(), 0, "nothing is left when it has ended");
}
