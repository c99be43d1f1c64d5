//! The shell against a coordinator in memory and a clock that the test moves.

mod coordinator;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use coordinator::{Desk, Shelf, assignment, resumed, step_done};
use task_events::{ErrorCategory, Incarnation, Sha256Hash, Text};
use worker_protocol::{Assignment, HeartbeatAnswer, ReportAnswer, ReportBody};

use super::*;
use crate::testing::ManualClock;
use crate::{Context, FileOutbox, HandlerError, PayloadKey};

struct World {
    desk: Desk,
    shelf: Shelf,
    clock: ManualClock,
}

impl World {
    fn new() -> Self {
        Self { desk: Desk::default(), shelf: Shelf::default(), clock: ManualClock::default() }
    }

    fn worker(&self, handlers: Handlers) -> Worker<Desk, ManualClock> {
        self.worker_with(handlers, (NoOutbox, Vec::new()))
    }

    fn worker_with(&self, handlers: Handlers, outbox: (impl Outbox, Vec<OutboxEntry>)) -> Worker<Desk, ManualClock> {
        let config = Config::new("w1".into(), Incarnation(1), vec!["q".into()]);
        let (desk, shelf, clock) = (self.desk.clone(), self.shelf.clone(), self.clock.clone());
        Worker::with_outbox(desk, shelf, clock, config, handlers, outbox).unwrap()
    }

    /// Runs a worker on these assignments until its first result, then drains it.
    async fn first_result(&self, handlers: Handlers, assignments: Vec<Assignment>) -> ReportBody {
        assignments.into_iter().for_each(|a| self.desk.hand_out(a));
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = self.worker(handlers).run(async { drop(stopped.await) }, Duration::from_secs(5));
        let result = async {
            let result = self.desk.result().await;
            drop(stop);
            result
        };
        futures::future::join(worker, result).await.1
    }
}

fn on(handler: impl AsyncHandler) -> Handlers {
    Handlers::new().on("t", handler)
}

trait AsyncHandler: Fn(Context) -> BoxFuture<'static, Result<Bytes, HandlerError>> + Send + Sync + 'static {}
impl<F: Fn(Context) -> BoxFuture<'static, Result<Bytes, HandlerError>> + Send + Sync + 'static> AsyncHandler for F {}

fn failure(body: ReportBody) -> (Text, ErrorCategory, Option<Text>) {
    let ReportBody::Failure { error_code, category, failed_step, .. } = body else { panic!("{body:?} is no failure") };
    (error_code, category, failed_step)
}

fn parameters() -> PayloadKey {
    PayloadKey::Parameters { payload_hash: assignment(1).payload_hash }
}

fn output_of(step: &str, output: &[u8]) -> PayloadKey {
    PayloadKey::StepOutput { step: step.into(), output_hash: Sha256Hash::of(output) }
}

#[tokio::test]
async fn steps_are_run_recorded_and_reported_in_order() {
    let world = World::new();
    let handlers = on(|ctx: Context| {
        async move {
            assert_eq!(&ctx.params()[..], b"params");
            let a = ctx.step("a").idempotent(true).run(|| async { Ok("A".into()) }).await?;
            let b = ctx.step("b").idempotent(true).run(|| async { Ok("B".into()) }).await?;
            Ok([a, b].concat().into())
        }
        .boxed()
    });
    let result = world.first_result(handlers, vec![assignment(1)]).await;
    let ReportBody::Success { result_data_hash, steps_done, .. } = result else { panic!("{result:?}") };
    assert_eq!(steps_done, [step_done("a", 0, b"A", true), step_done("b", 1, b"B", true)]);
    assert_eq!(result_data_hash, task_events::Sha256Hash::of(b"AB"));
    let bodies = world.desk.bodies();
    assert!(matches!(bodies[0], ReportBody::Starting { .. }));
    assert_eq!(bodies[1..3], steps_done.into_iter().map(ReportBody::Step).collect::<Vec<_>>());
    assert_eq!(world.shelf.stored(assignment(1).task_id, PayloadKey::Result), Some("AB".into()));
    assert_eq!(world.shelf.stored(assignment(1).task_id, output_of("b", b"B")), Some("B".into()));
}

#[tokio::test]
async fn a_resumed_attempt_gets_recorded_outputs_back() {
    let world = World::new();
    let calls = Arc::new(AtomicU32::new(0));
    let seen = calls.clone();
    let handlers = on(move |ctx: Context| {
        let calls = seen.clone();
        async move {
            let run = async |name: &'static str| {
                ctx.step(name)
                    .run(|| async {
                        calls.fetch_add(1, Ordering::Relaxed);
                        Ok("new".into())
                    })
                    .await
            };
            let (a, b) = (run("a").await?, run("b").await?);
            Ok([a, b].concat().into())
        }
        .boxed()
    });
    // The step beyond the gap has an output too, but the plan wants it run again.
    let mut resumed = resumed(vec![step_done("a", 0, b"old", false)]);
    resumed.steps_done.push(step_done("b", 2, b"gone", false));
    world.shelf.store(resumed.task_id, output_of("a", b"old"), "old");
    let result = world.first_result(handlers, vec![resumed]).await;
    assert!(matches!(result, ReportBody::Success { .. }));
    assert_eq!(world.shelf.stored(assignment(1).task_id, PayloadKey::Result), Some("oldnew".into()));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_recorded_step_without_its_output_runs_again_only_if_that_is_harmless() {
    for (idempotent, stored) in [(true, None), (false, None), (false, Some("forged"))] {
        let world = World::new();
        let handlers = on(move |ctx: Context| {
            async move { ctx.step("a").idempotent(idempotent).run(|| async { Ok("again".into()) }).await }.boxed()
        });
        let resumed = resumed(vec![step_done("a", 0, b"old", idempotent)]);
        if let Some(stored) = stored {
            world.shelf.store(resumed.task_id, output_of("a", b"old"), stored);
        }
        let result = world.first_result(handlers, vec![resumed]).await;
        if idempotent {
            assert!(matches!(result, ReportBody::Success { .. }));
        } else {
            let code = if stored.is_some() { "STEP_OUTPUT_DIFFERS" } else { "STEP_OUTPUT_MISSING" };
            assert_eq!(failure(result), (code.into(), ErrorCategory::OutcomeUnknown, None));
        }
    }
}

#[tokio::test]
async fn another_handler_version_that_leaves_out_a_risky_step_is_for_people() {
    for idempotent in [true, false] {
        let world = World::new();
        let handlers = on(|ctx: Context| {
            async move { ctx.step("new").idempotent(true).run(|| async { Ok("N".into()) }).await }.boxed()
        });
        let result = world.first_result(handlers, vec![resumed(vec![step_done("pay", 0, b"P", idempotent)])]).await;
        if idempotent {
            assert!(matches!(result, ReportBody::Success { .. }));
        } else {
            assert_eq!(failure(result), ("HANDLER_CHANGED".into(), ErrorCategory::OutcomeUnknown, None));
        }
    }
}

type Ended = (&'static str, ErrorCategory, Option<Text>);

#[tokio::test]
async fn errors_and_panics_become_error_codes() {
    let cases: [(Handlers, Ended); 4] = [
        (
            on(|_| async { Err(HandlerError::permanent("BAD", "x".repeat(1_000))) }.boxed()),
            ("BAD", ErrorCategory::NonRetryable, None),
        ),
        (on(|_| async { panic!("boom {}", 7) }.boxed()), ("HANDLER_PANICKED", ErrorCategory::Transient, None)),
        (
            on(|ctx: Context| {
                async move { ctx.step("io").run(|| async { Err(std::io::Error::other("disk").into()) }).await }.boxed()
            }),
            ("IO_ERROR", ErrorCategory::Transient, Some("io".into())),
        ),
        (Handlers::new(), ("NO_HANDLER", ErrorCategory::Transient, None)),
    ];
    for (handlers, (code, category, step)) in cases {
        let world = World::new();
        let result = world.first_result(handlers, vec![assignment(1)]).await;
        assert_eq!(failure(result), (code.into(), category, step));
        let text = world.shelf.stored(assignment(1).task_id, PayloadKey::ErrorText);
        assert_eq!(text.map(|t| t.len()), (code == "BAD").then_some(1_000));
    }
}

#[tokio::test]
async fn forged_parameters_reach_no_handler_and_right_ones_are_waited_for() {
    let (world, task) = (World::new(), assignment(1).task_id);
    world.shelf.store(task, parameters(), "forged");
    let handlers = on(|ctx: Context| {
        async move {
            assert_eq!(&ctx.params()[..], b"params");
            Ok(Bytes::new())
        }
        .boxed()
    });
    let time = async {
        // Longer than a lease, which heartbeats renew meanwhile.
        for _ in 0..100 {
            tokio::task::yield_now().await;
            world.clock.advance(100);
        }
        assert_eq!(world.desk.bodies().iter().find(|b| b.is_terminal()), None);
        world.shelf.store(task, parameters(), "params");
        loop {
            tokio::task::yield_now().await;
            world.clock.advance(100);
        }
    };
    tokio::select! {
        result = world.first_result(handlers, vec![assignment(1)]) => {
            assert!(matches!(result, ReportBody::Success { .. }), "{result:?}");
        }
        () = time => {}
    }
}

#[tokio::test]
async fn a_task_whose_parameters_are_gone_can_be_cancelled() {
    let world = World::new();
    world.desk.heartbeats(HeartbeatAnswer::Accepted { lease_ms: 6_000, cancel_requested: true });
    world.shelf.store(assignment(1).task_id, parameters(), "forged");
    let time = async {
        loop {
            tokio::task::yield_now().await;
            world.clock.advance(100);
        }
    };
    tokio::select! {
        result = world.first_result(on(|_| async { panic!("entered") }.boxed()), vec![assignment(1)]) => {
            assert_eq!(failure(result).0, "CANCELLED");
        }
        () = time => {}
    }
}

#[tokio::test]
async fn a_cancel_reaches_the_handler_by_its_token() {
    let world = World::new();
    world.desk.heartbeats(HeartbeatAnswer::Accepted { lease_ms: 6_000, cancel_requested: true });
    let clock = world.clock.clone();
    let handlers = on(move |ctx: Context| {
        clock.advance(2_000);
        async move {
            ctx.cancelled().await;
            assert!(ctx.is_cancelled() && ctx.may_write());
            Err(ctx.give_up())
        }
        .boxed()
    });
    let result = world.first_result(handlers, vec![assignment(1)]).await;
    assert_eq!(failure(result).0, "CANCELLED");
}

#[tokio::test]
async fn at_the_end_of_the_lease_the_handler_is_gone_and_silent() {
    let world = World::new();
    world.desk.heartbeats(HeartbeatAnswer::Unavailable);
    world.desk.hand_out(assignment(1));
    let (entered, is_entered) = oneshot::channel::<Context>();
    let (gone, is_gone) = oneshot::channel::<()>();
    let once = parking_lot::Mutex::new(Some((entered, gone)));
    let handlers = on(move |ctx: Context| {
        let (entered, gone) = once.lock().take().expect("entered once");
        let _ = entered.send(ctx);
        async move {
            let _held = gone;
            std::future::pending().await
        }
        .boxed()
    });
    let running = tokio::spawn(world.worker(handlers).run(std::future::pending(), Duration::ZERO));
    let ctx = is_entered.await.unwrap();
    assert!(ctx.may_write());
    world.clock.advance(6_000);
    assert!(!ctx.may_write(), "by the clock alone, before anybody has told it");
    assert!(is_gone.await.is_err(), "dropped");
    assert!(world.desk.bodies().iter().all(|b| matches!(b, ReportBody::Starting { .. })));
    running.abort();
}

#[tokio::test]
async fn a_step_that_must_not_run_twice_waits_until_the_owner_knows() {
    let world = World::new();
    let desk = world.desk.clone();
    let handlers = on(move |ctx: Context| {
        let desk = desk.clone();
        async move {
            ctx.step("pay")
                .run(|| async {
                    assert_eq!(desk.steps_seen(), [Some(("pay".into(), false))]);
                    Ok(Bytes::new())
                })
                .await
        }
        .boxed()
    });
    assert!(matches!(world.first_result(handlers, vec![assignment(1)]).await, ReportBody::Success { .. }));
}

#[tokio::test]
async fn what_a_crashed_worker_had_done_is_delivered_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("outbox");
    let world = World::new();
    world.desk.answer_terminal(ReportAnswer::Unavailable);
    world.desk.hand_out(assignment(1));
    let handlers = || {
        on(|ctx: Context| async move { ctx.step("a").idempotent(true).run(|| async { Ok("A".into()) }).await }.boxed())
    };
    let crashed = world.worker_with(handlers(), FileOutbox::open(&path).unwrap());
    let crashed = tokio::spawn(crashed.run(std::future::pending(), Duration::ZERO));
    let result = world.desk.result().await;
    crashed.abort();
    assert!(crashed.await.unwrap_err().is_cancelled());
    world.desk.answer_terminal(ReportAnswer::Accepted);
    let (outbox, undelivered) = FileOutbox::open(&path).unwrap();
    let bodies: Vec<_> = undelivered.iter().map(|e| e.report.body.clone()).collect();
    assert_eq!(bodies, [result]);
    let next = world.worker_with(handlers(), (outbox, undelivered));
    next.run(std::future::ready(()), Duration::from_secs(5)).await;
    assert_eq!(world.desk.bodies().iter().filter(|b| b.is_terminal()).count(), 2);
    assert_eq!(FileOutbox::open(&path).unwrap().1, []);
}
