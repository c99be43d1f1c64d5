//! Cases 12 and 19: numbers in JSON, and the same key twice.

use serde_json::{Value, json};
use service_kit::{Clock as _, SystemClock};
use task_events::Sha256Hash;

use crate::upstream::kit::alone;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_and_texts_at_their_edges() {
    let (_world, one) = alone().await;
    for priority in [0, 9] {
        let id = one.task(json!({"task_type": "t", "payload": null, "priority": priority})).await;
        assert!(id.parse::<i64>().expect("a number") > 1 << 53, "an id that JavaScript would round");
        let seen = one.get(&format!("/api/v1/task/{id}")).await;
        assert_eq!((&seen.body["task_id"], &seen.body["priority"]), (&json!(id), &json!(priority)));
    }
    let now = SystemClock.wall_ms();
    let create = |more: Value| {
        let mut body = json!({"task_type": "t", "payload": 1});
        body.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
        one.create(body.to_string())
    };
    for (more, field) in [
        (json!({"deadline": now - 1}), "/deadline"),
        (json!({"deadline": now + 31 * 86_400_000_i64}), "/deadline"),
        (json!({"not_before": now + 31 * 86_400_000_i64}), "/not_before"),
        (json!({"not_before": -1}), "/not_before"),
        (json!({"not_before": now + 9_000_000, "deadline": now + 8_000_000}), "/deadline"),
        (json!({"timeouts": {"start_to_close_ms": -5}}), "/timeouts/start_to_close_ms"),
        (json!({"timeouts": {"schedule_to_start_ms": 0}}), "/timeouts/schedule_to_start_ms"),
        (json!({"priority": 10}), "/priority"),
        (json!({"priority": -1}), "/priority"),
        (json!({"max_retries": 1001}), "/max_retries"),
    ] {
        let got = create(more).await;
        got.is_problem("invalid_field").at(field);
        assert_eq!(got.status, 422);
        assert!(!got.body["value"].is_null() && !got.body["limit"].is_null(), "{got:?}");
    }
    let got = create(json!({"colour": "red"})).await;
    got.is_problem("unknown_field").at("/colour");
    assert_eq!(got.status, 422);

    let deep = format!("{{\"task_type\":\"t\",\"payload\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
    let cases: [(&[u8], u64, u64); 5] = [
        (b"", 1, 1),
        (b"{\"task_type\":\"t\",\n\"payload\":[1,", 2, 14),
        (b"{\"task_type\":\"\xff\"}", 1, 15),
        (deep.as_bytes(), 1, 59),
        (b"{\"task_type\":\"t\",\"payload\":1} x", 1, 31),
    ];
    for (body, line, column) in cases {
        let got = one.create(body).await;
        got.is_problem("malformed_json");
        assert_eq!(
            (got.status, got.body["line"].as_u64(), got.body["column"].as_u64()),
            (400, Some(line), Some(column)),
            "{got:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_stands_once_and_payload_bytes_stay() {
    let (_world, one) = alone().await;
    for body in [
        r#"{"task_type":"t","payload":1,"priority":9,"priority":0}"#,
        r#"{"task_type":"t","payload":1,"priority":9,"\u0070riority":0}"#,
    ] {
        let got = one.create(body).await;
        got.is_problem("duplicate_field").at("/priority");
        assert_eq!(got.status, 422);
    }
    let payload = r#"{ "a" : 9223372036854775808 , "b":[0.10000000000000000555, 1E400], "c":"\u00e9\/" }"#;
    let got = one.create(format!(r#"{{"task_type":"exact","payload": {payload} }}"#)).await;
    assert_eq!(got.status, 201, "{got:?}");
    let id = got.body["task_id"].as_str().expect("a text").to_owned();
    let hash = Sha256Hash::of(payload.as_bytes()).to_string();
    assert_eq!(one.get(&format!("/api/v1/task/{id}")).await.body["payload_hash"], hash);
    let handed = one.poll("exact").await;
    assert!(handed.text.contains(&format!("\"payload\":{payload},")), "{}", handed.text);
    assert!(handed.text.contains(&hash));
    let wrong = json!({"task_type": "t", "payload": 1, "payload_hash": hash});
    one.create(wrong.to_string()).await.is_problem("invalid_field").at("/payload_hash");
}
