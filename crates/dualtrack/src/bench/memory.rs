//! Resident memory of the server: idle, with a million open tasks, and over a million done ones.

use anyhow::Context as _;

use super::Run;
use super::clock::{boot_us, pause};
use super::figure::{Figure, Group, Target};
use super::load::{Load, Plan};
use super::probe::rss_mb;
use super::world::World;

/// Tasks that are open at a time, and done in the end, at the standard length.
const MANY: u64 = 1_000_000;
/// Tasks in one request.
const BATCH: u64 = 500;
/// A server without work is looked at after this, ms.
const IDLE_MS: u64 = 5_000;
/// Pause between two looks, ms.
const LOOK_MS: u64 = 250;
/// A part ends after so many times --seconds, with as many tasks as there are by then.
const PATIENCE: u64 = 10;

/// Takes the figures.
pub async fn take(run: &Run<'_>) -> anyhow::Result<Vec<Figure>> {
    let mut figures = open(run).await?;
    figures.push(done(run).await?);
    Ok(figures)
}

async fn open(run: &Run<'_>) -> anyhow::Result<Vec<Figure>> {
    run.says("memory: idle");
    let mut world = World::start(run, &[]).await?;
    pause(IDLE_MS).await;
    let idle = rss_mb(world.server_id()?)?;
    let client = world.client()?;
    let plan = Plan { open: u64::MAX / 4, batch: BATCH, total: MANY, failing: false, labelled: false };
    let mut load = Load::start(&client, plan, None);
    let until_us = boot_us() + PATIENCE * run.args.seconds * 1_000_000;
    let mut highest: f64 = 0.0;
    while !load.is_complete() && boot_us() < until_us {
        let seen = load.look(world.address()).await?;
        highest = highest.max(rss_mb(world.server_id()?)?);
        run.says(&format!("memory: {} of {MANY} tasks open, {highest:.0} MB", seen.server.open));
        world.is_running()?;
        pause(LOOK_MS).await;
    }
    let not_created = load.not_created();
    let _ = load.stop();
    // Requests that were broken off are answered, and owed rows are written.
    pause(IDLE_MS).await;
    let count = super::probe::scrape(world.address()).await?.open;
    let now = rss_mb(world.server_id()?)?;
    let a_task = (now - idle) * 1e6 / count.max(1) as f64;
    let mut with_open = Figure::new(Group::Memory, format!("RSS with {count} open tasks"), now, "MB")
        .beside("idle, MB", idle, now)
        .note(format!(
            "{a_task:.0} B a task; at most {highest:.0} MB while they were created; {} refused, {} unknown",
            not_created.0, not_created.1
        ));
    if count >= MANY {
        with_open = with_open.target(Target::AtMost(1_500.0));
    } else {
        with_open = with_open
            .note(format!("not the {MANY} of the target: this is what {} s allowed", PATIENCE * run.args.seconds));
    }
    let idle = Figure::new(Group::Memory, "RSS idle", idle, "MB").target(Target::AtMost(150.0));
    Ok(vec![idle, with_open])
}

// One run; memory is looked at all along, so that N and 5 N are of the same run.
async fn done(run: &Run<'_>) -> anyhow::Result<Figure> {
    let mut world = World::start(run, &[]).await?;
    for _ in 0..run.args.workers {
        world.add_worker(run.args.slots)?;
    }
    let plan = Plan { open: run.args.open, batch: 100, total: MANY, failing: true, labelled: false };
    let mut load = Load::start(&world.client()?, plan, None);
    let until_us = boot_us() + PATIENCE * run.args.seconds * 1_000_000;
    let mut seen: Vec<(u64, f64)> = Vec::new();
    loop {
        let at = load.look(world.address()).await?;
        seen.push((at.done, rss_mb(world.server_id()?)?));
        run.says(&format!("memory: {} of {MANY} tasks done", at.done));
        world.is_running()?;
        if boot_us() >= until_us || at.done >= MANY || (load.is_complete() && at.server.open == 0) {
            break;
        }
        pause(LOOK_MS).await;
    }
    let (all, last) = seen.last().copied().context("nothing was seen")?;
    let (few, first) = seen.iter().copied().find(|(done, _)| *done >= all / 5).context("nothing was seen")?;
    let figure =
        Figure::new(Group::Memory, format!("RSS at {all} done tasks, in parts of that at {few}"), last / first, "×")
            .target(Target::AtMost(1.05))
            .beside(format!("RSS at {few} done, MB"), first, last);
    Ok(if all >= MANY {
        figure
    } else {
        let allowed = PATIENCE * run.args.seconds;
        figure.note(format!("N and 5 N instead of 200,000 and {MANY}: {allowed} s allowed no more"))
    })
}
