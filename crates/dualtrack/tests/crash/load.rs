//! Load that outlives the server: creators with and without keys, and an SDK worker; and what must
//! hold after it. Shared by the targets `crash` and `fail_points`.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use parking_lot::Mutex;
use rest_client::contract::Retry;
use rest_client::{Client, Timeouts};
use task_events::{Kind, TaskId, TaskState};
use tokio::task::JoinHandle;
use worker_sdk::{Context, HandlerError, Worker};

use crate::book::{Book, check};
use crate::kit::{DevProcess, flags, pause, request};

pub const PARTITIONS: u16 = 4;
const LEASE_MS: u64 = 3_000;
const AGAIN_MS: u64 = 20;
const AT_A_TIME: usize = 32;

/// An address of this machine that outlives a restart: outside of the range that the kernel gives to
/// outgoing connections.
pub fn free_address() -> String {
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = (first..first + 1_000).find(free).expect("a free port");
    format!("127.0.0.1:{port}")
}

/// Shown when the test fails.
#[expect(clippy::print_stdout, reason = "what whoever looks into a failure needs to know")]
pub fn say(text: &str) {
    println!("{text}");
}

#[derive(Default)]
struct Seen {
    /// Answered 200 or 201, and the request's number.
    answered: Mutex<BTreeMap<TaskId, u64>>,
    without_key: AtomicU64,
    numbers: AtomicU64,
    over: AtomicBool,
    /// Handlers entered, by task and epoch.
    runs: Mutex<BTreeMap<(TaskId, u32), usize>>,
}

/// Dropping it ends the worker where it stands.
pub struct Load {
    seen: Arc<Seen>,
    creators: Vec<JoinHandle<()>>,
    worker: JoinHandle<()>,
}

impl Drop for Load {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

impl Load {
    /// So many creators, each with this pause between two tasks; half of the tasks have keys.
    pub fn start(address: &str, creators: usize, pause_ms: u64) -> Self {
        let url = format!("http://{address}");
        let seen = Arc::new(Seen::default());
        let timeouts = Timeouts { connect: Duration::from_secs(1), answer: Duration::from_secs(20) };
        let client = Client::with_timeouts(&url, timeouts).expect("a URL");
        let creator = |_| tokio::spawn(create(client.clone(), seen.clone(), pause_ms));
        let creators = (0..creators).map(creator).collect();
        let noted = seen.clone();
        let worker = Worker::connect(&url).worker_id("a").slots(64).handler("t", move |c| work(noted.clone(), c));
        let worker = worker.build().expect("settings");
        let worker = tokio::spawn(async { worker.run(std::future::pending()).await.expect("nobody stops it") });
        Self { seen, creators, worker }
    }

    /// No more creates. Those whose outcome is not known are asked for, so the server must be there.
    pub async fn stop_creating(&mut self) {
        self.seen.over.store(true, Ordering::SeqCst);
        for creator in self.creators.drain(..) {
            creator.await.expect("no panic");
        }
    }

    pub fn answered(&self) -> Vec<TaskId> {
        self.seen.answered.lock().keys().copied().collect()
    }

    pub fn without_key(&self) -> u64 {
        self.seen.without_key.load(Ordering::SeqCst)
    }

    /// Every task that was answered is there and ends, every other open one ends as well, no handler
    /// was entered twice in one epoch, no key made two tasks, and the checker is content.
    pub async fn assert_all_is_well(&self, data: &Path, listen: &str, dev: DevProcess) {
        let client = Client::new(&format!("http://{listen}")).expect("a URL");
        let answered = self.answered();
        succeed(&client, answered.iter().copied()).await;
        dev.terminate();
        let mut book = Book::of_folder(data, PARTITIONS).await;
        if !book.open.is_empty() {
            // Created, and its creator was never told.
            let mut dev = DevProcess::spawn(data, listen, &flags(LEASE_MS), &[]);
            dev.ready();
            succeed(&client, book.open.keys().copied()).await;
            dev.terminate();
            book = Book::of_folder(data, PARTITIONS).await;
        }
        let (created, completed) = (book.tasks(Kind::TaskCreated), book.tasks(Kind::TaskCompleted));
        let missing: Vec<_> = answered.iter().filter(|task| !created.contains(task)).collect();
        assert!(missing.is_empty(), "answered and not there: {missing:?}");
        assert_eq!(created, completed);
        let twice: Vec<_> = self.seen.runs.lock().iter().filter(|(_, n)| **n > 1).map(|(run, _)| *run).collect();
        assert_eq!(twice, [], "entered twice in one epoch");
        book.assert_keys_are_unique();
        check(data, &["--complete"]);
    }
}

async fn succeed(client: &Client, tasks: impl Iterator<Item = TaskId>) {
    let ends = futures::stream::iter(tasks.map(|task| async move {
        let view = client.get(task, Some(Duration::from_secs(60))).await.expect("every answered task is told");
        assert_eq!(view.status, TaskState::Success, "{view:?}");
    }));
    ends.buffer_unordered(AT_A_TIME).collect::<Vec<()>>().await;
}

async fn create(client: Client, seen: Arc<Seen>, pause_ms: u64) {
    while !seen.over.load(Ordering::SeqCst) {
        let number = seen.numbers.fetch_add(1, Ordering::SeqCst);
        let key = number.is_multiple_of(2).then(|| format!("key-{number}"));
        loop {
            match client.create(&request("t", number), key.as_deref()).await {
                Ok(created) => {
                    let before = seen.answered.lock().insert(created.task_id, number);
                    assert!(before.is_none(), "{} is the answer to {before:?} and {number}", created.task_id);
                    seen.without_key.fetch_add(u64::from(key.is_none()), Ordering::SeqCst);
                    break;
                }
                Err(why) => {
                    let again = match why.retry() {
                        // Certainly not done.
                        Retry::Later => !seen.over.load(Ordering::SeqCst) || key.is_some(),
                        Retry::AskFirst => key.is_some(),
                        Retry::Never => panic!("{number}: {why}"),
                    };
                    pause(AGAIN_MS).await;
                    if !again {
                        break;
                    }
                }
            }
        }
        pause(pause_ms).await;
    }
}

/// Two steps; one task of eight fails at first, so that engine and replayer have their share.
async fn work(seen: Arc<Seen>, context: Context) -> Result<Bytes, HandlerError> {
    let epoch = context.exec_epoch().get();
    *seen.runs.lock().entry((context.task_id(), epoch)).or_default() += 1;
    let number: u64 = serde_json::from_slice(context.params()).expect("a number");
    let params = context.params().clone();
    let first = context.step("first").idempotent(true).run(|| async { Ok(params) }).await?;
    if number.is_multiple_of(8) && epoch == 1 {
        return Err(HandlerError::transient("AT_FIRST", "as told"));
    }
    pause(number % 40).await;
    context.step("second").idempotent(true).run(|| async { Ok(first) }).await
}
