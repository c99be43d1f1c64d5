//! First pages of lists beside a million open tasks: with filters that all, one of them, or none has.

use std::collections::BTreeMap;

use anyhow::Context as _;
use rest_client::Client;
use rest_contract::{CreateRequest, ListOrder, MAX_PAGE, TasksQuery};
use task_events::{TaskState, Text};

use super::Run;
use super::clock::{boot_us, pause};
use super::figure::{Figure, Group, Target};
use super::load::{Load, Plan};
use super::pace::{histogram, ms};
use super::probe::{rss_mb, scrape};
use super::standard;
use super::world::World;

/// Open tasks, at the standard length.
const MANY: u64 = 1_000_000;
/// Tasks in one request.
const BATCH: u64 = 500;
/// First pages of each list.
const PAGES: u64 = 100;
/// Longest p99 of a first page, ms.
const TARGET_MS: f64 = 100.0;
/// They are created for so many times --seconds at most; the lists are those of what there is by then.
const PATIENCE: u64 = 10;
/// Pause between two looks, ms.
const LOOK_MS: u64 = 250;
/// Owed rows are written, ms.
const SETTLE_MS: u64 = 5_000;
/// Queue, type, creator and label of the oldest task, and of no other.
const NEEDLE: &str = "needle";

/// Takes the figures.
pub async fn take(run: &Run<'_>) -> anyhow::Result<Vec<Figure>> {
    let mut world = World::start(run, &[]).await?;
    let client = world.client()?;
    let idle = rss_mb(world.server_id()?)?;
    client.create(&needle()?, None).await.context("the needle")?;
    let open = fill(run, &mut world, &client).await?;
    let a_task = (rss_mb(world.server_id()?)? - idle) * 1e6 / open.max(1) as f64;
    let mut figures = Vec::new();
    let mut newest = None;
    for (name, query) in queries() {
        run.says(&format!("lists: {name}"));
        let (p50, p99, last) = pages(&client, &query).await?;
        let newest = *newest.get_or_insert(p99);
        let figure = Figure::new(Group::Lists, format!("first page, {name}, of {open} open tasks, p99"), p99, "ms")
            .beside("the newest tasks, p99 ms", newest, p99)
            .note(format!("p50 {p50:.1} ms; {} tasks shown, {} looked at", last.0, last.1));
        // Of fewer tasks the target asks nothing.
        figures.push(if open >= MANY { figure.target(Target::AtMost(TARGET_MS)) } else { figure });
    }
    if let Some(first) = figures.first_mut() {
        first.notes.push(format!("the server has {a_task:.0} B of memory for each open task"));
    }
    Ok(figures)
}

fn needle() -> anyhow::Result<CreateRequest> {
    let name: Text = NEEDLE.into();
    Ok(CreateRequest {
        task_type: name.clone(),
        queue: Some(name.clone()),
        labels: BTreeMap::from([(name.clone(), name.clone())]),
        ..standard::request(boot_us(), false, &name)?
    })
}

async fn fill(run: &Run<'_>, world: &mut World, client: &Client) -> anyhow::Result<u64> {
    let plan = Plan { open: u64::MAX / 4, batch: BATCH, total: MANY, failing: false, labelled: true };
    let mut load = Load::start(client, plan, None);
    let until_us = boot_us() + PATIENCE * run.args.seconds * 1_000_000;
    while !load.is_complete() && boot_us() < until_us {
        let seen = load.look(world.address()).await?;
        run.says(&format!("lists: {} of {MANY} tasks open", seen.server.open));
        world.is_running()?;
        pause(LOOK_MS).await;
    }
    let _ = load.stop();
    pause(SETTLE_MS).await;
    Ok(scrape(world.address()).await?.open)
}

// The first one is what the others stand beside.
fn queries() -> Vec<(&'static str, TasksQuery)> {
    let all = TasksQuery::default;
    let name = || Some(Text::from(NEEDLE));
    let label = |label: &str, value: &str| BTreeMap::from([(label.into(), value.into())]);
    vec![
        ("newest", all()),
        ("oldest", TasksQuery { order: ListOrder::Oldest, ..all() }),
        ("1,000 a page", TasksQuery { limit: Some(MAX_PAGE), ..all() }),
        ("queue of all", TasksQuery { queue: Some(standard::QUEUE.into()), ..all() }),
        ("queue of one", TasksQuery { queue: name(), ..all() }),
        ("type of one", TasksQuery { task_type: name(), ..all() }),
        ("creator of one", TasksQuery { creator: name(), ..all() }),
        ("label of one", TasksQuery { labels: label(NEEDLE, NEEDLE), ..all() }),
        ("label of one in a thousand", TasksQuery { labels: label("of", "7"), ..all() }),
        (
            "label of one and another's queue",
            TasksQuery { labels: label(NEEDLE, NEEDLE), queue: Some(standard::QUEUE.into()), ..all() },
        ),
        ("label of none", TasksQuery { labels: label(NEEDLE, "hay"), ..all() }),
        ("state of none", TasksQuery { states: vec![TaskState::Lost], ..all() }),
        ("closed with success", TasksQuery { states: vec![TaskState::Success], ..all() }),
    ]
}

// p50 and p99 in ms, and what the last page showed and looked at.
async fn pages(client: &Client, query: &TasksQuery) -> anyhow::Result<(f64, f64, (usize, u64))> {
    let (mut taken, mut last) = (histogram()?, (0, 0));
    for _ in 0..PAGES {
        let began_us = boot_us();
        let page = client.tasks(query).await?;
        taken.saturating_record(boot_us().saturating_sub(began_us));
        last = (page.tasks.len(), page.page.looked_at);
    }
    Ok((ms(&taken, 0.5), ms(&taken, 0.99), last))
}
