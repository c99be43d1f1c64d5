//! How many snapshot rows a second the embedded store takes, with real fsyncs.
//!
//! `cargo bench -p snapshot-store` (`SNAPSHOT_STORE_BENCH_DIR` picks the disk; default: the target
//! folder). Rows of 1 KiB in batches of 128, as an owner writes them; each line is one run of 5 s.
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use snapshot_store::conformance::listings::named;
use snapshot_store::conformance::{NOW_MS, PARTITION, closed_row, snapshot_write, task};
use snapshot_store::{Durability, EmbeddedConfig, EmbeddedStore, RowWrite, SnapshotRow, SnapshotStore};
use task_events::{TaskId, TaskState};

const RUN: Duration = Duration::from_secs(5);
const BATCH: u64 = 128;

struct Load {
    name: &'static str,
    /// Batches on their way at once.
    window: usize,
    /// Tasks whose rows are written again and again; `None`: every row is a new one.
    tasks: Option<u64>,
    durability: Durability,
    /// The caller gave a trace and a business key, as the standard task's did not: two entries more.
    found: bool,
}

/// A closed task's row of 1 KiB, half of it a text that does not compress to nothing.
fn row_of_1_kib(found: bool) -> SnapshotRow {
    let key = found.then_some("order-7");
    let row = closed_row(task(PARTITION, 1), TaskState::Success, NOW_MS);
    let mut row = named(row, key.and(Some("4bf92f3577b34da6a3ce929d0e0e4736")), "conformance", key);
    let size = |row: &SnapshotRow| rmp_serde::to_vec_named(&*row.row).expect("coded").len();
    let mut seed = 7_u32;
    while size(&row) < 1_024 - 96 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let text = format!("{}{seed:x}", row.row.error_message.clone().unwrap_or_default());
        Arc::make_mut(&mut row.row).error_message = Some(text.into());
    }
    row
}

fn batch(row: &SnapshotRow, number: u64, tasks: Option<u64>) -> Vec<RowWrite> {
    let write = |n: u64| {
        let at = tasks.map_or(n, |tasks| n % tasks) as i64;
        let id = TaskId::from_parts(95_000_000_000 + at / 4_096, PARTITION, (at % 4_096) as u16).expect("an id");
        let mut row = row.clone();
        row.core.id = id;
        snapshot_write(n as i64, row)
    };
    (number * BATCH..(number + 1) * BATCH).map(write).collect()
}

async fn run(base: &Path, load: &Load) {
    let dir = tempfile::tempdir_in(base).expect("directory");
    let config = EmbeddedConfig { durability: load.durability, ..EmbeddedConfig::new(dir.path(), || NOW_MS) };
    let store = EmbeddedStore::open(config).expect("store");
    let row = row_of_1_kib(load.found);
    let (mut waiting, mut latencies) = (VecDeque::new(), Vec::new());
    let started = Instant::now();
    let mut numbers = 0..;
    while started.elapsed() < RUN || !waiting.is_empty() {
        while waiting.len() < load.window && started.elapsed() < RUN {
            let rows = batch(&row, numbers.next().expect("a number"), load.tasks);
            waiting.push_back((Instant::now(), store.write(PARTITION, rows)));
        }
        if let Some((sent, write)) = waiting.pop_front() {
            write.await.expect("written");
            latencies.push(sent.elapsed());
        }
    }
    let rows = latencies.len() as f64 * BATCH as f64;
    let seconds = started.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at = |q: f64| latencies[((latencies.len() - 1) as f64 * q) as usize].as_secs_f64() * 1e3;
    println!("{:<44} {:>9.0} rows/s  ack p50 {:>7.2} ms  p99 {:>7.2} ms", load.name, rows / seconds, at(0.5), at(0.99));
}

fn main() {
    let base = std::env::var_os("SNAPSHOT_STORE_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    std::fs::create_dir_all(&base).expect("directory");
    let load = |name, window, tasks| Load { name, window, tasks, durability: Durability::Fsync, found: false };
    let loads = [
        load("new rows, one batch at a time", 1, None),
        load("new rows, 4 batches on their way", 4, None),
        Load { found: true, ..load("new rows by trace and key, 4 on their way", 4, None) },
        load("100,000 rows anew, 4 batches on their way", 4, Some(100_000)),
        Load { durability: Durability::Volatile, ..load("new rows, 4 batches, volatile", 4, None) },
    ];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
    runtime.block_on(async {
        for load in &loads {
            run(&base, load).await;
        }
    });
}
