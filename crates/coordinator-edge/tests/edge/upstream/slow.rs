//! Clients that send slowly, or nothing.

use coordinator_edge::EdgeConfig;
use futures::future::join_all;
use serde_json::json;
use service_kit::{Clock as _, SystemClock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::upstream::kit::{World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_that_dribble_keep_nobody_out() {
    assert_eq!((EdgeConfig::default().header_ms, EdgeConfig::default().body_ms), (5_000, 10_000));
    let world = World::new(2);
    let one = world.start("a", EdgeConfig { header_ms: 1_500, body_ms: 1_000, ..EdgeConfig::default() });
    until("it owns both", || one.surface.owned().len() == 2).await;
    let started = SystemClock.boot_ms();
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(one.address).await.expect("a connection");
        stream.write_all(b"POST /api/v1/task/create HTTP/1.1\r\nhost: x\r\nx-slow: ").await.expect("written");
        slow.push(stream);
    }
    let dribble = join_all(slow.into_iter().map(|mut stream| async move {
        let mut got = Vec::new();
        loop {
            let _ = stream.write_all(b"a").await;
            let pause = Box::pin(SystemClock.sleep_until(SystemClock.boot_ms() + 100));
            let mut buffer = [0; 512];
            let read = Box::pin(stream.read(&mut buffer));
            if let futures::future::Either::Left((read, _)) = futures::future::select(read, pause).await {
                match read {
                    Ok(0) | Err(_) => return got,
                    Ok(n) => got.extend_from_slice(&buffer[..n]),
                }
            }
        }
    }));
    let works = async {
        for n in 0..20 {
            one.task(json!({"task_type": "t", "payload": n})).await;
        }
        SystemClock.boot_ms() - started
    };
    let (_, worked_ms) = futures::join!(dribble, works);
    let closed_ms = SystemClock.boot_ms() - started;
    assert!((1_400..20_000).contains(&closed_ms), "closed after {closed_ms} ms");
    assert!(worked_ms < 10_000, "others waited {worked_ms} ms");

    // A body that does not come.
    let mut stream = TcpStream::connect(one.address).await.expect("a connection");
    let head = "POST /api/v1/task/create HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\
                connection: close\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("\"request_timeout\""), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_and_does_not_read_is_cut_off() {
    assert_eq!(EdgeConfig::default().write_ms, 10_000);
    let world = World::new(2);
    let one = world.start("a", EdgeConfig { write_ms: 500, ..EdgeConfig::default() });
    until("it owns both", || one.surface.owned().len() == 2).await;
    let task = one.task(json!({"task_type": "q", "payload": 1})).await;
    let polled = one.poll("q").await;
    one.finish(&polled.body["assignments"][0], &format!("\"{}\"", "x".repeat(250_000))).await;
    // 100 MB of answers: more than the buffers of a connection hold.
    let request = format!("GET /api/v1/task/{task}/result HTTP/1.1\r\nhost: x\r\n\r\n").repeat(400);
    let mut stream = TcpStream::connect(one.address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("written");
    until("it is cut off", || match stream.try_write(b" ") {
        Ok(_) => false,
        Err(why) => why.kind() != std::io::ErrorKind::WouldBlock,
    })
    .await;
    assert_eq!(one.get(&format!("/api/v1/task/{task}")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_too_many_is_told_so() {
    let world = World::new(1);
    let one = world.start("a", EdgeConfig { max_connections: 2, ..EdgeConfig::default() });
    let _held = [TcpStream::connect(one.address).await, TcpStream::connect(one.address).await];
    let mut third = TcpStream::connect(one.address).await.expect("a connection");
    let mut answer = String::new();
    third.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\"overloaded\""), "{answer}");
}
