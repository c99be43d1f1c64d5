//! Histories: owner and store move, the replayer plans.

use std::future::{Future, pending, ready};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use parking_lot::Mutex;
use service_kit::testing::{Driven, ManualClock, ScriptedLog};
use snapshot_store::{
    CheckpointName, EndedPage, EndedSpan, KeyRow, PayloadItem, RowWrite, SnapshotRow, StoreError, TaskSummary,
};
use task_core::HistoryEntry;
use task_core::decide::RetryPolicy;
use task_events::{
    Body, ErrorCategory, Event, Incarnation, Offset, PartitionId, Service, Sha256Hash, TaskId, TaskReplayPlanned,
    TaskState, Text, Witness,
};
use verdict_writer::FoldSource;
use verdict_writer::testing::ScriptedOwner;

use super::*;

/// How the store behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Fine,
    Away,
    Hangs,
}

struct Rows {
    mood: Mood,
    rows: Vec<SnapshotRow>,
    reads: Vec<usize>,
}

#[derive(Clone)]
struct Store(Arc<Mutex<Rows>>);

type Answer<T> = Result<T, StoreError>;

impl SnapshotStore for Store {
    fn snapshots(&self, ids: Vec<TaskId>) -> impl Future<Output = Answer<Vec<Option<SnapshotRow>>>> + Send + 'static {
        let mut rows = self.0.lock();
        rows.reads.push(ids.len());
        let answer: BoxFuture<'static, _> = match rows.mood {
            Mood::Fine => {
                let find = |id: &TaskId| rows.rows.iter().find(|row| row.core.id == *id).cloned();
                ready(Ok(ids.iter().map(find).collect())).boxed()
            }
            Mood::Away => ready(Err(StoreError::Unavailable("away".into()))).boxed(),
            Mood::Hangs => pending().boxed(),
        };
        answer
    }

    fn write(&self, _: PartitionId, _: Vec<RowWrite>) -> impl Future<Output = Answer<()>> + Send + 'static {
        unused()
    }
    fn key(&self, _: Sha256Hash) -> impl Future<Output = Answer<Option<KeyRow>>> + Send + 'static {
        unused()
    }
    fn history_overflow(&self, _: TaskId) -> impl Future<Output = Answer<Vec<HistoryEntry>>> + Send + 'static {
        unused()
    }
    fn tasks_by_trace(&self, _: Text, _: usize) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        unused()
    }
    fn tasks_by_business_key(
        &self,
        _: Text,
        _: Text,
        _: usize,
    ) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        unused()
    }
    fn ended(&self, _: EndedSpan, _: usize) -> impl Future<Output = Answer<EndedPage>> + Send + 'static {
        unused()
    }
    fn ended_task(&self, _: TaskId) -> impl Future<Output = Answer<Option<TaskSummary>>> + Send + 'static {
        unused()
    }
    fn secret(&self, _: &'static str, _: [u8; 32]) -> impl Future<Output = Answer<[u8; 32]>> + Send + 'static {
        unused()
    }
    fn put_payloads(&self, _: Vec<(TaskId, PayloadItem, Bytes)>) -> impl Future<Output = Answer<()>> + Send + 'static {
        unused()
    }
    fn payloads(
        &self,
        _: Vec<(TaskId, PayloadItem)>,
    ) -> impl Future<Output = Answer<Vec<Option<Bytes>>>> + Send + 'static {
        unused()
    }
    fn put_acked(&self, _: PartitionId, _: Offset) -> impl Future<Output = Answer<()>> + Send + 'static {
        unused()
    }
    fn acked(&self, _: PartitionId) -> impl Future<Output = Answer<Offset>> + Send + 'static {
        unused()
    }
    fn put_chunk(&self, _: Sha256Hash, _: Bytes) -> impl Future<Output = Answer<()>> + Send + 'static {
        unused()
    }
    fn chunk(&self, _: Sha256Hash) -> impl Future<Output = Answer<Option<Bytes>>> + Send + 'static {
        unused()
    }
    fn publish(&self, _: CheckpointName, _: Bytes) -> impl Future<Output = Answer<()>> + Send + 'static {
        unused()
    }
    fn checkpoints(
        &self,
        _: PartitionId,
    ) -> impl Future<Output = Answer<Vec<(CheckpointName, Bytes)>>> + Send + 'static {
        unused()
    }
}

fn unused<T: Send + 'static>() -> BoxFuture<'static, Answer<T>> {
    panic!("the replayer reads snapshot rows and nothing else")
}

struct World {
    clock: ManualClock,
    metrics: Metrics,
    owner: ScriptedOwner,
    store: Store,
    replayer: Driven<Result<(), ReplayError>>,
}

fn config() -> ReplayConfig {
    ReplayConfig::new("r1".into(), Incarnation(5))
}

impl World {
    fn new(mood: Mood) -> Self {
        let log = ScriptedLog::new(1);
        let (clock, metrics) = (ManualClock::default(), Metrics::default());
        let store = Store(Arc::new(Mutex::new(Rows { mood, rows: Vec::new(), reads: Vec::new() })));
        let deps = Deps {
            log: log.clone(),
            store: store.clone(),
            clock: clock.clone(),
            metrics: metrics.clone(),
            standings: Standings::default(),
            source: FoldSource::from_the_start(),
        };
        let replayer = Driven::new(run(deps, config(), Shutdown::default()));
        log.assign(&[0]);
        let owner = ScriptedOwner::claim(&log);
        Self { clock, metrics, owner, store, replayer }
    }

    /// A task that failed after `steps` steps and may run again.
    fn approved(&mut self, steps: u32) -> TaskId {
        let task = self.owner.create(3);
        self.owner.run(task, "w1", steps);
        self.owner.fail(task, ErrorCategory::Transient);
        self.owner.approve(task, RetryPolicy::default());
        task
    }

    /// The store gets the row of a task as the owner has it now.
    fn store_row(&mut self, task: TaskId) -> SnapshotRow {
        let slot = self.owner.state().tasks.get(task).unwrap();
        let row = SnapshotRow { core: slot.core, row: slot.row.clone().unwrap(), closed_at: None };
        self.put(row.clone());
        row
    }

    fn put(&mut self, row: SnapshotRow) {
        let mut rows = self.store.0.lock();
        rows.rows.retain(|r| r.core.id != row.core.id);
        rows.rows.push(row);
    }

    fn pass(&mut self, ms: u64) {
        self.replayer.settle();
        for _ in 0..ms / 50 {
            self.clock.advance(50);
            self.replayer.settle();
        }
    }

    fn plans(&mut self) -> Vec<(TaskId, TaskReplayPlanned, Event)> {
        self.replayer.settle();
        let mut events = self.owner.events();
        events.retain(|e| e.producer.service == Service::AutoReplay);
        let plan = |e: Event| {
            let Body::TaskReplayPlanned(b) = &e.body else { panic!("{} is no plan", e.kind) };
            (e.task_id.unwrap(), (**b).clone(), e)
        };
        events.into_iter().map(plan).collect()
    }

    fn alarms(&self, name: &str) -> u64 {
        self.metrics.alarms().get(name).map_or(0, |a| a.count)
    }
}

#[test]
fn a_plan_resumes_after_the_recorded_steps() {
    let mut world = World::new(Mood::Fine);
    let task = world.approved(2);
    world.store_row(task);
    let approval = world.owner.events().pop().unwrap().event_id;
    let plans = world.plans();
    let (planned, plan, event) = &plans[0];
    assert_eq!((plans.len(), *planned, plan.witness, plan.resume_index), (1, task, Witness::SnapshotAndLog, 2));
    assert_eq!(plan.skip.iter().map(|s| s.step.as_str()).collect::<Vec<_>>(), ["s0", "s1"]);
    assert_eq!(event.causation_id, Some(approval));
    assert_eq!(world.owner.state().tasks.get(task).unwrap().core.state, TaskState::ReplayPlanned);
    assert_eq!(world.owner.state().counters.rejected_total(), 0);
}

#[test]
fn a_row_that_is_behind_is_waited_for() {
    let mut world = World::new(Mood::Fine);
    let task = world.approved(0);
    let mut row = world.store_row(task);
    Arc::make_mut(&mut row.row).applied_offset.0 -= 1;
    row.core.state = TaskState::Failed;
    world.put(row);
    world.pass(1_000);
    assert!(world.plans().is_empty());
    // At once and after 100, 300 and 700 ms; the next time after 1,500.
    assert_eq!(world.store.0.lock().reads, [1; 4]);
    world.store_row(task);
    world.pass(450);
    assert!(world.plans().is_empty());
    world.pass(50);
    assert_eq!(world.plans()[0].1.witness, Witness::SnapshotAndLog);
    assert_eq!(world.alarms("guard_log_only") + world.alarms("snapshot_differs"), 0);
}

/// A store that is slow is not made slower by whoever waits for it.
#[test]
fn a_row_that_does_not_come_is_looked_for_once_a_second_at_last() {
    let mut world = World::new(Mood::Fine);
    world.approved(0);
    world.pass(5_000);
    assert_eq!(world.plans()[0].1.witness, Witness::LogOnly);
    assert_eq!(world.store.0.lock().reads, [1; 8], "0, 100, 300, 700, 1,500, 2,500, 3,500 and 4,500 ms");
}

#[test]
fn an_annotation_after_the_pen_does_not_matter() {
    let mut world = World::new(Mood::Fine);
    let task = world.approved(1);
    let before = world.store_row(task);
    world.owner.overdue(task);
    assert_ne!(world.store_row(task), before);
    world.put(before);
    assert_eq!(world.plans()[0].1.witness, Witness::SnapshotAndLog);
}

#[test]
fn without_a_current_row_the_log_alone_is_the_witness_after_five_seconds() {
    for mood in [Mood::Fine, Mood::Away, Mood::Hangs] {
        let mut world = World::new(mood);
        world.approved(1);
        world.pass(4_950);
        assert!(world.plans().is_empty());
        world.pass(50);
        let plans = world.plans();
        assert_eq!((plans.len(), plans[0].1.witness, plans[0].1.resume_index), (1, Witness::LogOnly, 1));
        assert_eq!(world.alarms("guard_log_only"), 1);
    }
}

#[test]
fn other_content_at_an_equal_offset_is_a_finding_and_no_plan() {
    for steps_differ in [false, true] {
        let mut world = World::new(Mood::Fine);
        let task = world.approved(1);
        let mut row = world.store_row(task);
        if steps_differ {
            Arc::make_mut(&mut row.row).steps.clear();
        } else {
            row.core.retry_count += 1;
        }
        world.put(row);
        world.pass(60_000);
        assert!(world.plans().is_empty());
        assert_eq!((world.alarms("snapshot_differs"), world.metrics.counters()["consistency_findings_total"]), (1, 1));
        world.store_row(task);
        world.pass(5_000);
        assert_eq!(world.plans()[0].1.witness, Witness::SnapshotAndLog, "it was repaired");
    }
}

#[test]
fn a_store_that_hangs_holds_up_nobody_else() {
    let mut world = World::new(Mood::Hangs);
    for _ in 0..3 {
        world.approved(0);
        world.replayer.settle();
    }
    world.store.0.lock().mood = Mood::Fine;
    let task = world.approved(0);
    world.store_row(task);
    let plans = world.plans();
    assert_eq!((plans.len(), plans[0].0), (1, task));
    world.pass(5_000);
    assert_eq!(world.plans().len(), 4);
}

#[test]
fn rows_are_read_in_batches() {
    let mut world = World::new(Mood::Fine);
    let tasks: Vec<_> = (0..250).map(|_| world.approved(0)).collect();
    for task in tasks {
        world.store_row(task);
    }
    assert_eq!(world.plans().len(), 250);
    assert_eq!(world.store.0.lock().reads, [100, 100, 50]);
}

#[test]
fn a_cancel_request_takes_the_pen_away() {
    let mut world = World::new(Mood::Fine);
    let task = world.approved(0);
    world.replayer.settle();
    world.owner.cancel(task);
    world.store_row(task);
    world.pass(10_000);
    assert!(world.plans().is_empty());
    assert_eq!(world.alarms("snapshot_differs"), 0);
}

#[test]
fn settings_are_checked() {
    for broken in [
        ReplayConfig { guard_wait_ms: 5_001, ..config() },
        ReplayConfig { guard_reread_ms: 0, ..config() },
        ReplayConfig { batch: 101, ..config() },
        ReplayConfig { parallel: 0, ..config() },
        ReplayConfig::new("".into(), Incarnation(1)),
    ] {
        assert!(broken.check().is_err(), "{broken:?}");
    }
    assert_eq!(config().check(), Ok(()));
}
