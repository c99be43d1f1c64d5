//! The baseline: the embedded log alone, in this process, on the same disk, with real syncs.

use std::collections::VecDeque;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use event_log::{AppendOutcome, EmbeddedConfig, EmbeddedLog, EventLog as _, OutRecord};
use hdrhistogram::Histogram;
use task_events::PartitionId;

use super::clock::{boot_us, seconds_since};
use super::pace::histogram;
use super::world::folder;
use super::{PARTITIONS, Run};

/// Length of each of both parts, µs.
const PART_US: u64 = 2_000_000;
/// Value of a record, bytes.
const VALUE_BYTES: usize = 220;
/// Records of one append, and appends of one partition on their way at once: an owner has at most
/// 4,096 records in flight and appends what a turn of it brings.
const BATCH: usize = 64;
const WINDOW: usize = 16;

/// What the log alone does.
pub struct Raw {
    /// Records a second, all partitions, in batches.
    pub records_per_s: f64,
    /// One record at a time in one partition: from the append to its acknowledgement, µs.
    pub single_us: Histogram<u64>,
}

/// Measures it.
///
/// # Errors
/// The log cannot be opened, or did not take a record.
pub async fn measure(run: &Run<'_>) -> anyhow::Result<Raw> {
    run.says("baseline: the log alone");
    let dir = folder(&run.dir)?;
    let log = EmbeddedLog::open(EmbeddedConfig::new(dir.path(), PARTITIONS))?;
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
    tokio::task::spawn_blocking(move || log.close()).await.context("the log's end")?;
    Ok(Raw { records_per_s, single_us })
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
    log: EmbeddedLog,
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
