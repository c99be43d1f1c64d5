//! Histories: the owner writes, the engine answers.

use fold_start::{Checkpoints, LoadError, Start};
use futures::future::{BoxFuture, FutureExt as _};
use service_kit::testing::{Driven, Fate, ManualClock, ScriptedLog, Steps};
use snapshot_store::CheckpointName;
use task_core::PartitionState;
use task_core::decide::RetryPolicy;
use task_events::{
    Body, ErrorCategory, Event, Incarnation, Offset, PartitionEpoch, PartitionId, RuleVersion, Service,
    TaskFailedPermanently, TaskId, TaskRetryApproved, TaskState,
};
use verdict_writer::FoldSource;
use verdict_writer::testing::ScriptedOwner;

use super::*;

struct World {
    log: ScriptedLog,
    clock: ManualClock,
    metrics: Metrics,
    owner: ScriptedOwner,
    engine: Driven<Result<(), EngineError>>,
}

fn config() -> EngineConfig {
    EngineConfig::new("e1".into(), Incarnation(77))
}

impl World {
    fn new() -> Self {
        let log = ScriptedLog::new(1);
        let (clock, metrics) = (ManualClock::default(), Metrics::default());
        let engine = start(&log, &clock, &metrics, config());
        log.assign(&[0]);
        let owner = ScriptedOwner::claim(&log);
        Self { log, clock, metrics, owner, engine }
    }

    fn pass(&mut self, ms: u64) {
        self.engine.settle();
        for _ in 0..ms / 50 {
            self.clock.advance(50);
            self.engine.settle();
        }
    }

    fn verdicts(&mut self) -> Vec<Event> {
        self.engine.settle();
        let mut events = self.owner.events();
        events.retain(|e| e.producer.service == Service::TaskEngine);
        events
    }

    fn state(&mut self, task: TaskId) -> Option<TaskState> {
        self.engine.settle();
        self.owner.state().tasks.get(task).map(|slot| slot.core.state)
    }
}

fn start(
    log: &ScriptedLog,
    clock: &ManualClock,
    metrics: &Metrics,
    config: EngineConfig,
) -> Driven<Result<(), EngineError>> {
    start_from(log, clock, metrics, config, FoldSource::from_the_start())
}

fn start_from(
    log: &ScriptedLog,
    clock: &ManualClock,
    metrics: &Metrics,
    config: EngineConfig,
    source: FoldSource,
) -> Driven<Result<(), EngineError>> {
    let deps = Deps {
        log: log.clone(),
        clock: clock.clone(),
        metrics: metrics.clone(),
        standings: Standings::default(),
        entropy: Box::new(Steps::default()),
        source,
    };
    Driven::new(run(deps, config, Shutdown::default()))
}

fn approved(event: &Event) -> &TaskRetryApproved {
    let Body::TaskRetryApproved(body) = &event.body else { panic!("{} is no approval", event.kind) };
    body
}

fn given_up(event: &Event) -> &TaskFailedPermanently {
    let Body::TaskFailedPermanently(body) = &event.body else { panic!("{} is not the end", event.kind) };
    body
}

#[test]
fn a_failure_is_approved_by_the_event_that_gave_the_pen() {
    let mut world = World::new();
    let task = world.owner.create(1);
    world.owner.run(task, "w1", 0);
    world.owner.fail(task, ErrorCategory::Transient);
    let first = world.verdicts();
    assert_eq!((first.len(), approved(&first[0]).retry_count, approved(&first[0]).policy_version), (1, 1, 1));
    let failed = world.owner.events().iter().rev().nth(1).unwrap().event_id;
    assert_eq!(first[0].causation_id, Some(failed), "the event that gave the pen");
    assert_eq!(first[0].producer.incarnation, Incarnation(77));
    assert_eq!(world.state(task), Some(TaskState::RetryApproved));
    assert_eq!(world.owner.state().counters.rejected_total(), 0);
}

#[test]
fn what_cannot_be_retried_is_given_up() {
    for (max, category, reason) in [
        (0, ErrorCategory::Transient, "retries_exhausted"),
        (3, ErrorCategory::NonRetryable, "non_retryable"),
        (3, ErrorCategory::OutcomeUnknown, "outcome_unknown"),
    ] {
        let mut world = World::new();
        let task = world.owner.create(max);
        world.owner.run(task, "w1", 0);
        world.owner.fail(task, category);
        let verdicts = world.verdicts();
        assert_eq!((given_up(&verdicts[0]).reason.as_str(), given_up(&verdicts[0]).review), (reason, true));
        assert_eq!(world.state(task), None);
    }
}

#[test]
fn a_loss_avoids_the_worker_unless_its_step_was_unsafe() {
    let mut world = World::new();
    let (safe, risky) = (world.owner.create(0), world.owner.create(0));
    for task in [safe, risky] {
        world.owner.run(task, "w1", 1);
    }
    world.owner.lose(safe, Some(("s1".into(), true)));
    world.owner.lose(risky, Some(("pay".into(), false)));
    let verdicts = world.verdicts();
    assert_eq!((approved(&verdicts[0]).lost_count, &approved(&verdicts[0]).avoid_workers[..]), (1, &["w1".into()][..]));
    assert_eq!(given_up(&verdicts[1]).reason, "outcome_unknown");
}

#[test]
fn a_cancel_request_takes_the_pen_away() {
    let mut world = World::new();
    world.engine.settle();
    let task = world.owner.create(3);
    world.owner.run(task, "w1", 0);
    world.owner.fail(task, ErrorCategory::Transient);
    world.owner.cancel(task);
    world.pass(10_000);
    assert!(world.verdicts().is_empty());
}

#[test]
fn a_verdict_lost_without_notice_is_decided_anew_under_another_identity() {
    let mut world = World::new();
    let task = world.owner.create(3);
    world.owner.run(task, "w1", 0);
    world.log.fate(Fate::UnknownLost);
    world.owner.fail(task, ErrorCategory::Transient);
    world.pass(9_950);
    assert!(world.verdicts().is_empty());
    world.pass(50);
    assert_eq!(world.verdicts().len(), 1);
    let batches = world.log.appended();
    assert_eq!((batches.len(), batches[0] != batches[1]), (2, true));
    world.pass(60_000);
    assert_eq!(world.verdicts().len(), 1);
}

#[test]
fn two_engines_write_at_most_one_verdict_that_counts() {
    let mut world = World::new();
    let other = EngineConfig::new("e2".into(), Incarnation(78));
    let task = world.owner.create(3);
    world.owner.run(task, "w1", 0);
    world.owner.fail(task, ErrorCategory::Transient);
    // A zombie: it folded the same and decides before it sees the other's verdict.
    let quiet = ScriptedLog::new(1);
    world.log.records(0).into_iter().for_each(|record| quiet.write_raw(record));
    let mut zombie = start(&quiet, &world.clock, &Metrics::default(), other);
    quiet.assign(&[0]);
    zombie.settle();
    assert_eq!(world.verdicts().len(), 1);
    world.log.write(0, quiet.appended().concat());
    assert_eq!(world.verdicts().len(), 2);
    assert_eq!(world.owner.state().counters.rejected_total(), 1);
    assert_eq!(world.state(task), Some(TaskState::RetryApproved));
    assert_eq!(world.metrics.counters()["projection_verdicts_rejected_total"], 0);
}

#[test]
fn garbage_is_quarantined_and_the_partition_goes_on() {
    let mut world = World::new();
    let task = world.owner.create(0);
    let mut garbage = world.log.records(0)[0].clone();
    garbage.offset.0 = world.log.records(0).len() as u64;
    garbage.value = None;
    world.log.write_raw(garbage);
    world.owner.run(task, "w1", 0);
    world.owner.fail(task, ErrorCategory::Transient);
    world.engine.settle();
    assert_eq!(world.metrics.counters()["engine_given_up_total"], 1);
    assert_eq!(world.metrics.alarms()["record_quarantined"].count, 1);
}

// The checkpoint of a store that has one, with whatever others say of it.
#[derive(Clone)]
struct Published(PartitionState, Vec<CheckpointName>);

impl Checkpoints for Published {
    fn start(&self, _: PartitionId) -> BoxFuture<'static, Result<Start, LoadError>> {
        std::future::ready(Ok(Start { fold: self.0.clone(), published: Vec::new() })).boxed()
    }

    fn published(&self, _: PartitionId) -> BoxFuture<'static, Vec<CheckpointName>> {
        std::future::ready(self.1.clone()).boxed()
    }
}

fn name(offset: u64, state_hash: u128) -> CheckpointName {
    CheckpointName {
        partition: PartitionId(0),
        offset: Offset(offset),
        epoch: PartitionEpoch(1),
        rule_version: RuleVersion(1),
        state_hash,
    }
}

#[test]
fn it_goes_on_from_a_checkpoint_and_stops_where_another_fold_differs() {
    for differs in [false, true] {
        let mut world = World::new();
        let task = world.owner.create(3);
        world.owner.run(task, "w1", 0);
        let before = world.owner.state().clone();
        world.owner.fail(task, ErrorCategory::Transient);
        let failed = world.owner.state().clone();
        let quiet = ScriptedLog::new(1);
        world.log.records(0).into_iter().for_each(|record| quiet.write_raw(record));
        let others = vec![name(failed.next_offset.0, failed.hash() + u128::from(differs))];
        let source = FoldSource {
            checkpoints: Arc::new(Published(before.clone(), others)),
            every: 1,
            spans: Default::default(),
        };
        let metrics = Metrics::default();
        let mut engine = start_from(&quiet, &world.clock, &metrics, config(), source);
        quiet.assign(&[0]);
        engine.settle();
        let folded = failed.next_offset.0 - before.next_offset.0;
        assert!(metrics.counters()["projection_records_folded_total"] >= folded, "only what lies above it");
        assert!(folded < failed.next_offset.0);
        assert_eq!(quiet.appended().len(), 1, "it decides what was pending above the checkpoint");
        if differs {
            assert!(matches!(&engine.output, Some(Err(EngineError::Loop(ProjectionError::Stopped { .. })))));
            assert_eq!(metrics.alarms()["state_differs"].count, 1);
        } else {
            assert_eq!(engine.output, None);
        }
    }
}

// A store in which others publish when their rows are acknowledged, a moment after the offset.
#[derive(Clone, Default)]
struct Later(Arc<Mutex<Vec<CheckpointName>>>);

impl Checkpoints for Later {
    fn start(&self, partition: PartitionId) -> BoxFuture<'static, Result<Start, LoadError>> {
        let fold = PartitionState::new(partition, true);
        std::future::ready(Ok(Start { fold, published: Vec::new() })).boxed()
    }

    fn published(&self, _: PartitionId) -> BoxFuture<'static, Vec<CheckpointName>> {
        std::future::ready(self.0.lock().clone()).boxed()
    }
}

#[test]
fn a_checkpoint_that_is_published_a_second_later_is_compared_before_the_next_interval_ends() {
    let mut world = World::new();
    let task = world.owner.create(3);
    world.owner.run(task, "w1", 0);
    world.owner.fail(task, ErrorCategory::Transient);
    let failed = world.owner.state().clone();
    let (quiet, metrics, later) = (ScriptedLog::new(1), Metrics::default(), Later::default());
    world.log.records(0).into_iter().for_each(|record| quiet.write_raw(record));
    let source =
        FoldSource { checkpoints: Arc::new(later.clone()), every: failed.next_offset.0, spans: Default::default() };
    let mut engine = start_from(&quiet, &world.clock, &metrics, config(), source);
    quiet.assign(&[0]);
    engine.settle();
    later.0.lock().push(name(failed.next_offset.0, failed.hash() + 1));
    for _ in 0..600 {
        world.clock.advance(1_000);
        engine.settle();
    }
    assert!(
        matches!(&engine.output, Some(Err(EngineError::Loop(ProjectionError::Stopped { .. })))),
        "ten minutes later nobody has noticed"
    );
}

#[test]
fn a_start_whose_state_another_fold_contradicts_stops_the_reader() {
    let mut world = World::new();
    let task = world.owner.create(3);
    world.owner.run(task, "w1", 0);
    let at = world.owner.state().clone();
    let (quiet, metrics) = (ScriptedLog::new(1), Metrics::default());
    world.log.records(0).into_iter().for_each(|record| quiet.write_raw(record));
    #[derive(Clone)]
    struct Contradicted(PartitionState);
    impl Checkpoints for Contradicted {
        fn start(&self, _: PartitionId) -> BoxFuture<'static, Result<Start, LoadError>> {
            let (offset, hash) = (self.0.next_offset.0, self.0.hash());
            let published = vec![name(offset, hash), name(offset, hash + 1)];
            std::future::ready(Ok(Start { fold: self.0.clone(), published })).boxed()
        }
        fn published(&self, _: PartitionId) -> BoxFuture<'static, Vec<CheckpointName>> {
            std::future::ready(Vec::new()).boxed()
        }
    }
    let source = FoldSource { checkpoints: Arc::new(Contradicted(at)), every: 1, spans: Default::default() };
    let mut engine = start_from(&quiet, &world.clock, &metrics, config(), source);
    quiet.assign(&[0]);
    for _ in 0..60 {
        engine.settle();
        world.clock.advance(1_000);
    }
    assert!(metrics.alarms().contains_key("state_differs"), "{:?}", metrics.alarms().keys().collect::<Vec<_>>());
}

#[test]
fn settings_are_checked() {
    let policies = [
        RetryPolicy { base_ms: 2, cap_ms: 1, version: 1 },
        RetryPolicy { cap_ms: MAX_BACKOFF_CAP_MS + 1, ..RetryPolicy::default() },
        RetryPolicy { version: 0, ..RetryPolicy::default() },
    ];
    for policy in policies {
        assert!(EngineConfig { policy, ..config() }.check().is_err(), "{policy:?}");
    }
    assert!(EngineConfig::new("".into(), Incarnation(1)).check().is_err());
    let good = RetryPolicy { base_ms: 5, cap_ms: MAX_BACKOFF_CAP_MS, version: 2 };
    assert_eq!(EngineConfig { policy: good, ..config() }.check(), Ok(()));
    assert_eq!(
        client_id(GROUP, &config().producer, "u"),
        format!("task-engine|e1|rules=1-{}|u", task_events::SUPPORTED_RULES)
    );
}
