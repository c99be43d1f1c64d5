//! How long first pages of lists take over HTTP, with a million open tasks in 16 partitions, and then
//! with most of them closed.
//!
//! `cargo bench -p coordinator-edge --bench lists` (`LISTS_BENCH_TASKS` for another number). Each line is
//! 100 first pages, one after the other; each figure beside a bare request of the same run (`/ping`).
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

#[path = "../tests/edge/checked.rs"]
#[allow(dead_code, reason = "shared with the tests, this needs a part of it")]
mod checked;
#[path = "../tests/edge/upstream/kit.rs"]
#[allow(dead_code, reason = "shared with the tests, this needs a part of it")]
mod kit;

use std::time::Instant;

use coordinator_edge::EdgeConfig;
use serde_json::{Value, json};
use snapshot_store::{RowKind, RowWrite};
use task_core::HistoryEntry;
use task_events::{Offset, TaskState};

use kit::{Instance, World, until};

const PARTITIONS: u16 = 16;
const PAGES: usize = 100;
const BATCH: usize = 1_000;
/// Creates on their way at once.
const WINDOW: usize = 4;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let tasks = std::env::var("LISTS_BENCH_TASKS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let world = World::new(PARTITIONS);
    let one = world.start("a", EdgeConfig::default());
    until("it owns all", || one.surface.owned().len() == usize::from(PARTITIONS)).await;
    let made = Instant::now();
    let batches: Vec<usize> = (0..tasks / BATCH).collect();
    for some in batches.chunks(WINDOW) {
        futures::future::join_all(some.iter().map(|batch| create(&one, *batch))).await;
    }
    println!("{tasks} tasks created in {:.0} s", made.elapsed().as_secs_f64());
    one.task(json!({"task_type": "rare", "payload": 1, "queue": "rare", "labels": {"one": "in a million"}})).await;
    pages(&one, "bare request", "/coordinator/v1/ping").await;
    println!("-- open tasks, from the owners' memory");
    lists(&one).await;

    // As their owners would write them: the store's side of a list, without running a million handlers.
    until("rows are written", || world.store.rows().len() > tasks).await;
    let rows = world.store.rows();
    let ended = rows.into_iter().enumerate().map(|(n, mut row)| {
        let at = row.row.created_at;
        let beside = std::sync::Arc::make_mut(&mut row.row);
        (beside.end_time, row.closed_at) = (Some(at + 1), Some(Offset(1)));
        row.core.state = if n % 10 == 0 { TaskState::FailedPermanently } else { TaskState::Success };
        beside.error_code = (n % 10 == 0).then(|| if n % 1_000 == 0 { "RARE" } else { "DISK_FULL" }.into());
        row.core.id = task_events::TaskId::from_raw(row.core.id.raw() - (1 << 40)).expect("an id");
        RowWrite { timestamp_us: 1, row: RowKind::Snapshot(row) }
    });
    let ended: Vec<RowWrite> = ended.collect();
    world.store.write_now(ended);
    println!("-- the same and {tasks} closed ones");
    lists(&one).await;

    // One task with a history of 20,000 records beside its row.
    let id = world.store.rows().remove(0).core.id;
    let entry = |n| RowWrite {
        timestamp_us: n as i64,
        row: RowKind::HistoryOverflow { task_id: id, entry: HistoryEntry { offset: Offset(n), rejected: None } },
    };
    world.store.write_now((0..20_000).map(entry).collect());
    println!("-- and one task with 20,000 events");
    lists(&one).await;
}

async fn lists(one: &Instance) {
    for (name, query) in [
        ("newest 50", ""),
        ("oldest 50", "order=oldest"),
        ("newest 1,000", "limit=1000"),
        ("state CREATED", "state=CREATED"),
        ("state SUCCESS", "state=SUCCESS"),
        ("code, 1 in 10", "code=DISK_FULL"),
        ("code, 1 in 1,000", "code=RARE"),
        ("queue, 1 in all", "queue=rare&order=oldest"),
        ("label, 1 in all", "label=one%3Din%20a%20million&order=oldest"),
        ("nothing matches", "creator=nobody"),
    ] {
        pages(one, name, &format!("/api/v1/tasks?{query}")).await;
    }
}

async fn create(one: &Instance, batch: usize) {
    let tasks: Vec<Value> = (0..BATCH)
        .map(|n| {
            json!({"task_type": "t", "payload": batch * BATCH + n, "labels": {"n": (n % 100).to_string()},
            "idempotency_key": format!("{batch}/{n}")})
        })
        .collect();
    let made = one.post("/api/v1/task/create-batch", json!({"tasks": tasks}).to_string()).await;
    let items = made.body["items"].as_array().expect("items");
    assert!(items.iter().all(|item| item["outcome"] == "created"), "{}", made.text);
}

async fn pages(one: &Instance, name: &str, path: &str) {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let mut took_us = Vec::with_capacity(PAGES);
    let mut last = Value::Null;
    for _ in 0..PAGES {
        let began = Instant::now();
        let got = client.get(format!("http://{}{path}", one.address)).send().await.expect("an answer");
        assert_eq!(got.status(), 200);
        let text = got.text().await.expect("a body");
        took_us.push(began.elapsed().as_micros());
        last = serde_json::from_str(&text).expect("JSON");
    }
    took_us.sort_unstable();
    let ms = |at: usize| took_us[at] as f64 / 1_000.0;
    let shown = last["tasks"].as_array().map_or(0, Vec::len);
    let looked = last["looked_at"].as_u64().unwrap_or(0);
    println!(
        "{name:<20} p50 {:>7.2} ms  p99 {:>7.2} ms  shown {shown:>4}  looked at {looked:>7}  more {}",
        ms(PAGES / 2),
        ms(PAGES - 1),
        last["next_cursor"].is_string()
    );
}
