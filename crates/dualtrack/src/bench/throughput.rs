//! Standard tasks per second, created → completed, closed loop, one of ten failing once; and whether
//! every acknowledged task is there after the server was killed under that load.

use std::collections::BTreeMap;

use anyhow::ensure;

use super::clock::{boot_us, pause, seconds};
use super::figure::{Figure, Group, Target};
use super::load::{Load, Plan, Seen};
use super::probe::{cpu_seconds, listeners};
use super::raw::{Raw, measure};
use super::verify::{Found, all_there};
use super::world::World;
use super::{Run, suite};

/// Tasks in one request.
const BATCH: u64 = 100;
/// Pause between two looks, ms.
const LOOK_MS: u64 = 25;
/// Threads that a profile names.
const NAMED: usize = 6;

/// What the processes used, CPU seconds.
struct Cpu {
    engines: BTreeMap<String, f64>,
    server: BTreeMap<String, f64>,
    workers: BTreeMap<String, f64>,
    generator: BTreeMap<String, f64>,
}

impl Cpu {
    fn now(world: &World, engines: &BTreeMap<String, u32>) -> Self {
        let engine = |(name, id): (&String, &u32)| (name.clone(), cpu_seconds(&[*id]).values().sum());
        Self {
            engines: engines.iter().map(engine).collect(),
            server: cpu_seconds(&world.server_ids()),
            workers: cpu_seconds(&world.worker_ids()),
            generator: cpu_seconds(&[std::process::id()]),
        }
    }
}

/// Takes both figures.
pub async fn take(run: &Run<'_>) -> anyhow::Result<Vec<Figure>> {
    let raw = measure(run).await?;
    run.says("throughput: warm-up");
    let mut world = World::start(run, &[]).await?;
    for _ in 0..run.args.workers {
        world.add_worker(run.args.slots)?;
    }
    let plan = Plan { open: run.args.open, batch: BATCH, total: u64::MAX / 2, failing: true, labelled: false };
    let load = Load::start(&world.client()?, plan, None);
    let begin = until(run, &mut world, &load, boot_us() + run.warm_up() * 1_000_000).await?;
    let engines = if run.args.stack { listeners(&suite::ports())? } else { BTreeMap::new() };
    let cpu_begin = Cpu::now(&world, &engines);
    let end = until(run, &mut world, &load, begin.at_us + run.args.seconds * 1_000_000).await?;
    let cpu_end = Cpu::now(&world, &engines);
    let not_created = load.not_created();

    run.says("throughput: kill, restart, looking for every acknowledged task");
    world.kill_server()?;
    let tasks = load.stop();
    world.kill_workers();
    ensure!(!tasks.is_empty(), "no task was created");
    world.start_again().await?;
    let found = all_there(&world.client()?, &tasks).await;
    let rate = rate(run, (&begin, &end), &raw, not_created);
    let rate = profile(rate, seconds(end.at_us - begin.at_us), &cpu_begin, &cpu_end);
    Ok(vec![rate, durable(tasks.len(), found)])
}

async fn until(run: &Run<'_>, world: &mut World, load: &Load, until_us: u64) -> anyhow::Result<Seen> {
    loop {
        let seen = load.look(world.address()).await?;
        if seen.at_us >= until_us {
            return Ok(seen);
        }
        run.says(&format!("throughput: {} done, {} open", seen.done, seen.server.open));
        world.is_running()?;
        pause(LOOK_MS).await;
    }
}

fn rate(run: &Run<'_>, (begin, end): (&Seen, &Seen), raw: &Raw, (refused, unknown): (u64, u64)) -> Figure {
    let took = seconds(end.at_us - begin.at_us);
    let done = end.done - begin.done;
    let tasks_per_s = done as f64 / took;
    let records = end.server.applied - begin.server.applied;
    let records_per_s = records as f64 / took;
    let figure = Figure::new(Group::Throughput, "standard tasks, created → completed", tasks_per_s, "tasks/s")
        .target(Target::AtLeast(if run.args.stack { 3_000.0 } else { 20_000.0 }))
        .beside("log alone, records/s (ratio: records of the tasks)", raw.records_per_s, records_per_s)
        .note(format!(
            "{done} tasks in {took:.1} s, {records_per_s:.0} records/s ({:.1} a task); at most {} open, {} workers \
             with {} slots; {refused} creates refused, {unknown} unknown",
            records as f64 / done.max(1) as f64,
            run.args.open,
            run.args.workers,
            run.args.slots,
        ));
    match raw.rows_per_s {
        Some(rows) => figure.note(format!("the store alone took {rows:.0} payload rows/s; a task writes four rows")),
        None => figure,
    }
}

fn profile(mut figure: Figure, took: f64, begin: &Cpu, end: &Cpu) -> Figure {
    let sides = [
        ("engines", &begin.engines, &end.engines),
        ("server", &begin.server, &end.server),
        ("workers", &begin.workers, &end.workers),
        ("load generator", &begin.generator, &end.generator),
    ];
    for (who, begin, end) in sides {
        let spent = |name: &String| end.get(name).unwrap_or(&0.0) - begin.get(name).unwrap_or(&0.0);
        let mut threads: Vec<(f64, &String)> = end.keys().map(|name| (spent(name).max(0.0) / took, name)).collect();
        threads.sort_by(|a, b| b.0.total_cmp(&a.0));
        if threads.is_empty() {
            continue;
        }
        let all: f64 = threads.iter().map(|(cores, _)| cores).sum();
        let named: Vec<String> = threads
            .iter()
            .take(NAMED)
            .filter(|(cores, _)| *cores >= 0.01)
            .map(|(n, name)| format!("{name} {n:.2}"))
            .collect();
        figure = figure.note(format!("CPU of the {who}: {all:.2} cores ({})", named.join(", ")));
    }
    figure
}

fn durable(acknowledged: usize, found: Found) -> Figure {
    let share = 100.0 * found.found as f64 / found.asked.max(1) as f64;
    let mut figure = Figure::new(Group::Throughput, "acknowledged tasks found after SIGKILL", share, "%")
        .target(Target::AtLeast(100.0))
        .note(format!(
            "{} answered with 201, {} asked for: {} found ({} of them SUCCESS), {} lost, {} without an answer",
            acknowledged, found.asked, found.found, found.succeeded, found.lost, found.unanswered
        ));
    figure.lost = found.lost + found.unanswered;
    figure
}
