//! Case 16: results, errors and step outputs that are too large, with the worker restarted in between.

use rest_client::Client;
use rest_client::contract::MAX_PAYLOAD_BYTES;
use rustix::process::Signal;
use task_events::{Kind, TaskState};

use crate::exec_kit::{ExecWorker, accepted, code, create, ended};
use crate::kit::{DevProcess, flags, until};
use crate::raw::get;

/// Prints a JSON string of so many bytes, or says so much on stderr, or records such a step. With a file
/// `hold` beside it, it waits until that is gone.
const SCRIPT: &str = r#"fill() { head -c "$1" /dev/zero | tr '\0' a; }
p=$(tr -d '"'); n=${p#*:}
while [ -e hold ]; do : > held; sleep 0.05; done
case $p in
  line:*) printf '"'; fill $((n - 2)); printf '"\n' ;;
  error:*) fill "$n" >&2; exit 9 ;;
  step:*) { printf '{"step":"big","output":"'; fill $((n - 2)); printf '"}\n'; } >&3; read -r reply <&4; sleep 60 ;;
esac"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_is_refused_once_with_its_limit_and_size() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(6_000), &[]);
    let url = dev.ready();
    let client = Client::new(&url).expect("a URL");
    let worker = ExecWorker::start(&url, dir.path(), "sizes", &[], SCRIPT);
    let fits = create(&client, &format!("line:{MAX_PAYLOAD_BYTES}"), 3, None).await;
    assert_eq!(ended(&client, fits).await.status, TaskState::Success);
    let result = client.result(fits).await.expect("a result").result.expect("JSON");
    assert_eq!(result.get().len(), MAX_PAYLOAD_BYTES);
    for (what, size, expected) in [
        ("line", MAX_PAYLOAD_BYTES + 1, "RESULT_TOO_LARGE"),
        ("line", 13 << 20, "RESULT_TOO_LARGE"),
        ("step", 300 << 10, "STEP_OUTPUT_TOO_LARGE"),
        ("step", 13 << 20, "STEP_OUTPUT_TOO_LARGE"),
    ] {
        let task = create(&client, &format!("{what}:{size}"), 3, None).await;
        let view = ended(&client, task).await;
        assert_eq!((view.status, code(&view)), (TaskState::FailedPermanently, (expected, 1)), "{what} {size}");
        let message = view.error.expect("an error").message.to_string();
        // A step of 13 MiB is not read to its end as JSON: the line itself is too long.
        let limit = if what == "step" && size > 1 << 20 { 1 << 20 } else { MAX_PAYLOAD_BYTES };
        assert!(message.contains(&limit.to_string()), "{message}");
        assert!(size > 1 << 20 || message.contains(&size.to_string()), "{message}");
    }
    let task = create(&client, &format!("error:{}", 5 << 20), 0, None).await;
    let view = ended(&client, task).await;
    assert_eq!(code(&view), ("EXIT_9", 1));
    let (status, text) = get(&url, &format!("/coordinator/v1/task/{task}/payload?item=error_text")).await;
    assert_eq!(status, 200);
    assert!(text.len() < MAX_PAYLOAD_BYTES && text.contains("5242880 bytes, of which"), "{} bytes", text.len());
    worker.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_report_of_a_result_too_large_survives_its_worker_and_does_not_hold_up_the_next() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = DevProcess::spawn(&dir.path().join("data"), "127.0.0.1:0", &flags(30_000), &[]);
    let url = dev.ready();
    let client = Client::new(&url).expect("a URL");
    let outbox = dir.path().join("outbox");
    let flags = ["--outbox", outbox.to_str().expect("UTF-8")];
    let mut worker = ExecWorker::start(&url, dir.path(), "again", &flags, SCRIPT);
    let (hold, held) = (dir.path().join("hold"), dir.path().join("held"));
    std::fs::write(&hold, "").expect("a file");
    let task = create(&client, &format!("line:{}", MAX_PAYLOAD_BYTES + 1), 3, None).await;
    until("a program", async || held.exists().then_some(())).await;
    // Nobody answers while the program ends: its report waits in the outbox, and the worker dies.
    dev.signal(Signal::STOP);
    std::fs::remove_file(&hold).expect("gone");
    until("a report that waits", async || {
        let kept = std::fs::read(outbox.join("outbox")).ok()?;
        kept.windows(16).any(|bytes| bytes == b"RESULT_TOO_LARGE").then_some(())
    })
    .await;
    worker.kill();
    dev.signal(Signal::CONT);
    let worker = ExecWorker::start(&url, dir.path(), "again", &flags, SCRIPT);
    let view = ended(&client, task).await;
    assert_eq!((view.status, code(&view)), (TaskState::FailedPermanently, ("RESULT_TOO_LARGE", 1)));
    assert_eq!(accepted(&client, task, &[Kind::TaskFailed]).await, 1);
    assert_eq!(accepted(&client, task, &[Kind::TaskFailedPermanently]).await, 1);
    let next = create(&client, "line:10", 0, None).await;
    assert_eq!(ended(&client, next).await.status, TaskState::Success);
    worker.nothing_is_left().await;
}
