//! Instances in this process, each on a runtime of its own, on one log and one store; and a caller.

use std::net::SocketAddr;
use std::sync::mpsc;

use assignment_lock::MemoryLock;
use coordinator::board::keep_board;
use coordinator::owner::{Freeze, Identity, OwnerConfig, OwnerRules, Ports};
use coordinator::service::Service;
use coordinator::surface::Surface;
use coordinator_edge::{Edge, EdgeConfig, EdgeParts, HttpPeers};
use event_log::{Durability, EmbeddedConfig, EmbeddedLog, EventLog as _};
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::{Value, json};
use service_kit::{Clock as _, Metrics, Shutdown, SystemClock, SystemEntropy};
use snapshot_store::MemoryStore;
use task_events::Incarnation;
use tokio::net::TcpListener;

use crate::checked::Exchange;

type Way = HttpPeers<EmbeddedLog, SystemClock>;

/// What instances share.
pub struct World {
    pub log: EmbeddedLog,
    pub store: MemoryStore,
    lock: MemoryLock,
    board: bool,
    _dir: tempfile::TempDir,
}

/// One of them.
pub struct Instance {
    pub surface: Surface<SystemClock, Way>,
    pub address: SocketAddr,
    pub metrics: Metrics,
    shutdown: Shutdown,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl World {
    pub fn new(partitions: u16) -> Self {
        Self::with_store(partitions, MemoryStore::default())
    }

    pub fn with_store(partitions: u16, store: MemoryStore) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = EmbeddedConfig::new(dir.path(), partitions);
        config.durability = Durability::Volatile;
        let log = EmbeddedLog::open(config).expect("a log");
        let lock = MemoryLock::new(|| SystemClock.boot_ms());
        Self { log, store, lock, board: false, _dir: dir }
    }

    /// Its instances tell each other of themselves on a board.
    pub fn with_board(self, board: bool) -> Self {
        Self { board, ..self }
    }

    pub fn start(&self, name: &'static str, config: EdgeConfig) -> Instance {
        self.launch(name, config, true)
    }

    /// One that is given no partition, as when the log is away.
    pub fn start_without_owners(&self, name: &'static str) -> Instance {
        self.launch(name, EdgeConfig::default(), false)
    }

    fn launch(&self, name: &'static str, config: EdgeConfig, owns: bool) -> Instance {
        let (log, store, lock, board) = (self.log.clone(), self.store.clone(), self.lock.clone(), self.board);
        let shutdown = Shutdown::default();
        let (stop, (told, started)) = (shutdown.clone(), mpsc::channel());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                let address = listener.local_addr().expect("an address");
                let metrics = Metrics::default();
                let shown = metrics.clone();
                let peers = Way::new(name.into(), log.clone(), SystemClock, metrics.clone()).expect("a client");
                let peers = if board { peers.with_board(lock.clone()) } else { peers };
                let surface = Surface::with_peers(log.partition_count(), SystemClock, peers);
                let url = format!("http://{address}");
                let identity = Identity { instance: name.into(), incarnation: Incarnation(1), url: url.into() };
                if board {
                    let (lock, surface, metrics) = (lock.clone(), surface.clone(), metrics.clone());
                    tokio::spawn(keep_board(lock, surface, SystemClock, identity.clone(), metrics, stop.clone()));
                }
                let service = Service {
                    spans: Default::default(),
                    ports: Ports { log: log.clone(), store: store.clone(), lock, clock: SystemClock },
                    cfg: OwnerConfig::default(),
                    rules: OwnerRules::STANDARD,
                    fold_rules: &task_core::STANDARD,
                    identity,
                    entropy: SystemEntropy::default(),
                    metrics: metrics.clone(),
                    freeze: Freeze::default(),
                    surface: surface.clone(),
                };
                let edge = Edge::new(EdgeParts {
                    spans: Default::default(),
                    surface: surface.clone(),
                    log,
                    store,
                    clock: SystemClock,
                    entropy: Mutex::new(Box::new(SystemEntropy::default())),
                    metrics,
                    instance: name.into(),
                    leaving: Shutdown::default(),
                    beside: Vec::new(),
                    config,
                });
                let serving = tokio::spawn(coordinator_edge::serve(listener, edge, stop.clone()));
                told.send((surface, address, shown)).expect("somebody waits");
                if owns {
                    service.run(stop).await.expect("a clean end");
                }
                serving.await.expect("no panic").expect("a clean end");
            });
        });
        let (surface, address, metrics) = started.recv().expect("it starts");
        Instance { surface, address, metrics, shutdown, thread: Some(thread) }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.shutdown.request();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.is_ok(), "an instance panicked");
        }
    }
}

/// One instance that owns everything.
pub async fn alone() -> (World, Instance) {
    let world = World::new(2);
    let one = world.start("a", EdgeConfig::default());
    until("it owns both", || one.surface.owned().len() == 2).await;
    (world, one)
}

/// Waits for a condition, with a limit that only a defect reaches.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let limit = SystemClock.boot_ms() + 60_000;
    while !holds() {
        assert!(SystemClock.boot_ms() < limit, "never came: {what}");
        SystemClock.sleep_until(SystemClock.boot_ms() + 5).await;
    }
}

/// An answer.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    pub kind: String,
    pub retry_after: Option<String>,
    pub allow: Option<String>,
    pub text: String,
    pub body: Value,
}

impl Got {
    /// A problem of this code, as RFC 9457 wants it.
    #[track_caller]
    pub fn is_problem(&self, code: &str) -> &Self {
        assert_eq!(self.body["code"], code, "{self:?}");
        assert_eq!(self.kind, "application/problem+json", "{self:?}");
        assert_eq!(self.body["status"], self.status, "{self:?}");
        assert_eq!(self.body["type"], format!("/docs/errors/{code}"));
        assert!(self.body["title"].is_string() && self.body["detail"].is_string(), "{self:?}");
        assert_eq!(self.retry_after.is_some(), [429, 503].contains(&self.status), "{self:?}");
        self
    }

    #[track_caller]
    pub fn at(&self, field: &str) -> &Self {
        assert_eq!(self.body["field"], field, "{self:?}");
        self
    }
}

impl Instance {
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Got {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut request = client.request(method.clone(), format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = body.into();
        let response = request.body(sent.clone()).send().await.expect("an answer");
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().expect("a text").to_owned());
        let (status, kind) = (response.status().as_u16(), header("content-type").unwrap_or_default());
        let (retry_after, allow) = (header("retry-after"), header("allow"));
        let text = response.text().await.expect("a body");
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        let (method, told) = (method.as_str(), text.as_bytes());
        Exchange { method, uri: path, sent: &sent, status, kind: &kind, body: told }.check();
        Got { status, kind, retry_after, allow, text, body }
    }

    pub async fn post(&self, path: &str, body: impl Into<Vec<u8>>) -> Got {
        self.send(Method::POST, path, &[("content-type", "application/json")], body).await
    }

    pub async fn keyed(&self, key: &str, body: impl Into<Vec<u8>>) -> Got {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        self.send(Method::POST, "/api/v1/task/create", &headers, body).await
    }

    pub async fn get(&self, path: &str) -> Got {
        self.send(Method::GET, path, &[], "").await
    }

    pub async fn create(&self, body: impl Into<Vec<u8>>) -> Got {
        self.post("/api/v1/task/create", body).await
    }

    /// Creates a task and returns its id.
    pub async fn task(&self, body: Value) -> String {
        let got = self.create(body.to_string()).await;
        assert_eq!(got.status, 201, "{got:?}");
        got.body["task_id"].as_str().expect("a text").to_owned()
    }

    /// One poll of the worker `w` for a queue.
    pub async fn poll(&self, queue: &str) -> Got {
        let body =
            json!({"incarnation": "7", "handler_version": "1", "queues": [queue], "free_slots": 4, "wait_ms": 5000});
        self.post("/coordinator/v1/workers/w/poll", body.to_string()).await
    }

    /// Starts an attempt and reports its result, whose bytes are these.
    pub async fn finish(&self, assignment: &Value, result: &str) {
        let task = assignment["task_id"].as_str().expect("a text");
        let of = |more: Value| {
            let mut body = json!({
                "execution_id": assignment["execution_id"], "exec_epoch": assignment["exec_epoch"],
                "attempt_token": assignment["attempt_token"], "worker_id": "w", "memory_usage_percent": 1,
            });
            body.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
            body
        };
        let path = format!("/coordinator/v1/task/{task}/heartbeat?status=STARTING");
        let started = self.post(&path, of(json!({"incarnation": "7"})).to_string()).await;
        assert_eq!(started.status, 200, "{started:?}");
        let done = of(json!({"task_id": task, "status": "SUCCESS", "result": 0, "execution_time_ms": 5})).to_string();
        let done = done.replace("\"result\":0", &format!("\"result\":{result}"));
        let done = self.post(&format!("/coordinator/v1/task/{task}/result"), done).await;
        assert_eq!(done.status, 200, "{done:?}");
    }
}
