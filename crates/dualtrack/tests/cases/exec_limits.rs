//! Limits of programs, and workers that end by themselves.

use rest_client::Client;
use task_events::TaskState;

use crate::exec_kit::{ExecWorker, code, create, ended};
use crate::kit::{DevProcess, flags, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_takes_too_long_or_too_much_is_ended_with_all_that_it_started() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(6_000), &[]);
    let url = dev.ready();
    let client = Client::new(&url).expect("a URL");
    // `tail` keeps what has no line's end: its memory grows in a child of the program.
    let script = r#"case $(cat) in '"long"') sleep 600 & wait ;; '"much"') head -c 200M /dev/zero | tail; sleep 600 ;; *) echo 1 ;; esac"#;
    let limits = ["--time-limit", "2s", "--memory-limit", "64MiB", "--grace", "1s"];
    let worker = ExecWorker::start(&url, dir.path(), "limited", &limits, script);
    for (payload, expected) in [("long", "TIME_LIMIT"), ("much", "MEMORY_LIMIT"), ("little", "")] {
        let view = ended(&client, create(&client, payload, 0, None).await).await;
        let status = if expected.is_empty() { TaskState::Success } else { TaskState::FailedPermanently };
        assert_eq!((view.status, code(&view)), (status, (expected, 1)), "{payload}: {:?}", view.error);
        if let Some(error) = view.error {
            let limit = if payload == "long" { "2000 ms" } else { "67108864" };
            assert!(error.message.contains(limit), "{error:?}");
        }
        worker.nothing_is_left().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_ends_after_so_many_tasks_and_leaves_the_rest() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(6_000), &[]);
    let url = dev.ready();
    let client = Client::new(&url).expect("a URL");
    let mut tasks = Vec::new();
    for n in 0..5 {
        tasks.push(create(&client, &n.to_string(), 0, None).await);
    }
    let mut worker = ExecWorker::start(&url, dir.path(), "three", &["--max-tasks", "3", "--slots", "2"], "cat");
    let status = until("its end", async || worker.ended()).await;
    assert!(status.success(), "{status}");
    let mut done = 0;
    for task in &tasks {
        let view = client.get(*task, None).await.expect("a task");
        done += usize::from(view.status == TaskState::Success);
        assert!(matches!(view.status, TaskState::Success | TaskState::Created), "{view:?}");
    }
    assert_eq!(done, 3);
    // The rest goes to one that ends once nothing is left.
    let mut rest = ExecWorker::start(&url, dir.path(), "rest", &["--until-idle", "1s"], "cat");
    let status = until("its end", async || rest.ended()).await;
    assert!(status.success(), "{status}");
    for task in tasks {
        assert_eq!(client.get(task, None).await.expect("a task").status, TaskState::Success);
    }
}
