//! Case 8: limits of payloads and keys.

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::upstream::kit::alone;

// A request whose payload has exactly so many bytes.
fn sized(bytes: usize) -> String {
    format!("{{\"task_type\":\"t\",\"payload\":\"{}\"}}", "x".repeat(bytes - 2))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payloads_up_to_256_kib() {
    let (_world, one) = alone().await;
    for bytes in [1024, 256 * 1024] {
        let got = one.create(sized(bytes)).await;
        assert_eq!(got.status, 201, "{bytes}: {got:?}");
    }
    let got = one.create(sized(256 * 1024 + 1)).await;
    got.is_problem("payload_too_large").at("/payload");
    assert_eq!((got.status, &got.body["value"], &got.body["limit"]), (413, &json!(262_145), &json!(262_144)));
    let big = sized(13 * 1024 * 1024);
    let got = one.create(big.clone()).await;
    got.is_problem("payload_too_large");
    assert_eq!((got.status, &got.body["value"], &got.body["limit"]), (413, &json!(big.len()), &json!(327_680)));

    // Without a declared length.
    let answer = chunked(one.address, &big).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains(&format!("\"value\":{}", big.len())) && answer.contains("\"limit\":327680"), "{answer}");
    let ok = chunked(one.address, &sized(256 * 1024)).await;
    assert!(ok.starts_with("HTTP/1.1 201 "), "{ok}");

    let batch = format!("{{\"tasks\":[{}]}}", vec![sized(256 * 1024); 17].join(","));
    one.post("/api/v1/task/create-batch", batch).await.is_problem("payload_too_large");
    let batch = format!("{{\"tasks\":[{}]}}", vec![sized(1024); 1001].join(","));
    one.post("/api/v1/task/create-batch", batch).await.is_problem("invalid_field").at("/tasks");
}

async fn chunked(to: std::net::SocketAddr, body: &str) -> String {
    let mut stream = TcpStream::connect(to).await.expect("a connection");
    let head = "POST /api/v1/task/create HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("written");
    for chunk in body.as_bytes().chunks(64 * 1024) {
        stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).await.expect("written");
        stream.write_all(chunk).await.expect("written");
        stream.write_all(b"\r\n").await.expect("written");
    }
    stream.write_all(b"0\r\n\r\n").await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_names_one_request() {
    let (_world, one) = alone().await;
    let body = json!({"task_type": "t", "payload": {"n": 1}, "priority": 4}).to_string();
    let first = one.keyed("k", body.clone()).await;
    assert_eq!((first.status, &first.body["duplicate"]), (201, &json!(false)));
    let id = first.body["task_id"].clone();
    let again = one.keyed("k", body).await;
    assert_eq!((again.status, &again.body["task_id"], &again.body["duplicate"]), (200, &id, &json!(true)));
    // A default that is spelled out and the order of fields mean nothing.
    let same = one.keyed("k", r#"{"payload":{"n":1}, "max_retries":3,"task_type":"t","queue":"t"}"#).await;
    assert_eq!((same.status, &same.body["task_id"]), (200, &id), "{same:?}");
    let other = one.keyed("k", r#"{"payload":{"n":2},"task_type":"t"}"#).await;
    other.is_problem("idempotency_conflict");
    assert_eq!((other.status, &other.body["task_id"]), (409, &id));
    // Another client's key is another key.
    let theirs = one.keyed("k", r#"{"payload":{"n":2},"task_type":"t","creator":"they"}"#).await;
    assert_eq!(theirs.status, 201, "{theirs:?}");

    let body = r#"{"task_type":"t","payload":20}"#;
    let got = join_all((0..20).map(|_| one.keyed("twenty", body))).await;
    let created = got.iter().filter(|got| got.status == 201).count();
    let ids: std::collections::BTreeSet<_> = got.iter().map(|got| got.body["task_id"].to_string()).collect();
    assert_eq!((created, ids.len()), (1, 1), "{got:?}");
    for bad in ["", " ", &"k".repeat(257)] {
        one.keyed(bad, body).await.is_problem("invalid_parameter").at("Idempotency-Key");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_answered_item_by_item() {
    let (_world, one) = alone().await;
    let batch = r#"{"tasks":[{"task_type":"t","payload":1},{"task_type":"t"},{"task_type":"t","payload":1,"prio":2},
        {"task_type":"t","payload":4,"idempotency_key":"own"},{"task_type":"t","payload":4,"idempotency_key":"own"}]}"#;
    let headers = [("content-type", "application/json"), ("idempotency-key", "b")];
    let first = one.send(Method::POST, "/api/v1/task/create-batch", &headers, batch).await;
    assert_eq!(first.status, 207, "{first:?}");
    let outcomes = |got: &crate::upstream::kit::Got| {
        let items = got.body["items"].as_array().expect("a list").clone();
        items.iter().map(|item| item["outcome"].as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    let mut told = outcomes(&first);
    told[3..].sort();
    assert_eq!(told, ["created", "rejected", "rejected", "created", "duplicate"]);
    let items = &first.body["items"];
    assert_eq!((&items[1]["status"], &items[1]["problem"]["field"]), (&json!(422), &json!("/tasks/1/payload")));
    assert_eq!(items[2]["problem"]["code"], "unknown_field");
    assert_eq!(items[2]["problem"]["field"], "/tasks/2/prio");
    assert_eq!(items[3]["task_id"], items[4]["task_id"]);
    let again = one.send(Method::POST, "/api/v1/task/create-batch", &headers, batch).await;
    assert_eq!(outcomes(&again), ["duplicate", "rejected", "rejected", "duplicate", "duplicate"]);
    assert_eq!(again.body["items"][0]["task_id"], items[0]["task_id"]);
    // The key of item 0, for a single create.
    let alone = one.keyed("b#0", r#"{"task_type":"t","payload":1}"#).await;
    assert_eq!((alone.status, &alone.body["task_id"]), (200, &items[0]["task_id"]));
}
