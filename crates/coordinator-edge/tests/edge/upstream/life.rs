//! A task from its creation to its replay, as its creator sees it.

use reqwest::Method;
use serde_json::json;

use crate::upstream::kit::alone;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_creation_to_replay() {
    let (_world, one) = alone().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let headers = [("content-type", "application/json"), ("traceparent", &*parent)];
    let body =
        json!({"task_type": "t", "payload": {"n": 1}, "business_key": "order 1/2", "creator": "shop"}).to_string();
    let got = one.send(Method::POST, "/api/v1/task/create", &headers, body).await;
    assert_eq!(got.status, 201, "{got:?}");
    let id = got.body["task_id"].as_str().expect("a text").to_owned();
    let task = format!("/api/v1/task/{id}");
    let seen = one.get(&task).await;
    assert_eq!((&seen.body["status"], &seen.body["trace_id"]), (&json!("CREATED"), &json!(trace)));
    for path in [format!("/api/v1/trace/{trace}"), "/api/v1/business/order%201%2F2?creator=shop".to_owned()] {
        let found = one.get(&path).await;
        assert_eq!((found.status, &found.body["tasks"][0]["task_id"]), (200, &json!(id)), "{found:?}");
    }
    assert_eq!(one.get("/api/v1/business/order%201%2F2").await.body["tasks"], json!([]), "another creator's");
    let why = one.get(&format!("{task}/why")).await;
    assert_eq!((&why.body["fact"], &why.body["waits_for"]), (&json!("no_worker"), &json!("worker")), "{why:?}");
    assert!(why.body["text"].as_str().is_some_and(|text| text.contains("no worker has polled this queue")), "{why:?}");
    one.get(&format!("{task}/result")).await.is_problem("no_result");

    let waiting = format!("{task}?wait=30s");
    let waits = one.get(&waiting);
    let works = async {
        let handed = one.poll("t").await;
        let assignment = handed.body["assignments"][0].clone();
        assert_eq!(assignment["task_id"], id, "{handed:?}");
        let why = one.get(&format!("{task}/why")).await;
        assert_eq!(why.body["fact"], "not_started", "{why:?}");
        assert!(why.body["text"].as_str().is_some_and(|t| t.contains("attempt 1 on worker \"w\"")), "{why:?}");
        one.finish(&assignment, r#"{ "sum":0.10000000000000000555}"#).await;
    };
    let (waited, ()) = futures::join!(waits, works);
    assert_eq!(waited.body["status"], "SUCCESS", "{waited:?}");
    let result = one.get(&format!("{task}/result")).await;
    assert!(result.text.contains(r#""result":{ "sum":0.10000000000000000555}"#), "{}", result.text);
    assert_eq!(result.body["result_data_hash"], waited.body["result_data_hash"]);

    let events = one.get(&format!("{task}/events")).await;
    let kinds: Vec<_> = events.body["events"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| (event["verdict"].as_str().expect("a text"), event["event"]["kind"].as_str().expect("a text")))
        .collect();
    let accepted = ["TaskCreated", "TaskAssigned", "TaskStarted", "TaskCompleted"].map(|kind| ("accepted", kind));
    assert_eq!(kinds, accepted);
    assert_eq!(events.body["deleted"], json!([]));
    assert_eq!(one.get(&format!("{task}/why")).await.body["fact"], "succeeded");

    // No body, also by a client that names a type all the same.
    one.post(&format!("{task}/cancel"), "").await.is_problem("task_closed");
    let closed = one.send(Method::POST, &format!("{task}/cancel"), &[], "").await;
    closed.is_problem("task_closed");
    assert_eq!((closed.status, &closed.body["state"], &closed.body["run_no"]), (409, &json!("SUCCESS"), &json!(1)));
    let other = one.post(&format!("{task}/replay"), r#"{"run_no":2}"#).await;
    other.is_problem("run_mismatch");
    assert_eq!(other.body["run_no"], 1);
    let step = r#"{"run_no":1,"from":"STEP","from_step":"none"}"#;
    one.post(&format!("{task}/replay"), step).await.is_problem("unknown_step");
    let replayed = one.post(&format!("{task}/replay"), r#"{"run_no":1,"from":"START","reason":"again"}"#).await;
    assert_eq!((replayed.status, &replayed.body["run_no"]), (202, &json!(2)), "{replayed:?}");
    let why = one.get(&format!("{task}/why")).await;
    assert_eq!((&why.body["fact"], &why.body["waits_for"]), (&json!("plan_awaited"), &json!("auto-replay")), "{why:?}");
    let cancelled = one.post(&format!("{task}/cancel"), r#"{"actor":"me","reason":"no"}"#).await;
    assert_eq!(cancelled.status, 202, "{cancelled:?}");
    let ended = one.get(&format!("{task}?wait=10s")).await;
    assert_eq!((&ended.body["status"], &ended.body["run_no"]), (&json!("CANCELLED"), &json!(2)));

    let later = service_kit::Clock::wall_ms(&service_kit::SystemClock) + 60_000;
    let id = one.task(json!({"task_type": "t", "payload": 1, "not_before": later})).await;
    let why = one.get(&format!("/api/v1/task/{id}/why")).await;
    assert_eq!((&why.body["fact"], why.body["until"].as_i64().is_some()), (&json!("delayed"), true), "{why:?}");
    let soon = one.get(&format!("/api/v1/task/{id}?wait=100ms")).await;
    assert_eq!((soon.status, &soon.body["status"]), (200, &json!("CREATED")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_tells_of_progress() {
    let (_world, one) = alone().await;
    assert_eq!(one.get("/healthz").await.status, 200);
    let ready = one.get("/readyz").await;
    assert_eq!((ready.status, &ready.body["partitions"]["1"]["owning"]), (200, &json!(true)), "{ready:?}");
    let metrics = one.get("/metrics").await;
    assert!(metrics.kind.starts_with("text/plain; version=0.0.4"));
    assert!(
        metrics.text.contains("dualtrack_partition_owning{service=\"coordinator\",partition=\"0\"} 1\n"),
        "{}",
        metrics.text
    );
}
