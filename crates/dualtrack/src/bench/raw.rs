//! The baseline, in this process: the embedded log alone, on the same disk, with real syncs; with
//! `--stack` the topic alone and the store alone, on the same engines.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use event_log::{AppendOutcome, EmbeddedConfig, EmbeddedLog, EventLog, OutRecord};
use hdrhistogram::Histogram;
use snapshot_store::{PayloadItem, SnapshotStore};
use task_events::{PartitionId, Sha256Hash, TaskId};
use tokio::task::JoinSet;

use super::clock::{boot_us, seconds_since};
use super::pace::histogram;
use super::world::folder;
use super::{PARTITIONS, Run, suite};

/// Length of each of both parts, µs.
const PART_US: u64 = 2_000_000;
/// Value of a record, bytes.
const VALUE_BYTES: usize = 220;
/// Records of one append, and appends of one partition on their way at once: an owner has at most
/// 4,096 records in flight and appends what a turn of it brings.
const BATCH: usize = 64;
const WINDOW: usize = 16;
/// Payloads of the store alone: so long, so many on their way.
const PAYLOAD_BYTES: usize = 200;
const WRITERS: usize = 256;
/// When the ids of their tasks begin, ms of an id.
const FIRST_MS: i64 = 95_000_000_000;
/// … and how far apart those of two rounds begin: 4,096 ids a ms.
const ROUND_MS: i64 = 1_000;
/// Rounds of an engine before the one that counts, 2 s each: Cassandra takes most of a minute to become as fast as it
/// gets, and Kafka would fill the disk meanwhile.
const STORE_ROUNDS: i64 = 20;
const LOG_ROUNDS: i64 = 5;
/// The last appends get so long.
const CLOSE: Duration = Duration::from_secs(10);

/// What the log alone does.
pub struct Raw {
    /// Records a second, all partitions, in batches.
    pub records_per_s: f64,
    /// One record at a time in one partition: from the append to its acknowledgement, µs.
    pub single_us: Histogram<u64>,
    /// Payload rows a second, one mutation each; of a store that is an engine.
    pub rows_per_s: Option<f64>,
}

/// Measures it.
///
/// # Errors
/// The log cannot be opened, or did not take a record.
pub async fn measure(run: &Run<'_>) -> anyhow::Result<Raw> {
    let dir = folder(&run.dir)?;
    if run.args.stack {
        run.says("baseline: topic and store alone");
        let settings = suite::settings(dir.path())?;
        let log = settings.log.connect("bench").await?;
        let store = settings.store.connect().await?;
        let rows = warm(STORE_ROUNDS, async |round| of_store(&store, round).await).await?;
        let (records_per_s, single_us) = warm(LOG_ROUNDS, async |_| of_log(&log).await).await?;
        log.close(CLOSE).await;
        let rows_per_s = Some(rows);
        return Ok(Raw { records_per_s, single_us, rows_per_s });
    }
    run.says("baseline: the log alone");
    let log = EmbeddedLog::open(EmbeddedConfig::new(dir.path(), PARTITIONS))?;
    let (records_per_s, single_us) = of_log(&log).await?;
    tokio::task::spawn_blocking(move || log.close()).await.context("the log's end")?;
    Ok(Raw { records_per_s, single_us, rows_per_s: None })
}

// The last of some rounds: an engine in Java compiles its code while it runs.
async fn warm<T>(rounds: i64, mut measure: impl AsyncFnMut(i64) -> anyhow::Result<T>) -> anyhow::Result<T> {
    for round in 0..rounds {
        measure(round).await?;
    }
    measure(rounds).await
}

// Records a second in all partitions, and single ones in one.
async fn of_log(log: &impl EventLog) -> anyhow::Result<(f64, Histogram<u64>)> {
    let began = boot_us();
    let writers: Vec<_> = (0..PARTITIONS)
        .map(|partition| tokio::spawn(write(log.clone(), PartitionId(partition), BATCH, WINDOW, began + PART_US)))
        .collect();
    let mut appends = 0;
    for writer in writers {
        appends += writer.await.context("a writer")??.len();
    }
    let records_per_s = (appends * BATCH as u64) as f64 / seconds_since(began);
    let single_us = write(log.clone(), PartitionId(0), 1, 1, boot_us() + PART_US).await?;
    Ok((records_per_s, single_us))
}

// Rows a second: payloads, which are written one by one as they are here.
async fn of_store(store: &impl SnapshotStore, round: i64) -> anyhow::Result<f64> {
    let (began, next) = (boot_us(), Arc::new(AtomicU64::new(0)));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, next) = (store.clone(), next.clone());
        writers.spawn(async move {
            while boot_us() < began + PART_US {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let at_ms = FIRST_MS + round * ROUND_MS + n as i64 / 4_096;
                let task = TaskId::from_parts(at_ms, PartitionId(0), (n % 4_096) as u16).context("an id")?;
                let bytes = Bytes::from(vec![0x5a; PAYLOAD_BYTES]);
                let item = PayloadItem::Parameters { payload_hash: Sha256Hash::of(&bytes) };
                store.put_payload(task, item, bytes).await.context("the store")?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.context("a writer")??;
    }
    Ok(next.load(Ordering::Relaxed) as f64 / seconds_since(began))
}

fn record() -> OutRecord {
    let headers = vec![
        ("kind", Bytes::from_static(b"TaskCreated")),
        ("rule-version", Bytes::from_static(b"1")),
        ("crc32c", Bytes::from_static(b"0123abcd")),
    ];
    OutRecord { key: Bytes::from_static(b"123456789012345678"), headers, value: Bytes::from(vec![0x5a; VALUE_BYTES]) }
}

async fn write(
    log: impl EventLog,
    partition: PartitionId,
    batch: usize,
    window: usize,
    until_us: u64,
) -> anyhow::Result<Histogram<u64>> {
    let mut latencies = histogram()?;
    let batch = vec![record(); batch];
    let mut waiting = VecDeque::new();
    loop {
        while waiting.len() < window && boot_us() < until_us {
            waiting.push_back((boot_us(), log.append(partition, batch.clone())));
        }
        let Some((sent_us, wait)) = waiting.pop_front() else { return Ok(latencies) };
        let outcome = wait.await;
        ensure!(outcome == AppendOutcome::Acknowledged, "the log did not take a record: {outcome:?}");
        latencies.saturating_record(boot_us() - sent_us);
    }
}
