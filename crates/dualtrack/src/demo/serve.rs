//! The demo's inner process: owner, engine, replayer and a worker pool over one log and one
//! snapshot store in a directory; locks are in memory. What is open is rebuilt from the log at the
//! start, what is closed is read from its row.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, bail};
use assignment_lock::MemoryLock;
use coordinator::owner::{Answer, Command, CreateTask, Identity, Key, OwnerConfig, OwnerRules, Ports};
use coordinator::service::Service;
use coordinator::surface::{Placement, Surface};
use event_log::{EmbeddedConfig, EmbeddedLog, EventLog};
use fold_start::StoredCheckpoints;
use futures::StreamExt as _;
use indicatif::{ProgressBar, ProgressStyle};
use service_kit::{Clock as _, Entropy as _, Metrics, Shutdown, SystemClock, SystemEntropy};
use snapshot_store::EmbeddedStore;
use task_core::decide::NewTask;
use task_events::{HashForm, Incarnation, Sha256Hash, TaskCreated, TaskId, Text, Timeouts};
use verdict_writer::FoldSource;

use super::ledger::Ledger;
use super::supervise::{Places, open_kafka};
use super::{DemoArgs, LogKind, PARTITIONS, files, rows, workers};

/// Queue and task type of the demo.
pub const QUEUE: Text = Text::const_new("files");

/// Leases short enough to be watched running out: the resume after the kill waits for them.
fn owner_config() -> OwnerConfig {
    OwnerConfig { lease_ms: 3_000, lease_max_ms: 3_000, heartbeat_ms: 1_000, ..OwnerConfig::default() }
}

/// How far the handlers are, and who waits in the second step for the process to die.
#[derive(Clone)]
pub struct Progress {
    entered: Arc<AtomicUsize>,
    held: Arc<AtomicUsize>,
    returned: Arc<AtomicUsize>,
    /// Handlers that pass the second step; later ones are held there. `None`: nobody is.
    passing: Option<usize>,
    /// Handlers that must be held before the process dies.
    wanted: usize,
}

/// Runs everything until all tasks are closed, or dies half-way when told so.
pub async fn serve(args: &DemoArgs) -> anyhow::Result<()> {
    let places = Places::below(&args.work);
    let store = rows::open(&places.store)?;
    let outcome = match args.log {
        LogKind::Embedded => {
            let log = EmbeddedLog::open(EmbeddedConfig::new(&places.log, PARTITIONS))?;
            let outcome = compose(log.clone(), store.clone(), args, &places).await;
            log.close();
            outcome
        }
        LogKind::Kafka => {
            let log = open_kafka(args, "demo").await?;
            let outcome = compose(log.clone(), store.clone(), args, &places).await;
            log.close(std::time::Duration::from_secs(5)).await;
            outcome
        }
    };
    store.close();
    outcome
}

async fn compose<L: EventLog>(log: L, store: EmbeddedStore, args: &DemoArgs, places: &Places) -> anyhow::Result<()> {
    let clock = SystemClock;
    let mut entropy = SystemEntropy::default();
    let incarnation = Incarnation::new(clock.wall_ms(), entropy.next_u64() as u32);
    let (metrics, shutdown) = (Metrics::default(), Shutdown::default());
    let surface = Surface::new(PARTITIONS, clock);
    let cfg = owner_config();
    cfg.validate()?;
    let service = Service {
        ports: Ports { log: log.clone(), store: store.clone(), lock: MemoryLock::new(move || clock.boot_ms()), clock },
        cfg,
        rules: OwnerRules::STANDARD,
        fold_rules: &task_core::STANDARD,
        identity: Identity { instance: "coordinator-1".into(), incarnation, url: "in-process".into() },
        entropy,
        metrics: metrics.clone(),
        freeze: Default::default(),
        surface: surface.clone(),
    };
    let checkpoints = StoredCheckpoints {
        log: log.clone(),
        store: store.clone(),
        clock,
        rules: &task_core::STANDARD,
        metrics: metrics.clone(),
    };
    let source = FoldSource::new(checkpoints);
    let engine = task_engine::run(
        task_engine::Deps {
            log: log.clone(),
            clock,
            metrics: metrics.clone(),
            entropy: Box::new(SystemEntropy::default()),
            source: source.clone(),
        },
        task_engine::EngineConfig::new("task-engine-1".into(), incarnation),
        shutdown.clone(),
    );
    let replayer = auto_replay::run(
        auto_replay::Deps { log: log.clone(), store: store.clone(), clock, metrics: metrics.clone(), source },
        auto_replay::ReplayConfig::new("auto-replay-1".into(), incarnation),
        shutdown.clone(),
    );
    let upkeep = tokio::spawn(rows::keep_up(store, log.clone()));
    let owner = tokio::spawn(service.run(shutdown.clone()));
    let engine = tokio::spawn(engine);
    let replayer = tokio::spawn(replayer);

    let mut inputs = files::list(&args.dir, &args.work)?;
    inputs.truncate(args.limit.unwrap_or(usize::MAX));
    let progress = Progress::new(args.kill_half_way, inputs.len());
    let ledger = Ledger::open(&places.ledger)?;
    let workers =
        workers::start(surface.clone(), incarnation, args, places, ledger, progress.clone(), shutdown.clone())?;
    if args.kill_half_way {
        tokio::spawn(die_half_way(progress.clone()));
    }

    let bar = progress_bar(inputs.len());
    let ids = create_all(&surface, args, inputs).await?;
    wait_for_all(&surface, &ids, &bar).await?;
    bar.finish_and_clear();
    shutdown.request();
    workers.await.context("the worker pool panicked")??;
    owner.await.context("the coordinator panicked")??;
    engine.await.context("the engine panicked")??;
    replayer.await.context("the replayer panicked")??;
    upkeep.abort();
    Ok(())
}

impl Progress {
    fn new(kill: bool, tasks: usize) -> Self {
        Self {
            entered: Arc::default(),
            held: Arc::default(),
            returned: Arc::default(),
            passing: kill.then_some(tasks / 2),
            wanted: 8.min(tasks - tasks / 2),
        }
    }

    /// A handler is inside its second step. In the process that is to die the later half stays
    /// there, so that the kill meets handlers at work, however short the step is.
    pub async fn second_step(&self) {
        let number = self.entered.fetch_add(1, Ordering::SeqCst);
        if self.passing.is_some_and(|passing| number >= passing) {
            self.held.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
    }

    /// A handler returned.
    pub fn returned(&self) {
        self.returned.fetch_add(1, Ordering::SeqCst);
    }

    fn is_half_way(&self) -> bool {
        let count = |n: &AtomicUsize| n.load(Ordering::SeqCst);
        self.passing.is_some_and(|passing| count(&self.returned) >= passing && count(&self.held) >= self.wanted)
    }
}

// The crash: no clean-up, no flush, nothing but what is durable already.
async fn die_half_way(progress: Progress) {
    while !progress.is_half_way() {
        SystemClock.sleep_until(SystemClock.boot_ms() + 1).await;
    }
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

// Each file has a key, so that the second start creates nothing twice whatever the first one did.
async fn create_all(
    surface: &Surface<SystemClock>,
    args: &DemoArgs,
    inputs: Vec<PathBuf>,
) -> anyhow::Result<Vec<TaskId>> {
    let created = futures::stream::iter(inputs.into_iter().map(|input| {
        let (surface, dir) = (surface.clone(), args.dir.clone());
        async move {
            let bytes =
                tokio::fs::read(dir.join(&input)).await.with_context(|| format!("cannot read {}", input.display()))?;
            create(&surface, &input.to_string_lossy(), &bytes).await
        }
    }))
    .buffered(64);
    futures::TryStreamExt::try_collect(created).await
}

async fn create(surface: &Surface<SystemClock>, name: &str, bytes: &[u8]) -> anyhow::Result<TaskId> {
    let key_hash = Sha256Hash::of(format!("demo\0{name}").as_bytes());
    let payload_hash = Sha256Hash::of(bytes);
    let created = TaskCreated {
        task_type: QUEUE,
        queue: QUEUE,
        creator: "demo".into(),
        priority: 4,
        deadline: None,
        not_before: None,
        payload_hash,
        hash_form: HashForm::PlainSha256,
        payload_ref: Some(name.into()),
        business_key: None,
        labels: Default::default(),
        concurrency_key: None,
        timeouts: Timeouts { start_to_close_ms: 3_600_000, schedule_to_start_ms: None },
        max_retries: 3,
        trace_given: false,
        key_hash: Some(key_hash),
        request_hash: Some(payload_hash),
    };
    // The trace of a task is derived from its key, so that both starts name the same one.
    let trace_id = key_hash.to_string()[..32].into();
    loop {
        let key = Some(Key { key_hash, request_hash: payload_hash });
        let task = CreateTask {
            task: NewTask { created: created.clone(), trace_id: Text::clone(&trace_id) },
            key,
            payload: None,
        };
        let placement = Placement { key_hash: Some(key_hash), ..Placement::default() };
        let answer = surface.create(task, placement).await;
        if let Answer::Created { task_id, .. } | Answer::Duplicate { task_id } = answer {
            return Ok(task_id);
        }
        if !matches!(answer, Answer::OutcomeUnknown { .. } | Answer::Unavailable(_)) {
            bail!("task for {name} was refused: {answer:?}");
        }
        // Unknown or not now: the same key makes asking again safe.
        SystemClock.sleep_until(SystemClock.boot_ms() + 50).await;
    }
}

async fn wait_for_all(surface: &Surface<SystemClock>, ids: &[TaskId], bar: &ProgressBar) -> anyhow::Result<()> {
    let mut open = ids.to_vec();
    while !open.is_empty() {
        let mut still = Vec::new();
        for id in open {
            let answer = surface.about(id, Command::Get { task: id }).await;
            let closed = matches!(&answer, Answer::Task(seen) if seen.row.core.state.is_terminal());
            if !closed {
                still.push(id);
            }
        }
        open = still;
        bar.set_position((ids.len() - open.len()) as u64);
        SystemClock.sleep_until(SystemClock.boot_ms() + 100).await;
    }
    Ok(())
}

// Drawn on a terminal only; indicatif sees to that.
fn progress_bar(tasks: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} tasks {elapsed}");
    ProgressBar::new(tasks as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
