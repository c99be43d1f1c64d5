//! Load on a cluster from this process: keyed creates at every coordinator in turn, and a worker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use rest_client::{Client, ClientError};
use rest_contract::CreateRequest;
use serde_json::value::to_raw_value;
use service_kit::{Clock as _, SystemClock};
use stack_control::Cluster;
use task_events::TaskId;
use tokio::task::JoinHandle;
use worker_sdk::{Context, HandlerError, Worker};

/// Pause between two creates of one creator, ms.
const PACE_MS: u64 = 10;

/// Type of every task.
pub const TYPE: &str = "stack-test";

/// A worker of this process.
pub struct Working {
    stop: Arc<tokio::sync::Notify>,
    task: JoinHandle<()>,
}

/// Payload `fail-once`: the first attempt fails after its first step.
async fn handle(context: Context) -> Result<Bytes, HandlerError> {
    let fails = context.params().as_ref() == b"\"fail-once\"" && context.exec_epoch().0 == 1;
    let kept = context.step("keep").idempotent(true).run(|| async { Ok(Bytes::from_static(b"\"kept\"")) }).await?;
    if fails {
        return Err(HandlerError::transient("ONCE", "the first attempt fails".to_owned()));
    }
    Ok(kept)
}

impl Working {
    /// A worker that knows these coordinators.
    pub fn start(urls: &[String], outbox: &std::path::Path) -> Self {
        let (first, others) = urls.split_first().expect("a coordinator");
        let worker = others
            .iter()
            .fold(Worker::connect(first), |worker, url| worker.also_at(url))
            .worker_id("worker-1")
            .slots(16)
            .handler(TYPE, handle)
            .outbox(outbox)
            .build()
            .expect("a worker");
        let stop = Arc::new(tokio::sync::Notify::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            worker.run(async move { stopped.notified().await }).await.expect("it drains");
        });
        Self { stop, task }
    }

    /// Drains it.
    pub async fn stop(self) {
        self.stop.notify_one();
        self.task.await.expect("no panic");
    }
}

/// A request.
pub fn request(payload: &str) -> CreateRequest {
    let payload = to_raw_value(payload).expect("JSON");
    CreateRequest { task_type: TYPE.into(), payload: Some(payload), ..Default::default() }
}

/// What creates came to.
#[derive(Debug, Default)]
pub struct Told {
    /// Created, by key.
    pub created: BTreeMap<String, TaskId>,
    /// Refused by a server: what a client calls a failed create.
    pub refused: Vec<String>,
    /// Not connected or not answered, and then settled elsewhere with the same key.
    pub settled_elsewhere: u64,
    /// Longest from the first try to the answer, ms.
    pub slowest_ms: u64,
}

/// Creates that go on until they are stopped.
pub struct Creating {
    stop: Arc<AtomicBool>,
    created: Arc<AtomicUsize>,
    task: JoinHandle<Told>,
}

impl Creating {
    /// Starts a creator that takes the coordinators in turn. Whoever gives no answer is followed by the
    /// next one, with the same key: the contract of keyed creates (design.md §8).
    pub fn start(cluster: &Cluster) -> Self {
        let clients: Vec<_> = cluster.urls().iter().map(|url| Client::new(url).expect("a URL")).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let created = Arc::new(AtomicUsize::new(0));
        let (stopped, counted) = (stop.clone(), created.clone());
        let task = tokio::spawn(async move {
            let mut told = Told::default();
            let mut number = 0_usize;
            while !stopped.load(Ordering::SeqCst) {
                number += 1;
                told.create(&clients, number).await;
                counted.store(told.created.len(), Ordering::SeqCst);
                SystemClock.sleep_until(SystemClock.boot_ms() + PACE_MS).await;
            }
            told
        });
        Self { stop, created, task }
    }

    /// Waits until so many are created.
    pub async fn until(&self, count: usize) {
        let created = || async { (self.created.load(Ordering::SeqCst) >= count).then_some(()) };
        stack_tests::until(&format!("{count} are created"), created).await;
    }

    /// Stops it; what came of it.
    pub async fn stop(self) -> Told {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.expect("no panic")
    }
}

impl Told {
    async fn create(&mut self, clients: &[Client], number: usize) {
        let key = format!("key-{number}");
        let began = SystemClock.boot_ms();
        for turn in 0.. {
            let client = &clients[(number + turn) % clients.len()];
            match client.create(&request("once"), Some(&key)).await {
                Ok(created) => {
                    self.created.insert(key, created.task_id);
                    break;
                }
                Err(ClientError::Unreachable { .. } | ClientError::UnknownOutcome { .. }) => {
                    self.settled_elsewhere += 1
                }
                Err(
                    why @ (ClientError::Problem(_) | ClientError::Unreadable { .. } | ClientError::Unsendable { .. }),
                ) => {
                    self.refused.push(format!("{key}: {why}"));
                    break;
                }
            }
            assert!(SystemClock.boot_ms() - began < stack_tests::PATIENCE_MS, "{key} is never answered");
        }
        self.slowest_ms = self.slowest_ms.max(SystemClock.boot_ms() - began);
    }
}

/// Waits until each of these is a success, by the word of one coordinator.
pub async fn all_succeed(url: &str, tasks: impl IntoIterator<Item = TaskId>) {
    let client = Client::new(url).expect("a URL");
    for task in tasks {
        let client = &client;
        stack_tests::until(&format!("{task} succeeds"), || async move {
            let view = client.get(task, None).await.ok()?;
            let status = view.status;
            assert!(status.as_str() == "SUCCESS" || !status.is_terminal(), "{task} ended as {}", status.as_str());
            status.is_terminal().then_some(())
        })
        .await;
    }
}
