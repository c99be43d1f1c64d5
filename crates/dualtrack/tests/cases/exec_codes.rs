//! Case 15: exit codes and signals of programs, and a cancelled program that ends well.

use rest_client::Client;
use rest_client::contract::CancelRequest;
use task_events::{Kind, TaskState};

use crate::exec_kit::{ExecWorker, accepted, code, create, ended};
use crate::kit::{DevProcess, flags, request, until};

/// Prints and ends at once: half of them a result, half of them why not.
const QUICK: &str = r#"n=$(cat); if [ $((n % 2)) = 0 ]; then echo "$n"; else echo "something $n" >&2; exit 3; fi"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_printed_last_is_never_lost_however_soon_it_ends() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(6_000), &[]);
    let url = dev.ready();
    let client = Client::new(&url).expect("a URL");
    let worker = ExecWorker::start(&url, dir.path(), "quick", &["--slots", "8", "--no-retry-on", "3"], QUICK);
    let mut tasks = Vec::new();
    for n in 0..300 {
        tasks.push((n, client.create(&request("t", n), None).await.expect("created").task_id));
    }
    for (n, task) in tasks {
        let view = ended(&client, task).await;
        if n % 2 == 0 {
            let result = client.result(task).await.expect("a result").result.expect("JSON");
            assert_eq!(result.get(), n.to_string());
        } else {
            assert_eq!(view.error.expect("an error").message.as_str(), format!("exit code 3: something {n}"));
        }
    }
    worker.nothing_is_left().await;
}

const SCRIPT: &str = r#"p=$(tr -d '"'); case $p in [0-9]*) exit "$p" ;; *) kill -"$p" $$; sleep 60 ;; esac"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exit_codes_and_signals_are_kept_apart_and_retried_as_documented() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(6_000), &[]);
    let url = dev.ready();
    let client = Client::new(&url).expect("a URL");
    let worker = ExecWorker::start(&url, dir.path(), "codes", &["--no-retry-on", "126,127,2,PIPE"], SCRIPT);
    let mut tasks = Vec::new();
    for (payload, expected, attempts) in [
        ("0", "", 1),
        ("1", "EXIT_1", 2),
        ("2", "EXIT_2", 1),
        ("125", "EXIT_125", 2),
        ("126", "EXIT_126", 1),
        ("127", "EXIT_127", 1),
        ("128", "EXIT_128", 2),
        ("130", "EXIT_130", 2),
        ("137", "EXIT_137", 2),
        ("143", "EXIT_143", 2),
        ("255", "EXIT_255", 2),
        ("INT", "SIGINT", 2),
        ("TERM", "SIGTERM", 2),
        ("SEGV", "SIGSEGV", 2),
        ("KILL", "SIGKILL", 2),
        ("PIPE", "SIGPIPE", 1),
    ] {
        tasks.push((create(&client, payload, 1, None).await, payload, expected, attempts));
    }
    for (task, payload, expected, attempts) in tasks {
        let view = ended(&client, task).await;
        if payload == "0" {
            assert_eq!((view.status, view.exec_epoch), (TaskState::Success, 1));
            assert_eq!(client.result(task).await.expect("a result").result.expect("JSON").get(), "null");
        } else {
            assert_eq!(view.status, TaskState::FailedPermanently, "{payload}");
            assert_eq!(code(&view), (expected, attempts), "{payload}");
        }
    }
    worker.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_program_ends_as_cancelled_or_as_success_and_never_as_both() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(6_000), &[]);
    let url = dev.ready();
    let client = Client::new(&url).expect("a URL");
    let script =
        r#"p=$(tr -d '"'); trap 'echo ended; exit '"$p" TERM; : > "$DUALTRACK_TASK_ID"; while :; do sleep 0.05; done"#;
    let worker = ExecWorker::start(&url, dir.path(), "cancelled", &[], script);
    for (payload, expected) in [("0", TaskState::Success), ("7", TaskState::Cancelled)] {
        let task = create(&client, payload, 1, None).await;
        until("a program", async || dir.path().join(task.to_string()).exists().then_some(())).await;
        client.cancel(task, &CancelRequest::default()).await.expect("asked for");
        let view = ended(&client, task).await;
        // Its report comes before the owner's own grace is over.
        assert_eq!(view.status, expected);
        let ends = [Kind::TaskCompleted, Kind::TaskCancelled, Kind::TaskFailedPermanently];
        assert_eq!(accepted(&client, task, &ends).await, 1);
        worker.nothing_is_left().await;
    }
}
