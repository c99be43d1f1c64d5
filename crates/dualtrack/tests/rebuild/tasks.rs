//! Tasks of every kind of end, by production owners, engine and replayer on whatever ports.

use assignment_lock::MemoryLock;
use bytes::Bytes;
use coordinator::owner::{Answer, Command, CreateTask, Identity, Key, OwnerConfig, OwnerRules, Ports};
use coordinator::service::Service;
use coordinator::surface::{Placement, Surface};
use event_log::{AppendOutcome, EventLog, OutRecord};
use service_kit::{Clock as _, Metrics, Shutdown, SystemClock, SystemEntropy};
use snapshot_store::SnapshotStore;
use task_core::decide::NewTask;
use task_events::{
    ErrorCategory, HashForm, Incarnation, PartitionId, Sha256Hash, StepDone, TaskCreated, TaskId, TaskState, Text,
    Timeouts,
};
use worker_protocol::{Assignment, Poll, PollAnswer, Report, ReportBody};

use crate::PARTITIONS;
use crate::compare::records;

const TASKS: u8 = 40;

// What task `n` of a round is known by.
fn hash_of(round: u8, n: u8) -> Sha256Hash {
    Sha256Hash::of(&[round, n])
}

fn create(round: u8, n: u8) -> CreateTask {
    let hash = hash_of(round, n);
    let key = n.is_multiple_of(5).then_some(Key { key_hash: hash, request_hash: hash });
    let trace_given = n.is_multiple_of(3);
    let created = TaskCreated {
        task_type: "t".into(),
        // Nobody serves the other queue: those tasks stay open.
        queue: if n % 8 == 7 { "nobody's" } else { "q" }.into(),
        creator: "c".into(),
        priority: n % 10,
        deadline: None,
        not_before: None,
        payload_hash: hash,
        hash_form: HashForm::PlainSha256,
        payload_ref: Some("ref".into()),
        business_key: n.is_multiple_of(4).then(|| Text::from(format!("order-{}", n % 3))),
        labels: [("n".into(), n.to_string().into())].into_iter().collect(),
        concurrency_key: None,
        timeouts: Timeouts { start_to_close_ms: 60_000, schedule_to_start_ms: None },
        max_retries: u32::from(n % 2),
        trace_given,
        key_hash: key.map(|key| key.key_hash),
        request_hash: key.map(|key| key.request_hash),
    };
    let trace_id = if trace_given { Text::from(format!("trace-{}", n % 4)) } else { Text::from(format!("own-{n}")) };
    CreateTask { task: NewTask { created, trace_id, sampling: Default::default() }, key, payload: None, parent: None }
}

/// Creates tasks, works on them until all that can end have, and stops: every row is acknowledged then, and
/// there is a checkpoint of each partition. Which tasks these were. Another round may follow.
pub async fn run<L: EventLog, S: SnapshotStore>(log: &L, store: &S, round: u8) -> Vec<TaskId> {
    let surface = Surface::new(PARTITIONS, SystemClock);
    let incarnation = Incarnation(7 + i64::from(round));
    let service = Service {
        spans: Default::default(),
        ports: Ports {
            log: log.clone(),
            store: store.clone(),
            lock: MemoryLock::new(|| SystemClock.boot_ms()),
            clock: SystemClock,
        },
        cfg: OwnerConfig::default(),
        rules: OwnerRules::STANDARD,
        fold_rules: &task_core::STANDARD,
        identity: Identity { instance: "c".into(), incarnation, url: "c".into() },
        entropy: SystemEntropy::default(),
        metrics: Metrics::default(),
        freeze: Default::default(),
        surface: surface.clone(),
    };
    let (stop_pens, stop_owner) = (Shutdown::default(), Shutdown::default());
    let owner = tokio::spawn(service.run(stop_owner.clone()));
    let deps = task_engine::Deps {
        standings: Default::default(),
        log: log.clone(),
        clock: SystemClock,
        metrics: Metrics::default(),
        entropy: Box::new(SystemEntropy::default()),
        source: verdict_writer::FoldSource::from_the_start(),
    };
    let config = task_engine::EngineConfig::new("e".into(), incarnation);
    let engine = tokio::spawn(task_engine::run(deps, config, stop_pens.clone()));
    let deps = auto_replay::Deps {
        standings: Default::default(),
        log: log.clone(),
        store: store.clone(),
        clock: SystemClock,
        metrics: Metrics::default(),
        source: verdict_writer::FoldSource::from_the_start(),
    };
    let config = auto_replay::ReplayConfig::new("r".into(), incarnation);
    let replayer = tokio::spawn(auto_replay::run(deps, config, stop_pens.clone()));

    let limit = SystemClock.boot_ms() + 60_000;
    while surface.owned().len() < usize::from(PARTITIONS) {
        assert!(SystemClock.boot_ms() < limit, "there are no owners");
        SystemClock.sleep_until(SystemClock.boot_ms() + 20).await;
    }
    // The round before paused it.
    for partition in (0..PARTITIONS).map(PartitionId).filter(|_| round > 0) {
        let command = Command::Queue { queue: "q".into(), pause: false, actor: "a".into(), reason: "r".into() };
        assert_eq!(surface.ask(partition, command).await, Answer::QueueChanged);
    }
    let mut ids = Vec::new();
    for n in 0..TASKS {
        let created = surface.create(create(round, n), Placement::default()).await;
        let Answer::Created { task_id, .. } = created else { panic!("{created:?}") };
        ids.push(task_id);
    }
    let served = ids.iter().zip(0..).filter(|(_, n)| n % 8 != 7).count();
    work(&surface, round, served).await;
    let cancel = Command::Cancel { task: ids[15], actor: "a".into(), reason: "r".into() };
    assert_eq!(surface.about(ids[15], cancel).await, Answer::CancelAccepted);
    let Answer::Task(seen) = surface.await_task(ids[15], 30_000).await else { panic!("it is known") };
    assert_eq!(seen.row.core.state, TaskState::Cancelled);
    again(log).await;
    let last = surface.create(create(round, TASKS + 7), Placement::default()).await;
    let Answer::Created { task_id, .. } = last else { panic!("{last:?}") };
    ids.push(task_id);
    stop_pens.request();
    engine.await.expect("no panic").expect("it ends");
    replayer.await.expect("no panic").expect("it ends");
    for partition in (0..PARTITIONS).map(PartitionId) {
        // The owner has read back whatever others wrote once it answers with something of its own.
        let command = Command::Queue { queue: "q".into(), pause: true, actor: "a".into(), reason: "r".into() };
        assert_eq!(surface.ask(partition, command).await, Answer::QueueChanged);
        let end = log.range(partition).await.expect("a range").end;
        let limit = SystemClock.boot_ms() + 60_000;
        while store.acked(partition).await.expect("read") < end {
            assert!(SystemClock.boot_ms() < limit, "rows of partition {partition} below {end} are still owed");
            SystemClock.sleep_until(SystemClock.boot_ms() + 20).await;
        }
    }
    stop_owner.request();
    owner.await.expect("no panic").expect("it ends");
    ids
}

// Polls and reports until so many tasks have had an attempt that ended.
async fn work(surface: &Surface<SystemClock>, round: u8, tasks: usize) {
    let (limit, mut ended) = (SystemClock.boot_ms() + 120_000, std::collections::BTreeSet::new());
    while ended.len() < tasks {
        assert!(SystemClock.boot_ms() < limit, "{} of {tasks} were run", ended.len());
        for partition in (0..PARTITIONS).map(PartitionId) {
            let poll = Poll {
                worker_id: "w".into(),
                incarnation: Incarnation(1),
                handler_version: "v1".into(),
                queues: vec!["q".into()],
                free_slots: 16,
                held: Vec::new(),
                wait_ms: 100,
            };
            let answer = surface.ask(partition, Command::Poll(poll)).await;
            let Answer::Poll(PollAnswer::Work { assignments, .. }) = answer else { panic!("{answer:?}") };
            for assignment in assignments {
                let [of, n] = known(&assignment.payload_hash, round);
                handle(surface, n, &assignment).await;
                // Retries of the round before come as well.
                if of == round {
                    ended.insert(assignment.task_id);
                }
            }
        }
    }
}

// Which round's task it is, and its number.
fn known(hash: &Sha256Hash, last: u8) -> [u8; 2] {
    let mut all = (0..=last).flat_map(|round| (0..TASKS).map(move |n| [round, n]));
    all.find(|[round, n]| hash_of(*round, *n) == *hash).expect("one of ours")
}

// Runs an attempt to its end: a success, a failure that may be retried or not, a cancel on the way.
async fn handle(surface: &Surface<SystemClock>, n: u8, assignment: &Assignment) {
    let report = async |body| {
        let report = Report { attempt: assignment.attempt, worker_id: "w".into(), body };
        surface.report(report).await
    };
    report(ReportBody::Starting { start_time: SystemClock.wall_ms(), memory_usage_percent: 20 }).await;
    let step = StepDone { step: "one".into(), index: 0, output_hash: Sha256Hash::of(b"out"), is_idempotent: true };
    if n % 3 == 1 {
        report(ReportBody::Failure {
            error_code: "DISK_FULL".into(),
            error_message: "no space left".into(),
            category: if n.is_multiple_of(2) { ErrorCategory::NonRetryable } else { ErrorCategory::Transient },
            failed_step: Some("two".into()),
            is_idempotent: Some(false),
            execution_time_ms: 5,
            steps_done: vec![step],
            memory_usage_percent: 70,
        })
        .await;
        return;
    }
    if n % 3 == 2 && assignment.attempt.exec_epoch.0 == 1 {
        let cancel = Command::Cancel { task: assignment.task_id, actor: "a".into(), reason: "r".into() };
        assert_eq!(surface.about(assignment.task_id, cancel).await, Answer::CancelAccepted);
    }
    report(ReportBody::Success {
        result_data_hash: Sha256Hash::of(b"result"),
        execution_time_ms: 5,
        steps_done: vec![step],
        memory_usage_percent: 30,
    })
    .await;
}

// A foreign writer: every creation once more, which nobody accepts, and one record that is none.
async fn again<L: EventLog>(log: &L) {
    for partition in (0..PARTITIONS).map(PartitionId) {
        let mut copies: Vec<OutRecord> = records(log, partition)
            .await
            .into_iter()
            .filter(|raw| raw.event().is_ok_and(|event| event.kind == task_events::Kind::TaskCreated))
            .map(|raw| OutRecord {
                key: raw.key.unwrap_or_default(),
                headers: raw.headers.into_iter().filter_map(|(name, value)| header(&name).zip(Some(value))).collect(),
                value: raw.value.unwrap_or_default(),
            })
            .collect();
        assert!(!copies.is_empty(), "partition {partition} has tasks");
        copies.push(OutRecord { key: Bytes::from_static(b"1"), headers: Vec::new(), value: Bytes::new() });
        assert_eq!(log.append(partition, copies).await, AppendOutcome::Acknowledged);
    }
}

fn header(name: &str) -> Option<&'static str> {
    ["kind", "rule-version", "traceparent", "crc32c"].into_iter().find(|known| *known == name)
}
