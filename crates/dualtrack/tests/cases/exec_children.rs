//! Case 14: what programs leave behind. Numbers are those of the case; the tasks that run into their
//! time limit have 50 slots, since on 4 they would take 250 s.

use rest_client::Client;
use task_events::TaskState;

use crate::exec_kit::{ExecWorker, code, create, ended};
use crate::kit::{DevProcess, flags};

const EACH: usize = 200;
const START_TO_CLOSE_MS: u64 = 5_000;
/// Of `worker exec`, unless it is told otherwise.
const GRACE_MS: u64 = 5_000;

const SCRIPT: &str = r#"case $(cat) in
  '"child"') sleep 600 & echo '{"ok":1}' ;;
  '"session"') setsid sleep 600 & echo '{"ok":1}' ;;
  '"waits"') sleep 600 & wait ;;
  '"deaf"') trap '' TERM; sleep 600 & wait ;;
esac"#;

async fn leaves_nothing_behind(worker: ExecWorker, client: &Client, each: usize) {
    let mut size = None;
    for n in 0..each {
        let tasks = [create(client, "child", 0, None).await, create(client, "session", 0, None).await];
        for task in tasks {
            let view = ended(client, task).await;
            assert_eq!((view.status, code(&view)), (TaskState::Success, ("", 1)));
            let ran_ms = view.end_time.expect("ended") - view.start_time.expect("started");
            assert!(ran_ms < 5_000, "at once, not after its child: {ran_ms} ms");
            assert_eq!(client.result(task).await.expect("a result").result.expect("JSON").get(), r#"{"ok":1}"#);
        }
        if n == each / 4 {
            worker.nothing_is_left().await;
            size = Some(worker.size());
        }
    }
    worker.nothing_is_left().await;
    let (size, (threads, descriptors)) = (size.expect("a size"), worker.size());
    assert!(threads <= size.0 + 1 && descriptors <= size.1 + 2, "{size:?} before, {threads} and {descriptors} after");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_that_outlive_their_program_are_ended_with_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(6_000), &[]);
    let url = dev.ready();
    let client = Client::new(&url).expect("a URL");
    let worker = ExecWorker::start(&url, dir.path(), "plain", &["--slots", "4"], SCRIPT);
    leaves_nothing_behind(worker, &client, EACH).await;
    match ExecWorker::start_as_init(&url, dir.path(), "init", &["--slots", "4"], SCRIPT) {
        Some(worker) => leaves_nothing_behind(worker, &client, EACH / 4).await,
        None => eprintln!("this machine gives no process namespace: the worker as process 1 was not tried"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_waits_for_its_child_ends_at_its_time_limit_and_grace() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(6_000), &[]);
    let url = dev.ready();
    let client = Client::new(&url).expect("a URL");
    let worker = ExecWorker::start(&url, dir.path(), "limited", &["--slots", "50"], SCRIPT);
    let mut tasks = Vec::new();
    for n in 0..EACH {
        // One in ten does not heed SIGTERM.
        let script = if n % 10 == 0 { "deaf" } else { "waits" };
        tasks.push(create(&client, script, 0, Some(START_TO_CLOSE_MS)).await);
    }
    for task in tasks {
        let view = ended(&client, task).await;
        assert_eq!((view.status, code(&view)), (TaskState::FailedPermanently, ("TIMEOUT_START_TO_CLOSE", 1)));
        let ran_ms = view.end_time.expect("ended") - view.start_time.expect("started");
        // Two cores, fifty shells: a second for the way.
        let limit_ms = i64::try_from(START_TO_CLOSE_MS + GRACE_MS).expect("small") + 1_000;
        assert!((5_000 - 50..limit_ms).contains(&ran_ms), "{ran_ms} ms");
    }
    worker.nothing_is_left().await;
}
