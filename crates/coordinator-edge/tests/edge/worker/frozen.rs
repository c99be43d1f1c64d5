//! Case 6 of the field: a worker stopped for twice its lease and let go on, in processes of its own.
//! Its handler writes lines with its epoch through the SDK's guard; none of the older attempt may
//! come after the first of the newer one.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use service_kit::{Clock as _, SystemClock};
use worker_sdk::{Context, HandlerError, Worker};

use crate::worker::kit::{LEASE_MS, World};

/// What a process of this test binary gets to know that it is to be a worker: `URL ID FILE`.
const WORKER: &str = "DUALTRACK_TEST_WORKER";
const LINE_MS: u64 = 100;

async fn lines(ctx: Context, path: String) -> Result<Bytes, HandlerError> {
    let file = ctx.guarded_file(path).await?;
    loop {
        file.append(format!("{}\n", ctx.exec_epoch())).await?;
        SystemClock.sleep_until(SystemClock.boot_ms() + LINE_MS).await;
    }
}

/// Not a test: the worker process, when it is asked for.
#[test]
#[expect(clippy::disallowed_methods, reason = "how a process of this binary is told to be a worker")]
fn a_worker_process() {
    let Ok(told) = std::env::var(WORKER) else { return };
    let [url, id, path] = told.split(' ').collect::<Vec<_>>()[..] else { panic!("URL ID FILE") };
    let path = path.to_owned();
    let worker = Worker::connect(url).worker_id(id).handler("t", move |ctx| lines(ctx, path.clone()));
    let worker = worker.build().expect("settings");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(worker.run(std::future::pending())).expect("it is killed");
}

struct Process(Child);

impl Process {
    fn start(world: &World, id: &str, path: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command.args(["--exact", "worker::frozen::a_worker_process", "--nocapture"]);
        command.env(WORKER, format!("{} {id} {}", world.url(), path.display()));
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process"))
    }

    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().expect("kill").success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn epochs(path: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| line.parse().expect("a whole line")).collect()
}

async fn until(path: &Path, epoch: u32, count: usize) {
    let limit = SystemClock.boot_ms() + 60_000;
    while epochs(path).iter().filter(|e| **e == epoch).count() < count {
        assert!(SystemClock.boot_ms() < limit, "there never were {count} lines of attempt {epoch}");
        SystemClock.sleep_until(SystemClock.boot_ms() + 20).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_line_of_a_frozen_worker_comes_after_the_next_ones() {
    let world = World::start().await;
    let path = world.dir.path().join("lines");
    let frozen = Process::start(&world, "a", &path);
    world.create("1").await;
    until(&path, 1, 3).await;
    frozen.signal("-STOP");
    let stopped_at = SystemClock.boot_ms();
    let _next = Process::start(&world, "b", &path);
    until(&path, 2, 3).await;
    SystemClock.sleep_until(stopped_at + 2 * LEASE_MS).await;
    let before = epochs(&path).len();
    frozen.signal("-CONT");
    until(&path, 2, before).await;
    let all = epochs(&path);
    assert!(all.is_sorted(), "{all:?}");
}
