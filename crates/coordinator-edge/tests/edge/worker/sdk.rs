//! The SDK against the real edge.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use futures::future::join_all;
use service_kit::{Clock as _, SystemClock};
use task_events::{Sha256Hash, TaskState};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use worker_sdk::http::{Connect, HttpWorker, RunError};
use worker_sdk::{Context, HandlerError, Worker};

use crate::worker::kit::{Lose, Proxy, World};

fn connect(url: String, id: &'static str) -> Connect {
    Worker::connect(url).worker_id(id)
}

struct Running {
    task: JoinHandle<Result<(), RunError>>,
    stop: oneshot::Sender<()>,
}

impl Running {
    fn start(worker: HttpWorker) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(worker.run(async { stopped.await.unwrap_or(()) }));
        Self { task, stop }
    }

    /// As a SIGKILL would end it: nothing is cleaned up.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    async fn drain(self) {
        let _ = self.stop.send(());
        self.task.await.expect("no panic").expect("a clean end");
    }
}

#[derive(Clone, Default)]
struct Counts {
    first: Arc<AtomicU32>,
    second: Arc<AtomicU32>,
    inside: Arc<Notify>,
}

impl Counts {
    /// Two steps; the second one hangs as long as `hangs`.
    async fn two_steps(self, ctx: Context, hangs: bool) -> Result<Bytes, HandlerError> {
        let first = ctx.step("first").idempotent(true).run(|| async {
            self.first.fetch_add(1, Ordering::SeqCst);
            Ok(ctx.params().clone())
        });
        let first = first.await?;
        let second = ctx.step("second").idempotent(true).run(|| async {
            self.second.fetch_add(1, Ordering::SeqCst);
            self.inside.notify_one();
            if hangs {
                pending::<()>().await;
            }
            Ok(Bytes::from("\"second\""))
        });
        Ok([first, second.await?].concat().into())
    }

    fn get(&self) -> (u32, u32) {
        (self.first.load(Ordering::SeqCst), self.second.load(Ordering::SeqCst))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_dies_in_its_second_step_is_followed_by_one_that_goes_on_there() {
    let world = World::start().await;
    let counts = Counts::default();
    let of = |hangs| {
        let counts = counts.clone();
        move |ctx| counts.clone().two_steps(ctx, hangs)
    };
    let first = Running::start(connect(world.url(), "a").handler("t", of(true)).build().expect("settings"));
    let task = world.create(r#"{"n" : 0.10000000000000000555}"#).await;
    counts.inside.notified().await;
    first.kill().await;
    let next = Running::start(connect(world.url(), "b").handler("t", of(false)).build().expect("settings"));
    let seen = world.succeeded(task).await;
    assert_eq!(counts.get(), (1, 2), "the first step is on record");
    assert_eq!((seen.core.exec_epoch.get(), seen.row.worker_id.as_str()), (2, "b"));
    let result = Sha256Hash::of(br#"{"n" : 0.10000000000000000555}"second""#);
    assert_eq!(seen.row.result_data_hash, Some(result), "byte for byte");
    next.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_process_had_finished_is_delivered_by_the_next_one() {
    let world = World::start().await;
    let proxy = Proxy::start(world.address).await;
    let outbox = world.dir.path().join("outbox");
    let counts = Counts::default();
    let worker = |url| {
        let counts = counts.clone();
        let handler = move |ctx| counts.clone().two_steps(ctx, false);
        connect(url, "a").handler("t", handler).outbox(&outbox).build().expect("settings")
    };
    proxy.lose(r#""kind":"SUCCESS""#, Lose::Request, u32::MAX);
    let first = Running::start(worker(proxy.url()));
    let task = world.create("1").await;
    while proxy.left() == u32::MAX {
        SystemClock.sleep_until(SystemClock.boot_ms() + 10).await;
    }
    first.kill().await;
    assert_eq!(world.seen(task).await.core.state, TaskState::Executing);
    let next = Running::start(worker(world.url()));
    let seen = world.succeeded(task).await;
    assert_eq!((seen.core.exec_epoch.get(), counts.get()), (1, (1, 1)));
    next.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_and_lost_requests_are_no_second_run() {
    let world = World::start().await;
    let proxy = Proxy::start(world.address).await;
    let counts = Counts::default();
    let handler = {
        let counts = counts.clone();
        move |ctx| counts.clone().two_steps(ctx, false)
    };
    proxy.lose("/coordinator/v1/reports", Lose::Answer, 12);
    let worker = connect(proxy.url(), "a").handler("t", handler).slots(8).build().expect("settings");
    let worker = Running::start(worker);
    let tasks = join_all((0..20).map(|_| world.create("1"))).await;
    for (n, task) in tasks.into_iter().enumerate() {
        if n == 10 {
            proxy.lose("/coordinator/v1/reports", Lose::Request, 3);
        }
        let seen = world.succeeded(task).await;
        assert_eq!(seen.core.exec_epoch.get(), 1, "task {n}");
    }
    assert_eq!(counts.get(), (20, 20));
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_cut_off_stops_its_handler_and_its_late_word_does_not_count() {
    let world = World::start().await;
    let proxy = Proxy::start(world.address).await;
    let (gone, is_gone) = oneshot::channel::<()>();
    let gone = Arc::new(parking_lot::Mutex::new(Some(gone)));
    let hangs = move |_ctx: Context| {
        let held = gone.lock().take();
        async move {
            let _held = held;
            pending().await
        }
    };
    let cut_off = Running::start(connect(proxy.url(), "a").handler("t", hangs).build().expect("settings"));
    let task = world.create("1").await;
    world.until(task, TaskState::Executing).await;
    proxy.lose("POST", Lose::Request, u32::MAX);
    assert!(is_gone.await.is_err(), "dropped at the end of its lease");
    let counts = Counts::default();
    let handler = {
        let counts = counts.clone();
        move |ctx| counts.clone().two_steps(ctx, false)
    };
    let next = Running::start(connect(world.url(), "b").handler("t", handler).build().expect("settings"));
    let seen = world.succeeded(task).await;
    assert_eq!((seen.core.exec_epoch.get(), seen.row.worker_id.as_str()), (2, "b"));
    next.drain().await;
    cut_off.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_drains_finishes_what_runs_and_takes_nothing_new() {
    let world = World::start().await;
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handler = {
        let (entered, go) = (entered.clone(), go.clone());
        move |_ctx: Context| {
            let (entered, go) = (entered.clone(), go.clone());
            async move {
                entered.notify_one();
                go.notified().await;
                Ok(Bytes::from("1"))
            }
        }
    };
    let worker = connect(world.url(), "a").handler("t", handler).slots(1).build().expect("settings");
    let coordinator = worker.coordinator();
    let worker = Running::start(worker);
    let task = world.create("1").await;
    entered.notified().await;
    let draining = tokio::spawn(worker.drain());
    let later = world.create("2").await;
    go.notify_one();
    draining.await.expect("drained");
    world.succeeded(task).await;
    assert_eq!(world.seen(later).await.core.state, TaskState::Created);
    assert!(coordinator.rtt_us().is_some_and(|us| us > 0), "the round trip is measured");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_superseded_ends_by_itself() {
    let world = World::start().await;
    let worker = || connect(world.url(), "a").handler("t", |_| async { Ok(Bytes::from("1")) }).build();
    let first = Running::start(worker().expect("settings"));
    world.succeeded(world.create("1").await).await;
    let second = Running::start(worker().expect("settings"));
    let task = world.create("2").await;
    // Work is what brings both to the owners again and again.
    let feed = async {
        loop {
            world.succeeded(world.create("3").await).await;
        }
    };
    let ended = async { first.task.await.expect("no panic").expect("a clean end") };
    tokio::select! {
        () = ended => {}
        () = feed => {}
    }
    world.succeeded(task).await;
    second.drain().await;
}
