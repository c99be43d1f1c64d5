//! What slow clients cost others: the p99 of reads and creates with and without 200 connections that
//! send one byte a second and 50 polls that nobody reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::ensure;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use rest_client::Client;
use rest_contract::{CreateBatch, MAX_WAIT_MS, PollRequest};
use service_kit::{Clock as _, SystemClock};
use task_events::{Incarnation, TaskId};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::Run;
use super::clock::{boot_us, pause};
use super::figure::{Figure, Group, Target};
use super::pace::{histogram, ms, open_loop};
use super::standard;
use super::world::World;

/// Connections that send one byte a second.
const SLOW: usize = 200;
/// Polls whose answers nobody reads.
const POLLS: usize = 50;
/// Reads, and creates, per second.
const PER_SECOND: u64 = 200;
/// Tasks that are read.
const TASKS: usize = 1_000;
/// Time for the slow ones to arrive, and the length of a warm-up, s.
const SETTLE_S: u64 = 2;

/// Latencies of one part.
struct Part {
    reads: Histogram<u64>,
    creates: Histogram<u64>,
    failed: u64,
}

/// Takes the figures.
pub async fn take(run: &Run<'_>) -> anyhow::Result<Vec<Figure>> {
    let world = World::start(run, &[]).await?;
    let client = world.client()?;
    let tasks = vec![standard::request(boot_us(), false, &"slow".into())?; TASKS];
    let answer = client.create_batch(&CreateBatch { tasks }, None).await?;
    let tasks: Arc<[TaskId]> = answer.items.iter().filter_map(|item| item.task_id.as_deref()?.parse().ok()).collect();
    ensure!(!tasks.is_empty(), "no task was created");
    part(&client, &tasks, SETTLE_S).await?;
    run.says("slow clients: without them");
    let without = part(&client, &tasks, run.args.seconds).await?;
    run.says("slow clients: with them");
    let (mut slow, opened) = (JoinSet::new(), Arc::new(AtomicU64::new(0)));
    for n in 0..SLOW {
        slow.spawn(dribble(world.address().to_owned(), n as u64, opened.clone()));
    }
    for n in 0..POLLS {
        slow.spawn(dead_poll(world.address().to_owned(), n));
    }
    pause(SETTLE_S * 1_000).await;
    let with = part(&client, &tasks, run.args.seconds).await?;
    slow.abort_all();
    let opened = opened.load(Ordering::Relaxed);
    let figure = |name: &str, of: fn(&Part) -> &Histogram<u64>| {
        let (slowed, free) = (ms(of(&with), 0.99), ms(of(&without), 0.99));
        Figure::new(
            Group::Slow,
            format!("p99 of {name} beside slow clients, in parts of that without"),
            slowed / free,
            "×",
        )
        .target(Target::AtMost(2.0))
        .beside(format!("p99 of {name} without them, ms"), free, slowed)
        .note(format!(
            "p99 {slowed:.2} ms with, {free:.2} ms without; p50 {:.2} and {:.2}; {} a part",
            ms(of(&with), 0.5),
            ms(of(&without), 0.5),
            of(&with).len()
        ))
    };
    let note = format!(
        "{SLOW} slow connections at a time, {opened} in all (the server closes them after 5 s), {POLLS} dead polls; \
         {} and {} calls failed",
        without.failed, with.failed
    );
    Ok(vec![figure("GET", |part| &part.reads), figure("create", |part| &part.creates).note(note)])
}

async fn part(client: &Client, tasks: &Arc<[TaskId]>, seconds: u64) -> anyhow::Result<Part> {
    let failed = Arc::new(AtomicU64::new(0));
    let (reads, creates) = (Arc::new(Mutex::new(histogram()?)), Arc::new(Mutex::new(histogram()?)));
    let read = {
        let (client, tasks, seen, failed) = (client.clone(), tasks.clone(), reads.clone(), failed.clone());
        move |n: u64, due_us: u64| {
            let (client, seen, failed) = (client.clone(), seen.clone(), failed.clone());
            let task = tasks.get(n as usize % tasks.len()).copied();
            async move {
                let Some(task) = task else { return };
                let is_answered = client.get(task, None).await.is_ok();
                note(&seen, &failed, due_us, is_answered);
            }
        }
    };
    let create = {
        let (client, seen, failed) = (client.clone(), creates.clone(), failed.clone());
        move |_, due_us: u64| {
            let (client, seen, failed) = (client.clone(), seen.clone(), failed.clone());
            async move {
                let Ok(request) = standard::request(due_us, false, &"slow".into()) else { return };
                let is_answered = client.create(&request, None).await.is_ok();
                note(&seen, &failed, due_us, is_answered);
            }
        }
    };
    let (one, other) = futures::join!(open_loop(PER_SECOND, seconds, read), open_loop(PER_SECOND, seconds, create));
    one?;
    other?;
    let failed = failed.load(Ordering::Relaxed);
    let (reads, creates) = (reads.lock().clone(), creates.lock().clone());
    Ok(Part { reads, creates, failed })
}

fn note(seen: &Mutex<Histogram<u64>>, failed: &AtomicU64, due_us: u64, is_answered: bool) {
    if is_answered {
        seen.lock().saturating_record(boot_us().saturating_sub(due_us));
    } else {
        failed.fetch_add(1, Ordering::Relaxed);
    }
}

// A request that never gets to its end; a new one when the server has closed the connection.
async fn dribble(address: String, n: u64, opened: Arc<AtomicU64>) {
    // Not all in the same moment.
    pause(n * 5).await;
    loop {
        if let Ok(mut stream) = TcpStream::connect(&address).await {
            opened.fetch_add(1, Ordering::Relaxed);
            for byte in
                b"POST /api/v1/task/create HTTP/1.1\r\nhost: x\r\nx-slow: ".iter().chain(std::iter::repeat(&b'a'))
            {
                if stream.write_all(&[*byte]).await.is_err() {
                    break;
                }
                pause(1_000).await;
            }
        }
        pause(100).await;
    }
}

// A poll for work that never comes, whose answer nobody reads; again when its wait is over.
async fn dead_poll(address: String, n: usize) {
    let poll = PollRequest {
        incarnation: Incarnation::new(SystemClock.wall_ms(), n as u32),
        handler_version: "1".into(),
        queues: vec!["nobody".into()],
        free_slots: 1,
        held: Vec::new(),
        wait_ms: MAX_WAIT_MS,
    };
    let Ok(body) = serde_json::to_string(&poll) else { return };
    let request = format!(
        "POST /coordinator/v1/workers/dead-{n}/poll HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    loop {
        // One that is refused is tried again a second later.
        if let Ok(mut stream) = TcpStream::connect(&address).await
            && stream.write_all(request.as_bytes()).await.is_ok()
        {
            pause(MAX_WAIT_MS).await;
        }
        pause(1_000).await;
    }
}
