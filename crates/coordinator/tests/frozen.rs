//! Two coordinators in one process, each on its own runtime with one thread. One is stopped by the
//! hook that blocks its thread, as SIGSTOP would; the other takes over; the first is thawed.
//! Nothing the zombie then writes counts, and it answers nobody as if it did.

use std::sync::Arc;
use std::time::Duration;

use assignment_lock::MemoryLock;
use coordinator::owner::{Answer, CreateTask, Freeze, Identity, OwnerConfig, OwnerRules, Ports};
use coordinator::service::Service;
use coordinator::surface::{Placement, Surface};
use event_log::{Durability, EmbeddedConfig, EmbeddedLog, EventLog as _, Tail as _};
use service_kit::{Clock as _, Metrics, Shutdown, SystemClock, SystemEntropy};
use snapshot_store::MemoryStore;
use task_core::decide::NewTask;
use task_core::{PartitionState, Reason, Record, Verdict};
use task_events::{HashForm, Incarnation, Kind, Offset, PartitionId, Sha256Hash, TaskCreated, TaskId, Timeouts};

struct Instance {
    surface: Surface<SystemClock>,
    freeze: Freeze,
    shutdown: Shutdown,
    thread: std::thread::JoinHandle<()>,
}

fn start(name: &'static str, incarnation: i64, log: EmbeddedLog, store: MemoryStore, lock: MemoryLock) -> Instance {
    let surface = Surface::new(log.partition_count(), SystemClock);
    let (freeze, shutdown) = (Freeze::default(), Shutdown::default());
    let service = Service {
        spans: Default::default(),
        ports: Ports { log, store, lock, clock: SystemClock },
        cfg: OwnerConfig::default(),
        rules: OwnerRules::STANDARD,
        fold_rules: &task_core::STANDARD,
        identity: Identity { instance: name.into(), incarnation: Incarnation(incarnation), url: name.into() },
        entropy: SystemEntropy::default(),
        metrics: Metrics::default(),
        freeze: freeze.clone(),
        surface: surface.clone(),
    };
    let stop = shutdown.clone();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(service.run(stop)).expect("a clean end");
    });
    Instance { surface, freeze, shutdown, thread }
}

fn task(n: u64) -> CreateTask {
    let created = TaskCreated {
        task_type: "t".into(),
        queue: "q".into(),
        creator: "c".into(),
        priority: 4,
        deadline: None,
        not_before: None,
        payload_hash: Sha256Hash::of(&n.to_be_bytes()),
        hash_form: HashForm::PlainSha256,
        payload_ref: Some(n.to_string().into()),
        business_key: None,
        labels: Default::default(),
        concurrency_key: None,
        timeouts: Timeouts { start_to_close_ms: 60_000, schedule_to_start_ms: None },
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

// Waits for a condition of the running instances, with a limit that only a defect reaches.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let limit = SystemClock.boot_ms() + 60_000;
    while !holds() {
        assert!(SystemClock.boot_ms() < limit, "never came: {what}");
        SystemClock.sleep_until(SystemClock.boot_ms() + 5).await;
    }
}

async fn create(surface: &Surface<SystemClock>, n: u64, partition: PartitionId) -> Answer {
    let beside = TaskId::from_parts(1, partition, 1);
    surface.create(task(n), Placement { same_partition_as: beside, ..Placement::default() }).await
}

#[tokio::test]
async fn a_frozen_owner_is_superseded_and_its_late_records_count_for_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut config = EmbeddedConfig::new(dir.path(), 2);
    config.session_timeout = Duration::from_millis(600);
    config.durability = Durability::Volatile;
    let log = EmbeddedLog::open(config).expect("a log");
    let (store, lock) = (MemoryStore::default(), MemoryLock::new(|| SystemClock.boot_ms()));
    let a = start("a", 1, log.clone(), store.clone(), lock.clone());
    until("a owns both", || a.surface.owned().len() == 2).await;
    let b = start("b", 2, log.clone(), store, lock);
    until("each owns one", || a.surface.owned().len() == 1 && b.surface.owned().len() == 1).await;
    let partition = a.surface.owned()[0];
    let before = create(&a.surface, 1, partition).await;
    assert!(matches!(before, Answer::Created { .. }), "{before:?}");

    // It stops with the request in its hands, so it goes on by acting on it.
    a.freeze.freeze_when_asked();
    let late = {
        let surface = a.surface.clone();
        tokio::spawn(async move { create(&surface, 2, partition).await })
    };
    until("a is frozen", || a.freeze.is_frozen()).await;
    until("b owns both", || b.surface.owned().len() == 2).await;
    let during = create(&b.surface, 3, partition).await;
    assert!(matches!(during, Answer::Created { .. }), "{during:?}");

    a.freeze.thaw();
    let late = late.await.expect("no panic");
    assert!(matches!(late, Answer::Unavailable(_) | Answer::OutcomeUnknown { .. }), "the zombie answered {late:?}");

    let (accepted, stale) = creates(&log, partition).await;
    assert_eq!(accepted, 2, "what was answered 201 and nothing else");
    assert_eq!(stale, 1, "the zombie's create is in the log, rejected");
    for instance in [a, b] {
        instance.shutdown.request();
        instance.thread.join().expect("a clean end");
    }
    log.close();
}

// Accepted TaskCreated, and TaskCreated rejected for their epoch.
async fn creates(log: &EmbeddedLog, partition: PartitionId) -> (usize, usize) {
    let end = log.range(partition).await.expect("a range").end;
    let mut tail = log.tail(partition, Offset(0)).await.expect("a tail");
    let mut fold = PartitionState::new(partition, false);
    let (mut accepted, mut stale) = (0, 0);
    while fold.next_offset < end {
        for raw in tail.next().await.expect("records") {
            let event = raw.event().expect("intact");
            let created = event.kind == Kind::TaskCreated;
            let key = raw.record_key();
            match fold.apply(&Record { offset: raw.offset, broker_ms: raw.broker_ms, key, event }) {
                Verdict::Accepted(_) => accepted += usize::from(created),
                Verdict::Rejected(Reason::StaleEpoch) => stale += usize::from(created),
                Verdict::Rejected(_) => {}
            }
        }
    }
    (accepted, stale)
}

#[test]
fn the_hook_stops_a_thread_until_it_is_thawed() {
    let freeze = Freeze::default();
    freeze.freeze();
    let passed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let thread = {
        let (freeze, passed) = (freeze.clone(), passed.clone());
        std::thread::spawn(move || {
            freeze.hold_here();
            passed.store(true, std::sync::atomic::Ordering::SeqCst);
        })
    };
    assert!(!passed.load(std::sync::atomic::Ordering::SeqCst));
    freeze.thaw();
    thread.join().expect("it goes on");
    assert!(passed.load(std::sync::atomic::Ordering::SeqCst));
}
