//! Workers as processes: the test binary itself, told to be one. Each test target that starts them has a
//! test `a_worker_process` which calls [`work_if_told`].

use std::path::{Path, PathBuf};
use std::process::Stdio;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use service_kit::{Clock as _, SystemClock};
use stack_control::Process;
use worker_sdk::{Context, HandlerError, Worker};

/// Type of every task.
pub const TYPE: &str = "drill";

/// What a process of a test binary gets to know that it is a worker.
const VARIABLE: &str = "DUALTRACK_TEST_WORKER";

/// How a worker is to be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerPlan {
    /// Coordinators.
    pub urls: Vec<String>,
    /// Its name.
    pub id: String,
    /// Handlers at a time.
    pub slots: u32,
    /// The fenced sink that all of them write to.
    pub sink: PathBuf,
    /// Folder of its outbox.
    pub outbox: PathBuf,
}

/// What a task asks of its handler.
#[derive(Deserialize)]
struct Told {
    /// How long it takes, ms.
    ms: u64,
    /// The first attempt fails after its first step.
    #[serde(default)]
    fails: bool,
    /// It writes a line every 100 ms until it is stopped; a later attempt ends at once.
    #[serde(default)]
    lines: bool,
}

impl WorkerPlan {
    /// Starts a process of it.
    ///
    /// # Panics
    /// It does not start.
    pub fn start(&self) -> Process {
        let program = std::env::current_exe().expect("this binary");
        let told = serde_json::to_string(self).expect("JSON");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.outbox.with_extension("log"));
        let log = log.expect("a file for what it says");
        let says = (Stdio::null(), Stdio::from(log));
        let arguments = ["--exact", "a_worker_process", "--nocapture"];
        Process::start(&self.id, &program, arguments, &[(VARIABLE.to_owned(), told)], says).expect("a worker")
    }
}

/// Works until it is killed, if this process was told to.
///
/// # Panics
/// It cannot work as told.
#[expect(clippy::disallowed_methods, reason = "how a process of this binary is told to be a worker")]
pub fn work_if_told() {
    let Ok(told) = std::env::var(VARIABLE) else { return };
    let plan: WorkerPlan = serde_json::from_str(&told).expect("a plan");
    let (first, others) = plan.urls.split_first().expect("a coordinator");
    let connected = others.iter().fold(Worker::connect(first), |worker, url| worker.also_at(url));
    let sink = plan.sink.clone();
    let worker = connected
        .worker_id(plan.id.as_str())
        .slots(plan.slots)
        .outbox(&plan.outbox)
        .handler(TYPE, move |context| handle(sink.clone(), context))
        .build()
        .expect("a worker");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(worker.run(std::future::pending())).expect("it is killed");
}

async fn handle(sink: PathBuf, context: Context) -> Result<Bytes, HandlerError> {
    // Of a payload that lies elsewhere there is nothing to read.
    let at_once = Told { ms: 0, fails: false, lines: false };
    let is_elsewhere = context.payload_ref().is_some();
    let told = if is_elsewhere { at_once } else { serde_json::from_slice(context.params()).expect("as sent") };
    let me = format!("{} {}", context.task_id(), context.exec_epoch());
    let sink = context.guarded_file(sink).await?;
    sink.append(format!("{me} in\n")).await?;
    let first = context.step("first").idempotent(true).run(|| async { Ok(Bytes::from_static(b"\"kept\"")) }).await?;
    let is_first = context.exec_epoch().get() == 1;
    if told.fails && is_first {
        return Err(HandlerError::transient("AT_FIRST", "as told"));
    }
    if told.lines && is_first {
        loop {
            sink.append(format!("{me} on\n")).await?;
            pause(100).await;
        }
    }
    let until = SystemClock.boot_ms() + told.ms;
    tokio::select! {
        () = SystemClock.sleep_until(until) => {}
        () = context.cancelled() => return Err(context.give_up()),
    }
    sink.append(format!("{me} out\n")).await?;
    context.step("second").idempotent(true).run(|| async { Ok(first) }).await
}

async fn pause(ms: u64) {
    SystemClock.sleep_until(SystemClock.boot_ms() + ms).await;
}

/// A line of the sink: task, epoch and what the handler said.
pub fn lines(sink: &Path) -> Vec<(String, u32, String)> {
    let text = std::fs::read_to_string(sink).unwrap_or_default();
    // The last one may be on its way.
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let read = |line: &str| {
        let mut parts = line.trim_end().splitn(3, ' ').map(str::to_owned);
        let mut next = || parts.next().expect("a whole line");
        (next(), next().parse().expect("an epoch"), next())
    };
    whole.map(read).collect()
}
