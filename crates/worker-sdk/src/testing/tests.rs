//! The harness, by handlers that do what handlers do.

use futures::FutureExt as _;
use rest_contract::MAX_PAYLOAD_BYTES;
use tokio::sync::oneshot;

use super::*;

fn failed(run: Run) -> (Text, ErrorCategory, Option<Text>) {
    let End::Failed { code, category, step, .. } = run.end else { panic!("{:?}", run.end) };
    (code, category, step)
}

/// A handler that says when it is inside.
fn signalled<R: Future<Output = Result<Bytes, HandlerError>> + Send + 'static>(
    body: impl Fn(Context) -> R + Send + Sync + 'static,
) -> (Harness, oneshot::Receiver<()>) {
    let (inside, is_inside) = oneshot::channel();
    let inside = parking_lot::Mutex::new(Some(inside));
    let harness = Harness::new(move |ctx| {
        if let Some(inside) = inside.lock().take() {
            let _ = inside.send(());
        }
        body(ctx)
    });
    (harness, is_inside)
}

#[tokio::test]
async fn a_cancel_is_heard_and_may_be_heeded() {
    let (harness, inside) = signalled(|ctx: Context| async move {
        ctx.cancelled().await;
        Err(ctx.give_up())
    });
    let attempt = harness.start();
    inside.await.unwrap();
    attempt.cancel();
    assert_eq!(failed(attempt.ended().await).0, "CANCELLED");
}

#[tokio::test]
async fn at_the_end_of_the_lease_and_when_fenced_nothing_is_reported() {
    for fence in [false, true] {
        let (harness, inside) = signalled(|_| std::future::pending());
        let attempt = harness.start();
        inside.await.unwrap();
        if fence {
            attempt.fence()
        } else {
            attempt.end_lease()
        }
        let run = attempt.ended().await;
        assert_eq!((run.end, run.reports.len()), (End::Silent, 1), "STARTING alone");
    }
}

#[tokio::test]
async fn what_is_too_large_is_said_once_and_for_good() {
    let large = || Bytes::from(vec![b'x'; MAX_PAYLOAD_BYTES + 1]);
    let run = Harness::new(move |_| async move { Ok(large()) }).run().await;
    assert_eq!(failed(run), ("RESULT_TOO_LARGE".into(), ErrorCategory::NonRetryable, None));
    let step = |name: String| {
        move |ctx: Context| {
            let name = name.clone();
            async move { ctx.step(name).idempotent(true).run(|| async { Ok(Bytes::from(vec![b'x'; 300 << 10])) }).await }
        }
    };
    let run = Harness::new(step("s".into())).run().await;
    assert_eq!(failed(run).0, "STEP_OUTPUT_TOO_LARGE");
    assert_eq!(failed(Harness::new(step("n".repeat(300))).run().await).0, "STEP_NAME_INVALID");
    let text = "é".repeat(3 << 20);
    let run = Harness::new(move |_| {
        let text = text.clone();
        async move { Err(HandlerError::permanent("BAD", text)) }
    });
    let End::Failed { message, .. } = run.run().await.end else { panic!("it failed") };
    assert_eq!(message.len(), MAX_PAYLOAD_BYTES, "the beginning of it is stored");
}

#[tokio::test]
async fn a_guarded_file_is_the_newest_attempts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lines");
    let write = |path: std::path::PathBuf| {
        move |ctx: Context| {
            let path = path.clone();
            async move {
                let file = ctx.guarded_file(path).await?;
                file.append(format!("{}\n", ctx.exec_epoch())).await?;
                Ok(Bytes::new())
            }
        }
    };
    for (epoch, is_in) in [(1, true), (2, true), (1, false), (2, true)] {
        let run = Harness::new(write(path.clone())).exec_epoch(epoch).run().await;
        assert_eq!(run.end == End::Success(Bytes::new()), is_in, "{epoch}: {run:?}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n2\n2\n");
}

#[tokio::test]
async fn the_clock_moves_only_by_hand() {
    let clock = ManualClock::default();
    let mut waits = Box::pin(crate::WorkerClock::sleep_until(&clock, 10));
    assert!((&mut waits).now_or_never().is_none());
    clock.advance(10);
    assert!(waits.now_or_never().is_some());
}

#[tokio::test]
async fn an_attempt_that_is_held_ends_when_what_holds_it_does() {
    let (told, is_told) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    let both = parking_lot::Mutex::new(Some((told, released)));
    let (harness, inside) = signalled(move |ctx: Context| {
        let (told, released) = both.lock().take().unwrap();
        let hold = ctx.hold();
        tokio::spawn(async move {
            let why = hold.stopped().await;
            let _ = told.send((why, hold.lease_until()));
            let _ = released.await;
            drop(hold);
        });
        std::future::pending()
    });
    let attempt = harness.start();
    inside.await.unwrap();
    attempt.end_lease();
    let (why, _) = is_told.await.unwrap();
    assert_eq!(why, crate::machine::Stop::LeaseEnd);
    let mut ended = Box::pin(attempt.ended());
    for _ in 0..100 {
        assert!((&mut ended).now_or_never().is_none(), "it is held");
        tokio::task::yield_now().await;
    }
    drop(release);
    assert_eq!(ended.await.end, End::Silent);
}

#[tokio::test]
async fn recorded_outputs_are_had_at_once_and_a_checkpoint_replaces_the_one_before() {
    let handler = |ctx: Context| async move {
        let recorded = ctx.recorded_steps().await?;
        let known: Vec<_> = recorded.iter().map(|r| (r.step.as_str(), &r.output[..])).collect();
        assert_eq!(known, [("a", &b"A"[..]), ("at", b"3"), ("b", b"B")]);
        ctx.checkpoint("at", "4".into()).await?;
        ctx.checkpoint("at", "5".into()).await?;
        ctx.step("c").idempotent(true).run(|| async { Ok("C".into()) }).await
    };
    let run = Harness::new(handler).recorded("a", "A").recorded("at", "3").recorded("b", "B").run().await;
    assert_eq!(run.end, End::Success("C".into()));
    assert_eq!(run.outputs["at"], "5");
    let steps = |body: &ReportBody| match body {
        ReportBody::Step(done) => Some((done.step.to_string(), done.index)),
        ReportBody::Starting { .. }
        | ReportBody::Declined { .. }
        | ReportBody::Success { .. }
        | ReportBody::Failure { .. } => None,
    };
    let indices: Vec<_> = run.reports.iter().filter_map(steps).collect();
    assert_eq!(indices, [("at".into(), 1), ("at".into(), 1), ("c".into(), 3)]);
}
