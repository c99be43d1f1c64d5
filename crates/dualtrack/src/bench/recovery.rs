//! Recovery: from SIGKILL to the first decision of every partition, one of which has 100,000 open
//! tasks.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use rest_client::Client;
use rest_contract::{CreateBatch, CreateRequest};
use task_events::{PartitionId, TaskId};

use super::clock::{boot_us, pause, seconds, seconds_since};
use super::figure::{Figure, Group, Target};
use super::load::{Load, Plan};
use super::raw::measure;
use super::world::World;
use super::{PARTITIONS, Run, standard};

/// Open tasks of the one partition (`coordinator.max_open_tasks` of one creator; there are several).
const OPEN: u64 = 100_000;
/// Tasks in one request.
const BATCH: u64 = 500;
/// Longest wait for a decision, s.
const LONGEST_S: f64 = 120.0;

/// Takes the figures.
pub async fn take(run: &Run<'_>) -> anyhow::Result<Vec<Figure>> {
    let raw = measure(run).await?;
    run.says("recovery: a task in each partition");
    let mut world = World::start(run, &[]).await?;
    let client = world.client()?;
    let anchors = anchors(&client).await?;
    let full = anchors.first_key_value().map(|(_, task)| *task).context("there is a partition")?;
    let plan = Plan { open: u64::MAX / 4, batch: BATCH, total: OPEN, failing: false, labelled: false };
    let mut load = Load::start(&client, plan, Some(full));
    let began = boot_us();
    while !load.is_complete() {
        let seen = load.look(world.address()).await?;
        run.says(&format!("recovery: {} of {OPEN} tasks open in one partition", seen.server.open));
        world.is_running()?;
        pause(50).await;
    }
    let made = OPEN as f64 / seconds_since(began);
    let before = load.look(world.address()).await?.server;
    let _ = load.stop();

    run.says("recovery: SIGKILL, restart");
    let killed_us = boot_us();
    world.kill_server()?;
    world.launch_again()?;
    let up_us = boot_us();
    let first = first_decisions(&client, &anchors, killed_us).await?;
    let after = super::probe::scrape(world.address()).await?;
    let full_us = first.get(&full.partition()).copied().context("the full partition decided")?;
    let last_us = first.values().copied().max().unwrap_or(full_us);
    let alone = OPEN as f64 / raw.records_per_s;
    let beside = format!("appending {OPEN} records to the log alone, s");
    let figure = |name: &str, at_us: u64| {
        let took = seconds(at_us - killed_us);
        Figure::new(Group::Recovery, name, took, "s").target(Target::AtMost(5.0)).beside(&*beside, alone, took)
    };
    Ok(vec![
        figure("SIGKILL → first decision, partition with 100,000 open tasks", full_us).note(format!(
            "{} tasks were open before and {} after; its port was bound {:.2} s after the kill; they had been created \
             at {made:.0}/s into one partition",
            before.open,
            after.open,
            seconds(up_us - killed_us)
        )),
        figure("SIGKILL → first decision, last of all 16 partitions", last_us),
    ])
}

// A task in each partition, by creating until there is one.
async fn anchors(client: &Client) -> anyhow::Result<BTreeMap<PartitionId, TaskId>> {
    let mut anchors = BTreeMap::new();
    for _ in 0..100 {
        let request = standard::request(boot_us(), false, &"anchors".into())?;
        let tasks = vec![request; 4 * usize::from(PARTITIONS)];
        let answer = client.create_batch(&CreateBatch { tasks }, None).await?;
        for id in answer.items.iter().filter_map(|item| item.task_id.as_deref()) {
            let task: TaskId = id.parse()?;
            anchors.entry(task.partition()).or_insert(task);
        }
        if anchors.len() == usize::from(PARTITIONS) {
            return Ok(anchors);
        }
    }
    ensure!(false, "creates reach {} of {PARTITIONS} partitions only", anchors.len());
    Ok(anchors)
}

// When each partition first answered a create with 201, boot clock, µs.
async fn first_decisions(
    client: &Client,
    anchors: &BTreeMap<PartitionId, TaskId>,
    killed_us: u64,
) -> anyhow::Result<BTreeMap<PartitionId, u64>> {
    let decisions = anchors.iter().map(|(partition, anchor)| async move {
        let request = CreateRequest {
            same_partition_as: Some(anchor.to_string().into()),
            ..standard::request(boot_us(), false, &"first".into())?
        };
        loop {
            match client.create(&request, None).await {
                Ok(created) => {
                    ensure!(created.task_id.partition() == *partition, "{} is elsewhere", created.task_id);
                    return Ok((*partition, boot_us()));
                }
                Err(why) if seconds_since(killed_us) > LONGEST_S => {
                    return Err(why).with_context(|| format!("partition {partition} decides nothing"));
                }
                Err(_) => pause(5).await,
            }
        }
    });
    Ok(try_join_all(decisions).await?.into_iter().collect())
}
