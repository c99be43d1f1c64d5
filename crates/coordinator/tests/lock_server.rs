//! An owner on a real lock server that is flushed, killed and started again: tasks flow or pause as they
//! are told to, and the locks of live attempts are there again as soon as it is back.

use assignment_lock::conformance::server::RedisServer;
use assignment_lock::{RedisConfig, RedisLock};
use coordinator::owner::{Answer, CreateTask, Freeze, Identity, LockUnavailablePolicy, OwnerConfig, OwnerRules, Ports};
use coordinator::service::Service;
use coordinator::surface::{Placement, Surface};
use event_log::{Durability, EmbeddedConfig, EmbeddedLog};
use service_kit::{Clock as _, Metrics, Shutdown, SystemClock, SystemEntropy};
use snapshot_store::MemoryStore;
use task_core::decide::NewTask;
use task_events::{HashForm, Incarnation, Sha256Hash, TaskCreated, Timeouts};
use tokio::task::JoinHandle;
use worker_protocol::{Assignment, Poll, PollAnswer, Report, ReportAnswer, ReportBody};

struct Running {
    surface: Surface<SystemClock>,
    metrics: Metrics,
    shutdown: Shutdown,
    ended: JoinHandle<()>,
    config: RedisConfig,
    _dir: tempfile::TempDir,
}

impl Running {
    async fn start(server: &RedisServer, lock_unavailable: LockUnavailablePolicy) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = EmbeddedConfig::new(dir.path(), 1);
        config.durability = Durability::Volatile;
        let log = EmbeddedLog::open(config).expect("a log");
        let config = server.config();
        let lock = RedisLock::connect(&config).expect("settings");
        let surface = Surface::new(1, SystemClock);
        let (metrics, shutdown) = (Metrics::default(), Shutdown::default());
        let service = Service {
            spans: Default::default(),
            ports: Ports { log, store: MemoryStore::default(), lock, clock: SystemClock },
            cfg: OwnerConfig { lock_unavailable, lock_ttl_ms: 3_000, ..OwnerConfig::default() },
            rules: OwnerRules::STANDARD,
            fold_rules: &task_core::STANDARD,
            identity: Identity { instance: "a".into(), incarnation: Incarnation(1), url: "a".into() },
            entropy: SystemEntropy::default(),
            metrics: metrics.clone(),
            freeze: Freeze::default(),
            surface: surface.clone(),
        };
        let stop = shutdown.clone();
        let ended = tokio::spawn(async move { service.run(stop).await.expect("a clean end") });
        until("an owner", || surface.owned().len() == 1).await;
        Self { surface, metrics, shutdown, ended, config, _dir: dir }
    }

    async fn create(&self) {
        let answer = self.surface.create(task(), Placement::default()).await;
        assert!(matches!(answer, Answer::Created { .. }), "{answer:?}");
    }

    async fn poll(&self, worker: &str, held: &[&Assignment], wait_ms: u64) -> Option<Assignment> {
        let poll = Poll {
            worker_id: worker.into(),
            incarnation: Incarnation(1),
            handler_version: "v".into(),
            queues: vec!["q".into()],
            free_slots: 1,
            held: held.iter().map(|assignment| assignment.attempt.execution_id).collect(),
            wait_ms,
        };
        let answer = self.surface.poll(poll).await;
        let PollAnswer::Work { mut assignments, .. } = answer else { panic!("{answer:?}") };
        assignments.pop()
    }

    async fn report(&self, worker: &str, of: &Assignment, body: ReportBody) {
        let report = Report { attempt: of.attempt, worker_id: worker.into(), body };
        assert_eq!(self.surface.report(report).await, ReportAnswer::Accepted);
    }

    async fn runs(&self, worker: &str) -> Assignment {
        self.create().await;
        let assignment = self.poll(worker, &[], 10_000).await.expect("work");
        self.report(worker, &assignment, ReportBody::Starting { start_time: 0, memory_usage_percent: 1 }).await;
        assignment
    }

    fn holder(&self, server: &RedisServer, of: &Assignment) -> Option<String> {
        server.run(&format!("GET {}task:{}:assignee", self.config.key_prefix, of.task_id))
    }

    fn is_away(&self) -> bool {
        self.metrics.alarms().get("lock_unavailable").is_some_and(|alarm| alarm.active)
    }

    fn count(&self, name: &str) -> u64 {
        self.metrics.counters().get(name).copied().unwrap_or(0)
    }

    async fn end(self) {
        self.shutdown.request();
        self.ended.await.expect("it ends");
    }
}

fn task() -> CreateTask {
    let created = TaskCreated {
        task_type: "t".into(),
        queue: "q".into(),
        creator: "c".into(),
        priority: 4,
        deadline: None,
        not_before: None,
        payload_hash: Sha256Hash::of(b"p"),
        hash_form: HashForm::PlainSha256,
        payload_ref: Some("p".into()),
        business_key: None,
        labels: Default::default(),
        concurrency_key: None,
        timeouts: Timeouts { start_to_close_ms: 600_000, schedule_to_start_ms: None },
        max_retries: 3,
        trace_given: false,
        key_hash: None,
        request_hash: None,
    };
    CreateTask {
        task: NewTask { created, trace_id: Default::default(), sampling: Default::default() },
        key: None,
        payload: None,
        parent: None,
    }
}

fn success() -> ReportBody {
    ReportBody::Success {
        result_data_hash: Sha256Hash::of(b"r"),
        execution_time_ms: 1,
        steps_done: Vec::new(),
        memory_usage_percent: 1,
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let limit = SystemClock.boot_ms() + 60_000;
    while !holds() {
        assert!(SystemClock.boot_ms() < limit, "never came: {what}");
        SystemClock.sleep_until(SystemClock.boot_ms() + 5).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_flow_without_it_and_locks_are_back_when_it_is() {
    let mut server = RedisServer::start(&[]);
    let owner = Running::start(&server, LockUnavailablePolicy::FenceOnly).await;
    let first = owner.runs("w1").await;
    assert_eq!(owner.holder(&server, &first).as_deref(), Some("w1#1"));

    server.run::<()>("FLUSHALL");
    until("the lock again", || owner.holder(&server, &first).is_some()).await;
    // The owner hears of it after the server has it.
    until("the loss is counted", || owner.count("lock_lost_total") > 0).await;
    assert!(!owner.is_away(), "it was never away");

    server.kill();
    let second = owner.runs("w2").await;
    let third = owner.runs("w3").await;
    until("the alarm", || owner.is_away()).await;
    owner.report("w3", &third, success()).await;
    server.restart();
    until("the alarm's end", || !owner.is_away()).await;
    for (of, holder) in [(&first, "w1#1"), (&second, "w2#1")] {
        until("its lock", || owner.holder(&server, of).as_deref() == Some(holder)).await;
    }
    assert_eq!(owner.holder(&server, &third), None, "that attempt is over");
    assert_eq!(owner.metrics.alarms()["lock_unavailable"].count, 1, "told once");

    owner.report("w1", &first, success()).await;
    until("the release", || owner.holder(&server, &first).is_none()).await;
    owner.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_pause_hand_outs_wait_for_it_and_nothing_else_does() {
    let mut server = RedisServer::start(&[]);
    let owner = Running::start(&server, LockUnavailablePolicy::Pause).await;
    let first = owner.runs("w1").await;
    server.kill();
    until("the alarm", || owner.is_away()).await;
    owner.create().await;
    owner.report("w1", &first, success()).await;
    assert!(owner.poll("w2", &[], 500).await.is_none(), "nothing is handed out");
    server.restart();
    let second = owner.poll("w2", &[], 30_000).await.expect("work");
    assert_eq!(owner.holder(&server, &second).as_deref(), Some("w2#1"));
    owner.end().await;
}
