//! Case 5: a worker that goes on with an attempt that is over, across a restart of the coordinator.
//! Both workers are raw HTTP: the SDK would have stopped by itself.

use std::time::Duration;

use rest_client::Client;
use rustix::process::Signal;
use serde_json::{Value, json};
use task_events::{Sha256Hash, TaskState};

use crate::book::check;
use crate::kit::{DevProcess, flags, request, until};
use crate::raw::{poll, post};

fn beat(worker: &str, of: &Value) -> Value {
    json!({
        "execution_id": of["execution_id"], "exec_epoch": of["exec_epoch"], "attempt_token": of["attempt_token"],
        "worker_id": worker, "incarnation": "7", "memory_usage_percent": 10,
    })
}

fn success(worker: &str, task: &str, of: &Value) -> Value {
    json!({
        "task_id": task, "execution_id": of["execution_id"], "exec_epoch": of["exec_epoch"],
        "attempt_token": of["attempt_token"], "worker_id": worker, "status": "SUCCESS", "result": {"by": worker},
        "execution_time_ms": 5, "memory_usage_percent": 10,
    })
}

async fn assignment(url: &str, worker: &str) -> Value {
    until("an assignment", async || {
        let (status, answer) = post(url, &format!("/coordinator/v1/workers/{worker}/poll"), &poll("t", 2_000)).await;
        assert!(status == 200 || status == 503, "{status}: {answer}");
        answer["assignments"].get(0).cloned()
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_worker_is_fenced_its_report_is_on_record_and_the_other_ones_result_counts() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let mut dev = DevProcess::spawn(&data, "127.0.0.1:0", &flags(3_000), &[]);
    let url = dev.ready();
    let task = Client::new(&url).expect("a URL").create(&request("t", 1), None).await.expect("created").task_id;
    let first = assignment(&url, "a").await;
    let report = |kind: &str| format!("/coordinator/v1/task/{task}/{kind}");
    let (starting, running) = (report("heartbeat?status=STARTING"), report("heartbeat?status=RUNNING"));
    let (status, told) = post(&url, &starting, &beat("a", &first)).await;
    assert_eq!((status, &told["answer"]), (200, &json!("accepted")));
    dev.kill();

    let mut dev = DevProcess::spawn(&data, "127.0.0.1:0", &flags(3_000), &[]);
    let url = dev.ready();
    let client = Client::new(&url).expect("a URL");
    // A says nothing until its lease is over and B has the task.
    let second = assignment(&url, "b").await;
    assert_eq!((&first["exec_epoch"], &second["exec_epoch"]), (&json!(1), &json!(2)));
    let (status, told) = post(&url, &starting, &beat("b", &second)).await;
    assert_eq!((status, &told["answer"]), (200, &json!("accepted")));
    for _ in 0..3 {
        let (status, told) = post(&url, &running, &beat("a", &first)).await;
        assert_eq!((status, &told["code"]), (409, &json!("fenced")), "{told}");
    }
    let (status, told) = post(&url, &report("result"), &success("a", &task.to_string(), &first)).await;
    assert_eq!((status, &told["code"]), (409, &json!("fenced")), "{told}");
    assert_eq!(client.get(task, None).await.expect("a task").status, TaskState::Executing);
    let (status, told) = post(&url, &report("result"), &success("b", &task.to_string(), &second)).await;
    assert_eq!((status, &told["answer"]), (200, &json!("accepted")), "{told}");

    let view = client.get(task, Some(Duration::from_secs(10))).await.expect("a task");
    assert_eq!((view.status, view.exec_epoch), (TaskState::Success, 2));
    let result = client.result(task).await.expect("a result");
    assert_eq!(result.result_data_hash, Sha256Hash::of(br#"{"by":"b"}"#));
    let events = client.events(task).await.expect("its history").events;
    let rejected: Vec<_> =
        events.iter().filter_map(|e| e.event.as_ref()).filter(|e| e["kind"] == "RejectedReport").collect();
    assert_eq!(rejected.len(), 1, "{events:?}");
    assert_eq!(rejected[0]["exec_epoch"], 1, "{rejected:?}");
    dev.signal(Signal::TERM);
    until("its end", async || dev.ended()).await;
    check(&data, &["--complete"]);
}
