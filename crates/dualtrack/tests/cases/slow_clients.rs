//! Two hundred clients that send one byte a second, and fifty polls whose clients fell silent: the
//! others are answered as if they were not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use dualtrack::dev::Dev;
use futures::StreamExt as _;
use rest_client::Client;
use task_events::TaskState;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use worker_sdk::Worker;

use crate::kit::{pause, request, settings, until};
use crate::raw::{head, poll};

const SLOW: usize = 200;
const DEAD: usize = 50;
const TASKS: u64 = 200;
const AT_A_TIME: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_and_silent_clients_keep_nobody_from_being_answered() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut dev = Dev::start(&settings(dir.path(), 4, 6_000)).expect("it starts");
    dev.ready().await.expect("it is ready");
    let url = dev.urls().remove(0);
    let address = url.trim_start_matches("http://").to_owned();
    let (there, bytes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let over = Arc::new(AtomicBool::new(false));
    for _ in 0..SLOW {
        let (address, there, bytes, over) = (address.clone(), there.clone(), bytes.clone(), over.clone());
        tokio::spawn(async move {
            while !over.load(Ordering::SeqCst) {
                let mut stream = TcpStream::connect(&address).await.expect("a connection");
                there.fetch_add(1, Ordering::SeqCst);
                // Until it is cut off; then it comes again.
                for byte in head("/api/v1/task/create", 100).bytes() {
                    if stream.write_all(&[byte]).await.is_err() {
                        break;
                    }
                    bytes.fetch_add(1, Ordering::SeqCst);
                    pause(1_000).await;
                }
                there.fetch_sub(1, Ordering::SeqCst);
            }
        });
    }
    let mut dead = Vec::new();
    for n in 0..DEAD {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        let body = poll("nothing-for-it", 30_000).to_string();
        let request = format!("{}{body}", head(&format!("/coordinator/v1/workers/dead-{n}/poll"), body.len()));
        stream.write_all(request.as_bytes()).await.expect("sent");
        dead.push(stream);
    }
    until("all the slow ones", async || (there.load(Ordering::SeqCst) == SLOW).then_some(())).await;

    let worker = Worker::connect(&url).worker_id("a").handler("t", |_| async { Ok(Bytes::from("1")) });
    tokio::spawn(worker.build().expect("settings").run(std::future::pending()));
    let client = Client::new(&url).expect("a URL");
    // Answered, each of them: an error is one that was refused, or had no answer.
    let others = futures::stream::iter((0..TASKS).map(|n| {
        let client = client.clone();
        async move {
            let task = client.create(&request("t", n), None).await.expect("created").task_id;
            let view = client.get(task, Some(Duration::from_secs(20))).await.expect("told");
            assert_eq!(view.status, TaskState::Success);
        }
    }));
    others.buffer_unordered(AT_A_TIME).collect::<Vec<()>>().await;
    // They are still there, and still send.
    until("a second byte of each", async || (bytes.load(Ordering::SeqCst) >= 2 * SLOW).then_some(())).await;
    client.create(&request("t", TASKS), None).await.expect("created");
    assert!(there.load(Ordering::SeqCst) >= SLOW / 2);
    over.store(true, Ordering::SeqCst);
    drop(dead);
    dev.stop().await.expect("a clean end, whoever dribbles");
}
