//! What every endpoint refuses, and how.

use reqwest::Method;
use serde_json::json;

use crate::upstream::kit::alone;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_or_cannot_be_read_is_a_problem() {
    let (_world, one) = alone().await;
    let id = one.task(json!({"task_type": "t", "payload": 1})).await;
    for path in ["/", "/api/v1/task", "/api/v1/task/create/x", "/api/v2/task/create", "/internal/v1/other"] {
        one.get(path).await.is_problem("no_such_path");
    }
    for (method, path) in [
        (Method::DELETE, "/api/v1/task/create".to_owned()),
        (Method::POST, format!("/api/v1/task/{id}")),
        (Method::GET, format!("/api/v1/task/{id}/cancel")),
        (Method::PUT, "/metrics".to_owned()),
    ] {
        let got = one.send(method, &path, &[], "").await;
        got.is_problem("method_not_allowed");
        assert!(got.allow.is_some(), "{got:?}");
    }
    for (path, kind) in [
        ("/api/v1/task/create".to_owned(), "text/plain"),
        ("/api/v1/task/create-batch".to_owned(), "application/x-www-form-urlencoded"),
        (format!("/api/v1/task/{id}/replay"), "application/xml"),
        (format!("/api/v1/task/{id}/cancel"), "text/json"),
    ] {
        one.send(Method::POST, &path, &[("content-type", kind)], "{}").await.is_problem("unsupported_media_type");
        one.send(Method::POST, &path, &[], "{}").await.is_problem("unsupported_media_type");
    }
    for bad in ["0", "-1", "007", "1e3", "abc", "9223372036854775808", "%ff"] {
        for what in ["", "/events", "/why", "/result"] {
            one.get(&format!("/api/v1/task/{bad}{what}")).await.is_problem("invalid_parameter");
        }
        for what in ["cancel", "replay"] {
            one.post(&format!("/api/v1/task/{bad}/{what}"), r#"{"run_no":1}"#).await.is_problem("invalid_parameter");
        }
    }
    // A young id nobody minted, and one of a partition that there is not.
    let young: i64 = id.parse::<i64>().expect("a number") + 4_000;
    let nowhere: i64 = id.parse::<i64>().expect("a number") | (1023 << 12);
    for unknown in [young, nowhere] {
        for what in ["", "/events", "/why", "/result"] {
            one.get(&format!("/api/v1/task/{unknown}{what}")).await.is_problem("task_unknown");
        }
        one.post(&format!("/api/v1/task/{unknown}/cancel"), "{}").await.is_problem("task_unknown");
        one.post(&format!("/api/v1/task/{unknown}/replay"), r#"{"run_no":1}"#).await.is_problem("task_unknown");
    }
    one.get("/api/v1/task/5").await.is_problem("replay_window_over");
    for query in ["wait=61s", "wait=-1", "wait=1s&wait=2s", "wait=", "wat=1s"] {
        one.get(&format!("/api/v1/task/{id}?{query}")).await.is_problem("invalid_parameter");
    }
    for path in [
        format!("/api/v1/task/{id}/why?x=1"),
        "/api/v1/trace/abc".to_owned(),
        format!("/api/v1/trace/{}", "0".repeat(32)),
        "/api/v1/business/k?creator=".to_owned(),
    ] {
        let got = one.get(&path).await;
        assert!(got.status == 400 || got.status == 422, "{path}: {got:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_beyond_their_limits_are_named() {
    let (_world, one) = alone().await;
    let long = "n".repeat(257);
    for (body, field) in [
        (json!({"task_type": "", "payload": 1}), "/task_type"),
        (json!({"task_type": long, "payload": 1}), "/task_type"),
        (json!({"task_type": "a\nb", "payload": 1}), "/task_type"),
        (json!({"task_type": "t", "payload": 1, "queue": ""}), "/queue"),
        (json!({"task_type": "t", "payload": 1, "creator": long}), "/creator"),
        (json!({"task_type": "t", "payload": 1, "labels": {"a/b": long}}), "/labels/a~1b"),
        (json!({"task_type": "t", "payload": 1, "trace_id": "abc"}), "/trace_id"),
        (json!({"task_type": "t", "payload": 1, "same_partition_as": "x"}), "/same_partition_as"),
        (json!({"task_type": "t", "payload": 1, "idempotency_key": "x"}), "/idempotency_key"),
        (json!({"task_type": "t", "payload": 1, "payload_ref": "x"}), "/payload_ref"),
        (json!({"task_type": "t", "payload_ref": "x"}), "/payload_hash"),
        (json!({"task_type": "t", "payload_ref": "x", "payload_hash": "y"}), "/payload_hash"),
        (json!({"task_type": "t"}), "/payload"),
        (json!({"payload": 1}), "/task_type"),
        (json!({"task_type": 1, "payload": 1}), "/task_type"),
        (json!([]), ""),
        (json!(["t", {"x": 1}, null, null, "q"]), ""),
        (json!(null), ""),
    ] {
        one.create(body.to_string()).await.is_problem("invalid_field").at(field);
    }
    let got = one.post("/api/v1/task/create-batch", r#"{"tasks":[["t",1],{"task_type":"t","payload":1}]}"#).await;
    assert_eq!((&got.body["items"][0]["status"], &got.body["items"][1]["status"]), (&json!(422), &json!(201)));
    assert_eq!(got.body["items"][0]["problem"]["detail"], "/tasks/0 is an array, it must be an object");
    let labels: serde_json::Map<_, _> = (0..33).map(|n| (format!("l{n}"), json!("v"))).collect();
    one.create(json!({"task_type": "t", "payload": 1, "labels": labels}).to_string())
        .await
        .is_problem("invalid_field")
        .at("/labels");
    let id = one.task(json!({"task_type": "t", "payload": 1})).await;
    for (body, field) in [
        (json!({"run_no": 0}), "/run_no"),
        (json!({}), "/run_no"),
        (json!({"run_no": 1, "from": "STEP"}), "/from_step"),
        (json!({"run_no": 1, "from_step": "s"}), "/from_step"),
        (json!({"run_no": 1, "from": "HERE"}), "/from"),
        (json!({"run_no": 1, "reason": "r".repeat(1025)}), "/reason"),
    ] {
        one.post(&format!("/api/v1/task/{id}/replay"), body.to_string()).await.is_problem("invalid_field").at(field);
    }
    one.post(&format!("/api/v1/task/{id}/cancel"), r#"{"actor":""}"#).await.is_problem("invalid_field").at("/actor");
    one.post(&format!("/api/v1/task/{id}/cancel"), r#"{"who":""}"#).await.is_problem("unknown_field").at("/who");
    let other = one.task(json!({"task_type": "t", "payload": 1, "concurrency_key": "k"})).await;
    let partition = |id: &str| (id.parse::<i64>().expect("a number") >> 12) & 1023;
    let away = other.parse::<i64>().expect("a number") ^ (1 << 12);
    let conflict =
        json!({"task_type": "t", "payload": 1, "concurrency_key": "k", "same_partition_as": away.to_string()});
    let got = one.create(conflict.to_string()).await;
    got.is_problem("placement_conflict");
    assert_eq!(got.body["limit"], partition(&other), "{got:?}");
    one.post(&format!("/api/v1/task/{id}/replay"), r#"{"run_no":1}"#).await.is_problem("task_open");
}
