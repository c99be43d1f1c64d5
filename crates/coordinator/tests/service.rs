//! Instances on real clocks and a real log: handing over at a stop, and passing requests on to the
//! instance that owns the partition, as bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use assignment_lock::MemoryLock;
use coordinator::forwarding::{
    decode_answer, decode_ask, decode_command, decode_seen, encode_answer, encode_ask, encode_command, encode_seen,
};
use coordinator::owner::{Answer, Command, CreateTask, FindBy, Freeze, Identity, OwnerConfig, OwnerRules, Ports, Why};
use coordinator::service::Service;
use coordinator::surface::{Peers, Placement, Surface, WorkersAsk, WorkersTold};
use event_log::{Durability, EmbeddedConfig, EmbeddedLog, EventLog as _};
use futures::future::join_all;
use parking_lot::Mutex;
use service_kit::{Clock as _, Metrics, Shutdown, SystemClock, SystemEntropy};
use snapshot_store::MemoryStore;
use task_core::decide::NewTask;
use task_events::{
    HashForm, Incarnation, PartitionId, RunNo, Sha256Hash, TaskCreated, TaskId, TaskState, Text, Timeouts,
};
use tokio::task::JoinHandle;
use worker_protocol::{Poll, PollAnswer, Report, ReportAnswer, ReportBody};

/// Other instances in this process, reached through bytes.
#[derive(Clone, Default)]
struct InProcess {
    me: Text,
    all: Arc<Mutex<BTreeMap<Text, Surface<SystemClock, InProcess>>>>,
    asked: Arc<Mutex<u32>>,
    /// What the others are said to have, of every queue.
    ready: Arc<Mutex<Option<u64>>>,
}

impl InProcess {
    fn others(&self) -> Vec<(Text, Surface<SystemClock, Self>)> {
        let all = self.all.lock();
        all.iter().filter(|(name, _)| **name != self.me).map(|(name, s)| (name.clone(), s.clone())).collect()
    }
}

impl Peers for InProcess {
    fn ask(&self, partition: PartitionId, command: &Command) -> impl Future<Output = Option<Answer>> + Send {
        let owner = self.others().into_iter().find(|(_, surface)| surface.owned().contains(&partition));
        let bytes = encode_command(command).expect("it can be passed on");
        async move {
            let (_, surface) = owner?;
            let answer = surface.ask_here(partition, &decode_command(&bytes).expect("a command")).await;
            Some(decode_answer(&encode_answer(&answer).expect("it can be passed back")).expect("an answer"))
        }
    }

    fn owned(&self) -> Vec<PartitionId> {
        self.others().iter().flat_map(|(_, surface)| surface.owned()).collect()
    }

    fn instances(&self) -> Vec<Text> {
        self.others().into_iter().map(|(name, _)| name).collect()
    }

    fn ready(&self, _: &Text, _: &[Text]) -> Option<u64> {
        *self.ready.lock()
    }

    fn poll(&self, instance: &Text, poll: &Poll) -> impl Future<Output = Option<PollAnswer>> + Send {
        *self.asked.lock() += 1;
        let surface = self.all.lock().get(instance).cloned();
        let bytes = encode_command(&Command::Poll(poll.clone())).expect("it can be passed on");
        async move {
            let Command::Poll(poll) = decode_command(&bytes).expect("a command") else { return None };
            assert_eq!(poll.wait_ms, 0);
            Some(surface?.poll_here(poll).await)
        }
    }

    fn workers(&self, ask: &WorkersAsk) -> impl Future<Output = WorkersTold> + Send {
        let bytes = encode_ask(ask).expect("it can be passed on");
        let told = self.others().into_iter().map(|(name, surface)| {
            let seen = surface.workers_here(&decode_ask(&bytes).expect("an ask"));
            (name, decode_seen(&encode_seen(&seen).expect("it can be passed back")).ok())
        });
        std::future::ready(told.collect())
    }
}

struct Instance {
    surface: Surface<SystemClock, InProcess>,
    peers: InProcess,
    shutdown: Shutdown,
    ended: JoinHandle<()>,
}

struct World {
    _dir: tempfile::TempDir,
    log: EmbeddedLog,
    store: MemoryStore,
    lock: MemoryLock,
    all: Arc<Mutex<BTreeMap<Text, Surface<SystemClock, InProcess>>>>,
}

impl World {
    fn new(partitions: u16) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = EmbeddedConfig::new(dir.path(), partitions);
        config.durability = Durability::Volatile;
        let log = EmbeddedLog::open(config).expect("a log");
        let (store, lock) = (MemoryStore::default(), MemoryLock::new(|| SystemClock.boot_ms()));
        Self { _dir: dir, log, store, lock, all: Arc::default() }
    }

    fn start(&self, name: &'static str) -> Instance {
        let peers = InProcess { me: name.into(), all: self.all.clone(), asked: Arc::default(), ready: Arc::default() };
        let surface = Surface::with_peers(self.log.partition_count(), SystemClock, peers.clone());
        self.all.lock().insert(name.into(), surface.clone());
        let shutdown = Shutdown::default();
        let (log, store, lock) = (self.log.clone(), self.store.clone(), self.lock.clone());
        let service = Service {
            spans: Default::default(),
            ports: Ports { log, store, lock, clock: SystemClock },
            cfg: OwnerConfig::default(),
            rules: OwnerRules::STANDARD,
            fold_rules: &task_core::STANDARD,
            identity: Identity { instance: name.into(), incarnation: Incarnation(1), url: name.into() },
            entropy: SystemEntropy::default(),
            metrics: Metrics::default(),
            freeze: Freeze::default(),
            surface: surface.clone(),
        };
        let stop = shutdown.clone();
        let ended = tokio::spawn(async move { service.run(stop).await.expect("a clean end") });
        Instance { surface, peers, shutdown, ended }
    }
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
        business_key: Some("order".into()),
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

fn poll(worker: &str, free_slots: u32, wait_ms: u64) -> Poll {
    Poll {
        worker_id: worker.into(),
        incarnation: Incarnation(1),
        handler_version: "v".into(),
        queues: vec!["q".into()],
        free_slots,
        held: Vec::new(),
        wait_ms,
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

async fn created(surface: &Surface<SystemClock, InProcess>, n: u64, placement: Placement) -> TaskId {
    let answer = surface.create(task(n), placement).await;
    let Answer::Created { task_id, .. } = answer else { panic!("{answer:?}") };
    task_id
}

fn state(answer: &Answer) -> Option<TaskState> {
    let Answer::Task(seen) = answer else { return None };
    Some(seen.row.core.state)
}

fn beside(partition: PartitionId) -> Placement {
    Placement { same_partition_as: TaskId::from_parts(1, partition, 1), ..Placement::default() }
}

// Backlogs are of all queues, and most of them are not the worker's.
#[tokio::test]
async fn a_free_slot_finds_the_one_task_of_its_queue_in_whatever_partition() {
    let world = World::new(4);
    let a = world.start("a");
    until("a owns all", || a.surface.owned().len() == 4).await;
    for partition in (0..4).map(PartitionId) {
        for n in 0..20 {
            let mut other = task(n);
            other.task.created.queue = "other".into();
            let answer = a.surface.create(other, beside(partition)).await;
            assert!(matches!(answer, Answer::Created { .. }), "{answer:?}");
        }
        for n in 0..3 {
            created(&a.surface, n, beside(partition)).await;
        }
    }
    let mut held = Vec::new();
    let mut tasks = BTreeSet::new();
    // Polls that do not wait: one slot at a time, then all that is left at once.
    for free_slots in [1, 1, 1, 1, 1, 1, 1, 1, 64] {
        let ask = Poll { held: held.clone(), ..poll("w", free_slots, 0) };
        let PollAnswer::Work { assignments, stop } = a.surface.poll(ask).await else { panic!("no work") };
        assert_eq!((assignments.len(), stop.len()), (if free_slots == 1 { 1 } else { 4 }, 0));
        held.extend(assignments.iter().map(|assignment| assignment.attempt.execution_id));
        tasks.extend(assignments.iter().map(|assignment| assignment.task_id));
    }
    assert_eq!(tasks.len(), 12);
    a.shutdown.request();
    a.ended.await.expect("it ends");
}

// The owner that has the queue's tasks gave all of its share, and the others have none to give.
#[tokio::test]
async fn slots_that_other_owners_cannot_use_go_to_the_one_that_can() {
    let world = World::new(2);
    let a = world.start("a");
    until("a owns both", || a.surface.owned().len() == 2).await;
    for n in 0..20 {
        created(&a.surface, n, beside(PartitionId(0))).await;
        let mut other = task(n);
        other.task.created.queue = "other".into();
        let answer = a.surface.create(other, beside(PartitionId(1))).await;
        assert!(matches!(answer, Answer::Created { .. }), "{answer:?}");
    }
    let PollAnswer::Work { assignments, .. } = a.surface.poll(poll("w", 8, 0)).await else { panic!("no work") };
    assert_eq!(assignments.iter().map(|a| a.task_id).collect::<BTreeSet<_>>().len(), 8);
    a.shutdown.request();
    a.ended.await.expect("it ends");
}

#[tokio::test]
async fn a_stop_answers_everybody_and_acknowledges_nothing_afterwards() {
    let world = World::new(2);
    let a = world.start("a");
    until("a owns both", || a.surface.owned().len() == 2).await;
    let first = created(&a.surface, 0, Placement::default()).await;
    let status = a.surface.status();
    assert_eq!((status.partitions, status.assigned.len()), (2, 2));
    until("it is seen", || a.surface.status().assigned.values().map(|p| p.open_tasks).sum::<usize>() == 1).await;
    let surface = a.surface.clone();
    // Of another queue: it waits, and so does whoever waits for the end of a task.
    let long = Poll { queues: vec!["other".into()], ..poll("w", 1, 60_000) };
    let long = tokio::spawn({
        let surface = surface.clone();
        async move { surface.poll(long).await }
    });
    let wait = tokio::spawn({
        let surface = surface.clone();
        async move { surface.await_task(first, 60_000).await }
    });
    let creates: Vec<_> = (1..200)
        .map(|n| {
            let surface = surface.clone();
            tokio::spawn(async move { surface.create(task(n), Placement::default()).await })
        })
        .collect();
    tokio::task::yield_now().await;
    let asked = SystemClock.boot_ms();
    a.shutdown.request();
    assert_eq!(long.await.expect("it ends"), PollAnswer::Unavailable);
    let waited = wait.await.expect("it ends");
    assert!(matches!(waited, Answer::Unavailable(Why::Draining | Why::NotOwner)), "{waited:?}");
    let answers: Vec<_> = join_all(creates).await.into_iter().map(|answer| answer.expect("it ends")).collect();
    a.ended.await.expect("it ends");
    assert!(SystemClock.boot_ms() - asked < 3_000, "took {} ms", SystemClock.boot_ms() - asked);
    let after = surface.create(task(900), Placement::default()).await;
    assert_eq!(after, Answer::Unavailable(Why::NotOwner));
    assert_eq!(surface.poll(poll("w", 1, 60_000)).await, PollAnswer::Unavailable);
    world.all.lock().clear();

    // What was acknowledged is there, and nothing else: a stop leaves nothing of unknown outcome.
    let b = world.start("b");
    until("b owns both", || b.surface.owned().len() == 2).await;
    let mut acknowledged = 1;
    for answer in answers {
        if let Answer::Created { task_id, .. } = answer {
            acknowledged += 1;
            let seen = b.surface.about(task_id, Command::Get { task: task_id }).await;
            assert_eq!(state(&seen), Some(TaskState::Created));
        } else {
            assert!(matches!(answer, Answer::Unavailable(Why::Draining | Why::NotOwner)), "{answer:?}");
        }
    }
    until("it is seen", || b.surface.status().assigned.values().map(|p| p.open_tasks).sum::<usize>() == acknowledged)
        .await;
    b.shutdown.request();
    b.ended.await.expect("it ends");
}

#[tokio::test]
async fn a_request_reaches_the_owner_wherever_it_comes_in() {
    let world = World::new(2);
    let a = world.start("a");
    until("a owns both", || a.surface.owned().len() == 2).await;
    let b = world.start("b");
    until("each owns one", || a.surface.owned().len() == 1 && b.surface.owned().len() == 1).await;
    let of_a = a.surface.owned()[0];
    let task_id = created(&b.surface, 1, beside(of_a)).await;
    assert_eq!(task_id.partition(), of_a);
    let get = Command::Get { task: task_id };
    assert_eq!(state(&b.surface.about(task_id, get.clone()).await), Some(TaskState::Created));
    // One hop, never two.
    assert_eq!(b.surface.ask_here(of_a, &get).await, Answer::Unavailable(Why::NotOwner));
    let by = FindBy::BusinessKey { creator: "c".into(), key: "order".into() };
    let found = b.surface.find(by, 10).await;
    assert_eq!(found.len(), 2);
    assert!(matches!(&found[&of_a], Answer::Found(found) if found.len() == 1), "{found:?}");
    // A worker at b gets a's task, and reports there.
    let PollAnswer::Work { assignments, .. } = b.surface.poll(poll("w", 2, 5_000)).await else { panic!() };
    let [assignment] = &assignments[..] else { panic!("{assignments:?}") };
    let wait = tokio::spawn({
        let surface = b.surface.clone();
        async move { surface.await_task(task_id, 60_000).await }
    });
    let body = ReportBody::Success {
        result_data_hash: Sha256Hash::of(b"r"),
        execution_time_ms: 1,
        steps_done: Vec::new(),
        memory_usage_percent: 1,
    };
    let report = Report { attempt: assignment.attempt, worker_id: "w".into(), body };
    assert_eq!(b.surface.report(report).await, ReportAnswer::Accepted);
    assert_eq!(state(&wait.await.expect("it ends")), Some(TaskState::Success));
    // While it has nothing it is asked once a second, however many poll.
    let before = *b.peers.asked.lock();
    let polls = (0..20).map(|n| {
        let (surface, worker) = (b.surface.clone(), format!("v{n}"));
        async move { surface.poll(poll(&worker, 1, 2_500)).await }
    });
    join_all(polls).await;
    let asked = *b.peers.asked.lock() - before;
    assert!((1..=5).contains(&asked), "{asked}");
    // One that says it has something is asked at once, and again and again, but not by each of them.
    *b.peers.ready.lock() = Some(1);
    let before = *b.peers.asked.lock();
    let polls = (0..20).map(|n| {
        let (surface, worker) = (b.surface.clone(), format!("v{n}"));
        async move { surface.poll(poll(&worker, 1, 1_000)).await }
    });
    join_all(polls).await;
    let asked = *b.peers.asked.lock() - before;
    assert!((3..=11).contains(&asked), "{asked}");
    a.shutdown.request();
    b.shutdown.request();
    a.ended.await.expect("it ends");
    b.ended.await.expect("it ends");
}

#[tokio::test]
async fn a_wait_goes_on_at_the_next_owner() {
    let world = World::new(1);
    let a = world.start("a");
    until("a owns it", || a.surface.owned().len() == 1).await;
    let b = world.start("b");
    // b owns nothing, and creates all the same.
    let task_id = created(&b.surface, 1, Placement::default()).await;
    let wait = tokio::spawn({
        let surface = b.surface.clone();
        async move { surface.await_task(task_id, 30_000).await }
    });
    SystemClock.sleep_until(SystemClock.boot_ms() + 50).await;
    a.shutdown.request();
    a.ended.await.expect("it ends");
    world.all.lock().remove("a");
    until("b owns it", || b.surface.owned().len() == 1).await;
    assert!(!wait.is_finished());
    let cancel = Command::Cancel { task: task_id, actor: "me".into(), reason: "x".into() };
    assert_eq!(b.surface.about(task_id, cancel).await, Answer::CancelAccepted);
    assert_eq!(state(&wait.await.expect("it ends")), Some(TaskState::Cancelled));
    let run_no = RunNo(1);
    let closed = b.surface.about(task_id, Command::Cancel { task: task_id, actor: "me".into(), reason: "x".into() });
    assert_eq!(closed.await, Answer::TaskClosed { state: TaskState::Cancelled, run_no });
    b.shutdown.request();
    b.ended.await.expect("it ends");
}

#[tokio::test]
async fn a_place_beside_another_partition_than_the_keys_is_refused() {
    let world = World::new(4);
    let a = world.start("a");
    until("a owns all", || a.surface.owned().len() == 4).await;
    let key = Text::from("k");
    let of_key = a.surface.partition_of_key(&key);
    let other = PartitionId((of_key.0 + 1) % 4);
    let mut keyed = task(1);
    keyed.task.created.concurrency_key = Some(key.clone());
    let refused = a.surface.create(keyed.clone(), beside(other)).await;
    assert_eq!(refused, Answer::PlacementConflict { beside: other, of_key });
    for placement in [beside(of_key), Placement::default()] {
        let answer = a.surface.create(keyed.clone(), placement).await;
        assert!(matches!(answer, Answer::Created { task_id, .. } if task_id.partition() == of_key), "{answer:?}");
    }
    a.shutdown.request();
    a.ended.await.expect("it ends");
}
