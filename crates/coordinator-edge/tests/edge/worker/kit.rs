//! A whole installation in this process, with short leases, reached over real sockets; and a proxy
//! that loses what it is told to lose.

use std::net::SocketAddr;
use std::sync::Arc;

use assignment_lock::MemoryLock;
use coordinator::owner::{Answer, Command, CreateTask, Freeze, Identity, OwnerConfig, OwnerRules, Ports};
use coordinator::service::Service;
use coordinator::surface::{Placement, Surface};
use coordinator_edge::metrics::{WORKER_POLLS, WORKER_POLLS_ENDED};
use coordinator_edge::{Edge, EdgeConfig, EdgeParts};
use event_log::{Durability, EmbeddedConfig, EmbeddedLog};
use fold_start::StoredCheckpoints;
use parking_lot::Mutex;
use service_kit::{Clock as _, Metrics, Shutdown, SystemClock, SystemEntropy};
use snapshot_store::{MemoryStore, SnapshotRow};
use task_core::decide::NewTask;
use task_events::{HashForm, Incarnation, Sha256Hash, TaskCreated, TaskId, TaskState, Timeouts};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use verdict_writer::FoldSource;

pub const LEASE_MS: u64 = 3_000;
const PARTITIONS: u16 = 2;

pub struct World {
    pub surface: Surface<SystemClock>,
    pub address: SocketAddr,
    pub dir: tempfile::TempDir,
    metrics: Metrics,
    shutdown: Shutdown,
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}

impl World {
    pub async fn start() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = EmbeddedConfig::new(dir.path().join("log"), PARTITIONS);
        config.durability = Durability::Volatile;
        let log = EmbeddedLog::open(config).expect("a log");
        let (store, metrics, shutdown) = (MemoryStore::default(), Metrics::default(), Shutdown::default());
        let surface = Surface::new(PARTITIONS, SystemClock);
        let cfg = OwnerConfig {
            lease_ms: LEASE_MS,
            lease_max_ms: LEASE_MS,
            heartbeat_ms: LEASE_MS / 3,
            lock_ttl_ms: LEASE_MS,
            ..OwnerConfig::default()
        };
        cfg.validate().expect("settings");
        let service = Service {
            spans: Default::default(),
            ports: Ports {
                log: log.clone(),
                store: store.clone(),
                lock: MemoryLock::new(|| SystemClock.boot_ms()),
                clock: SystemClock,
            },
            cfg,
            rules: OwnerRules::STANDARD,
            fold_rules: &task_core::STANDARD,
            identity: Identity { instance: "c1".into(), incarnation: Incarnation(1), url: "c1".into() },
            entropy: SystemEntropy::default(),
            metrics: metrics.clone(),
            freeze: Freeze::default(),
            surface: surface.clone(),
        };
        let source = FoldSource::new(StoredCheckpoints {
            log: log.clone(),
            store: store.clone(),
            clock: SystemClock,
            rules: &task_core::STANDARD,
            metrics: metrics.clone(),
        });
        let engine = task_engine::Deps {
            log: log.clone(),
            clock: SystemClock,
            metrics: metrics.clone(),
            standings: Default::default(),
            entropy: Box::new(SystemEntropy::default()),
            source: source.clone(),
        };
        let mut policy = task_engine::EngineConfig::new("e1".into(), Incarnation(1));
        (policy.policy.base_ms, policy.policy.cap_ms) = (10, 100);
        let replayer = auto_replay::Deps {
            log: log.clone(),
            store: store.clone(),
            clock: SystemClock,
            metrics: metrics.clone(),
            standings: Default::default(),
            source,
        };
        let replay = auto_replay::ReplayConfig::new("r1".into(), Incarnation(1));
        tokio::spawn(task_engine::run(engine, policy, shutdown.clone()));
        tokio::spawn(auto_replay::run(replayer, replay, shutdown.clone()));
        tokio::spawn(service.run(shutdown.clone()));
        let edge = Edge::new(EdgeParts {
            spans: Default::default(),
            surface: surface.clone(),
            log,
            store: store.clone(),
            clock: SystemClock,
            entropy: Mutex::new(Box::new(SystemEntropy::default())),
            metrics: metrics.clone(),
            instance: "c1".into(),
            leaving: Shutdown::default(),
            beside: Vec::new(),
            config: EdgeConfig { lease_ms: LEASE_MS, heartbeat_ms: LEASE_MS / 3, ..EdgeConfig::default() },
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(coordinator_edge::serve(listener, edge, shutdown.clone()));
        Self { surface, address, dir, metrics, shutdown }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until so many polls have begun, and so many of them are under way.
    pub async fn until_polls(&self, begun: u64, under_way: u64) {
        let [began, ended] = [&WORKER_POLLS, &WORKER_POLLS_ENDED].map(|what| self.metrics.counter(what));
        while began.get() < begun || began.get() - ended.get() != under_way {
            pause().await;
        }
    }

    /// Creates a task of the type `t` in the queue `t`.
    pub async fn create(&self, payload: &'static str) -> TaskId {
        let created = TaskCreated {
            task_type: "t".into(),
            queue: "t".into(),
            creator: "c".into(),
            priority: 4,
            deadline: None,
            not_before: None,
            payload_hash: Sha256Hash::of(payload.as_bytes()),
            hash_form: HashForm::PlainSha256,
            payload_ref: None,
            business_key: None,
            labels: Default::default(),
            concurrency_key: None,
            timeouts: Timeouts { start_to_close_ms: 60_000, schedule_to_start_ms: None },
            max_retries: 3,
            trace_given: false,
            key_hash: None,
            request_hash: None,
        };
        let task = NewTask { created, trace_id: Default::default(), sampling: Default::default() };
        let create = CreateTask { task, key: None, payload: Some(payload.into()), parent: None };
        let answer = self.surface.create(create, Placement::default()).await;
        let Answer::Created { task_id, .. } = answer else { panic!("{answer:?}") };
        task_id
    }

    pub async fn seen(&self, task: TaskId) -> SnapshotRow {
        let Answer::Task(seen) = self.surface.about(task, Command::Get { task }).await else {
            panic!("{task} is not told")
        };
        seen.row
    }

    /// The task once it is terminal.
    pub async fn ended(&self, task: TaskId) -> SnapshotRow {
        let Answer::Task(seen) = self.surface.await_task(task, 30_000).await else { panic!("{task} is not told") };
        seen.row
    }

    pub async fn succeeded(&self, task: TaskId) -> SnapshotRow {
        let seen = self.ended(task).await;
        assert_eq!(seen.core.state, TaskState::Success, "{seen:?}");
        seen
    }

    pub async fn until(&self, task: TaskId, state: TaskState) -> SnapshotRow {
        loop {
            let seen = self.seen(task).await;
            if seen.core.state == state {
                return seen;
            }
            pause().await;
        }
    }
}

/// Until a condition is looked at again.
async fn pause() {
    SystemClock.sleep_until(SystemClock.boot_ms() + 20).await;
}

/// What a proxy does with a request that holds a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lose {
    /// It does not arrive.
    Request,
    /// It arrives, and its answer does not come back.
    Answer,
}

/// Passes connections on, and loses so many requests or answers.
#[derive(Clone)]
pub struct Proxy {
    pub address: SocketAddr,
    losing: Arc<Mutex<(&'static str, Lose, u32)>>,
}

impl Proxy {
    pub async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let losing = Arc::new(Mutex::new(("", Lose::Request, 0)));
        let proxy = Self { address, losing };
        let accepting = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(to).await {
                    tokio::spawn(accepting.clone().pass_on(client, server));
                }
            }
        });
        proxy
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn lose(&self, with: &'static str, what: Lose, times: u32) {
        *self.losing.lock() = (with, what, times);
    }

    pub fn left(&self) -> u32 {
        self.losing.lock().2
    }

    fn loses(&self, bytes: &[u8]) -> Option<Lose> {
        let mut losing = self.losing.lock();
        let (with, what, times) = *losing;
        let found = times > 0 && bytes.windows(with.len().max(1)).any(|w| w == with.as_bytes());
        losing.2 -= u32::from(found);
        found.then_some(what)
    }

    async fn pass_on(self, mut client: TcpStream, mut server: TcpStream) {
        let (mut up, mut down) = (vec![0; 1 << 20], vec![0; 1 << 20]);
        let mut loses_answer = false;
        loop {
            tokio::select! {
                read = client.read(&mut up) => {
                    let Ok(n @ 1..) = read else { return };
                    match self.loses(&up[..n]) {
                        Some(Lose::Request) => return,
                        Some(Lose::Answer) => loses_answer = true,
                        None => {}
                    }
                    if server.write_all(&up[..n]).await.is_err() { return }
                }
                read = server.read(&mut down) => {
                    let Ok(n @ 1..) = read else { return };
                    if loses_answer || client.write_all(&down[..n]).await.is_err() { return }
                }
            }
        }
    }
}
