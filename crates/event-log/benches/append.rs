//! How many records a second the embedded log takes and gives back, with real fsyncs.
//!
//! `cargo bench -p event-log` (`EVENT_LOG_BENCH_DIR` picks the disk; default: the target folder).
//! Values of 220 bytes with the headers a task event has; each line is one run of 3 s.
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use event_log::{AppendOutcome, Durability, EmbeddedConfig, EmbeddedLog, EventLog, OutRecord, Tail};
use task_events::{Offset, PartitionId};

const RUN: Duration = Duration::from_secs(3);

struct Load {
    name: &'static str,
    partitions: u16,
    /// Records of one append.
    batch: usize,
    /// Appends of one partition on their way at once.
    window: usize,
    durability: Durability,
    /// Every partition is read back while it is written.
    readers: bool,
}

fn record() -> OutRecord {
    let headers = vec![
        ("kind", Bytes::from_static(b"TaskCreated")),
        ("rule-version", Bytes::from_static(b"1")),
        ("crc32c", Bytes::from_static(b"0123abcd")),
    ];
    OutRecord { key: Bytes::from_static(b"123456789012345678"), headers, value: Bytes::from(vec![0x5a; 220]) }
}

async fn writer(
    log: EmbeddedLog,
    partition: PartitionId,
    batch: Vec<OutRecord>,
    window: usize,
    until: Instant,
) -> Vec<Duration> {
    let mut waiting = VecDeque::new();
    let mut latencies = Vec::new();
    while Instant::now() < until {
        while waiting.len() < window {
            waiting.push_back((Instant::now(), log.append(partition, batch.clone())));
        }
        if let Some((sent, wait)) = waiting.pop_front() {
            assert_eq!(wait.await, AppendOutcome::Acknowledged);
            latencies.push(sent.elapsed());
        }
    }
    for (sent, wait) in waiting {
        assert_eq!(wait.await, AppendOutcome::Acknowledged);
        latencies.push(sent.elapsed());
    }
    latencies
}

async fn run(load: &Load) {
    let base = std::env::var_os("EVENT_LOG_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    std::fs::create_dir_all(&base).expect("directory");
    let dir = tempfile::tempdir_in(base).expect("directory");
    let mut config = EmbeddedConfig::new(dir.path(), load.partitions);
    config.durability = load.durability;
    let log = EmbeddedLog::open(config).expect("log");
    let read = Arc::new(AtomicU64::new(0));
    let mut readers = Vec::new();
    if load.readers {
        for p in 0..load.partitions {
            let mut tail = log.tail(PartitionId(p), Offset(0)).await.expect("tail");
            let read = read.clone();
            readers.push(tokio::spawn(async move {
                while let Ok(records) = tail.next().await {
                    read.fetch_add(records.len() as u64, Ordering::Relaxed);
                }
            }));
        }
    }
    let started = Instant::now();
    let batch: Vec<OutRecord> = (0..load.batch).map(|_| record()).collect();
    let writers: Vec<_> = (0..load.partitions)
        .map(|p| tokio::spawn(writer(log.clone(), PartitionId(p), batch.clone(), load.window, started + RUN)))
        .collect();
    let mut latencies = Vec::new();
    for writer in writers {
        latencies.extend(writer.await.expect("writer"));
    }
    let seconds = started.elapsed().as_secs_f64();
    let records = latencies.len() * load.batch;
    latencies.sort_unstable();
    let at = |q: f64| latencies[((latencies.len() - 1) as f64 * q) as usize].as_secs_f64() * 1e3;
    println!(
        "{:<44} {:>9.0} rec/s {:>8.0} appends/s  ack p50 {:>7.2} ms  p99 {:>7.2} ms  read back {:>9}",
        load.name,
        records as f64 / seconds,
        latencies.len() as f64 / seconds,
        at(0.5),
        at(0.99),
        read.load(Ordering::Relaxed),
    );
    readers.into_iter().for_each(|reader| reader.abort());
    if load.readers {
        catch_up(&log, records as u64).await;
    }
}

/// Reads everything again from the start, one partition after the other.
async fn catch_up(log: &EmbeddedLog, expected: u64) {
    let started = Instant::now();
    let mut count = 0;
    for p in 0..log.partition_count() {
        let end = log.range(PartitionId(p)).await.expect("range").end.0;
        let mut tail = log.tail(PartitionId(p), Offset(0)).await.expect("tail");
        let mut next = 0;
        while next < end {
            next += tail.next().await.expect("records").len() as u64;
        }
        count += next;
    }
    assert_eq!(count, expected);
    println!(
        "{:<44} {:>9.0} rec/s",
        "  catch-up from offset 0, one reader",
        count as f64 / started.elapsed().as_secs_f64()
    );
}

fn main() {
    let load = |name, partitions, batch, window, readers| Load {
        name,
        partitions,
        batch,
        window,
        durability: Durability::Fsync,
        readers,
    };
    let loads = [
        load("1 partition, batch 1, one at a time", 1, 1, 1, false),
        load("1 partition, batch 1, 256 on their way", 1, 1, 256, false),
        load("1 partition, batch 500, one at a time", 1, 500, 1, false),
        load("1 partition, batch 500, 4 on their way", 1, 500, 4, false),
        load("16 partitions, batch 1, one at a time", 16, 1, 1, false),
        load("16 partitions, batch 1, 256 on their way", 16, 1, 256, true),
        load("16 partitions, batch 500, one at a time", 16, 500, 1, false),
        load("16 partitions, batch 500, 4 on their way", 16, 500, 4, true),
        Load { durability: Durability::Volatile, ..load("16 partitions, batch 1, 256, volatile", 16, 1, 256, true) },
    ];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
    runtime.block_on(async {
        for load in &loads {
            run(load).await;
        }
    });
}
