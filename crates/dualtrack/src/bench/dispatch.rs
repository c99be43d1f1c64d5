//! Dispatch: from the moment a create is due to be sent to the first line of its handler, open loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Run;
use super::clock::{boot_us, pause};
use super::figure::{Figure, Group, Target};
use super::pace::{histogram, ms, open_loop};
use super::probe::scrape;
use super::raw::{Raw, measure};
use super::standard;
use super::world::World;

/// Attempts at a time of the worker.
const SLOTS: u32 = 256;
/// Calls of this time at the start are not counted, s.
const WARM_S: u64 = 2;
/// A generator that is late by more than this in the median measures itself, ms.
const LATE_MS: f64 = 5.0;
/// Longest wait for the last tasks, µs.
const END_US: u64 = 30_000_000;

/// One way of starting handlers.
struct Case {
    per_second: u64,
    start: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// Targets, ms.
    p50: Option<f64>,
    p99: f64,
    /// The same on real engines.
    real: (Option<f64>, f64),
}

const CASES: [Case; 4] = [
    Case { per_second: 50, start: "confirmed", settings: &[], p50: Some(2.0), p99: 8.0, real: (Some(5.0), 25.0) },
    Case {
        per_second: 50,
        start: "optimistic",
        settings: OPTIMISTIC,
        p50: Some(1.0),
        p99: 3.0,
        real: (Some(1.0), 3.0),
    },
    Case { per_second: 1_000, start: "confirmed", settings: &[], p50: None, p99: 50.0, real: (None, 50.0) },
    Case { per_second: 1_000, start: "optimistic", settings: OPTIMISTIC, p50: None, p99: 50.0, real: (None, 50.0) },
];

const OPTIMISTIC: &[(&str, &str)] = &[("coordinator.optimistic_start", "true")];

/// Takes all cases.
pub async fn take(run: &Run<'_>) -> anyhow::Result<Vec<Figure>> {
    let raw = measure(run).await?;
    let mut figures = Vec::new();
    for case in &CASES {
        run.says(&format!("dispatch: {}/s, {} start", case.per_second, case.start));
        figures.extend(take_one(run, case, &raw).await?);
    }
    Ok(figures)
}

async fn take_one(run: &Run<'_>, case: &Case, raw: &Raw) -> anyhow::Result<Vec<Figure>> {
    let mut world = World::start(run, case.settings).await?;
    world.add_worker(SLOTS)?;
    let (client, failed) = (world.client()?, Arc::new(AtomicU64::new(0)));
    let count = failed.clone();
    let create = move |_, due_us| {
        let (client, count) = (client.clone(), count.clone());
        async move {
            let Ok(request) = standard::request(due_us, false, &"dispatch".into()) else { return };
            if client.create(&request, None).await.is_err() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let paced = open_loop(case.per_second, WARM_S + run.args.seconds, create).await?;
    let until_us = boot_us() + END_US;
    while scrape(world.address()).await?.open > 0 && boot_us() < until_us {
        world.is_running()?;
        pause(50).await;
    }
    let from_us = paced.began_us + WARM_S * 1_000_000;
    let mut latencies = histogram()?;
    for (due_us, entered_us) in world.drain_workers().await? {
        if due_us >= from_us {
            latencies.saturating_record(entered_us.saturating_sub(due_us));
        }
    }
    let sent = case.per_second * run.args.seconds;
    let note = format!(
        "{} of {sent} creates reached a handler, {} failed; p90 {:.2}, p99.9 {:.2}, longest {:.1} ms; the generator \
         itself was late by p50 {:.2}, p99 {:.2} ms, which is part of the figure",
        latencies.len(),
        failed.load(Ordering::Relaxed),
        ms(&latencies, 0.9),
        ms(&latencies, 0.999),
        latencies.max() as f64 / 1e3,
        ms(&paced.late, 0.5),
        ms(&paced.late, 0.99),
    );
    let figure = |quantile: f64, name: &str, target: Option<f64>| {
        let value = ms(&latencies, quantile);
        let name = format!("dispatch at {}/s, {} start, {name}", case.per_second, case.start);
        if latencies.is_empty() {
            return Figure::missing(Group::Dispatch, name, "no handler was entered");
        }
        if ms(&paced.late, 0.5) > LATE_MS {
            return Figure::missing(Group::Dispatch, name, "the machine was too busy to send on schedule");
        }
        let figure = Figure::new(Group::Dispatch, name, value, "ms").beside(
            "one append to the log alone, same quantile, ms",
            ms(&raw.single_us, quantile),
            value,
        );
        match target {
            Some(target) => figure.target(Target::AtMost(target)),
            None => figure,
        }
    };
    let (p50, p99) = if run.args.stack { case.real } else { (case.p50, case.p99) };
    Ok(vec![figure(0.5, "p50", p50), figure(0.99, "p99", Some(p99)).note(note)])
}
