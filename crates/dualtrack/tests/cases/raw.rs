//! Requests as anybody with a socket sends them.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Head of a POST of a JSON body.
pub fn head(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    )
}

/// POSTs this; status and body of the answer.
pub async fn post(url: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).await.expect("a connection");
    stream.write_all(format!("{}{body}", head(path, body.len())).as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// GETs this; status and body of the answer.
pub async fn get(url: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).await.expect("a connection");
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    (status, body.to_owned())
}

/// Body of a poll for one task.
pub fn poll(queue: &str, wait_ms: u64) -> Value {
    json!({"incarnation": "7", "handler_version": "1", "queues": [queue], "free_slots": 1, "wait_ms": wait_ms})
}
