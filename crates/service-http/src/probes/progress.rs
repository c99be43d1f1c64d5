//! Ready by progress: a program that is alive and stands still is not.

use std::collections::BTreeMap;

use event_log::EventLog;
use futures::future::join_all;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use service_kit::{Clock, Standing, within};
use task_events::{Offset, PartitionId};

use super::Ready;

/// A partition that lags behind its log and does not move for this long stands still, ms; also how
/// long one that was just assigned may take to be owned (loading a checkpoint).
const STANDS_STILL_MS: u64 = 10_000;

/// Longest the log is waited for, ms.
pub const LOG_MS: u64 = 1_000;

/// How far a partition is.
#[derive(Serialize, JsonSchema)]
pub struct Progress {
    /// Its claim was read back; of a service that owns nothing: its fold reached the end of the log.
    pub owning: bool,
    /// Offset of the next record it folds.
    pub applied: u64,
    /// Records of the log it has not folded yet; absent when the log does not answer.
    pub lag: Option<u64>,
}

/// How far partitions were when they were last seen to move: (applied, boot ms).
#[derive(Debug, Default)]
pub struct Seen(Mutex<BTreeMap<PartitionId, (Offset, u64)>>);

impl Seen {
    /// Whether an instance that stands so can do its work. `ends`: of those partitions whose log
    /// answered in time; `leaving`: it hands over.
    pub fn judge<'a>(
        &self,
        instance: &'a str,
        now: u64,
        standings: &BTreeMap<PartitionId, Standing>,
        ends: &BTreeMap<PartitionId, Offset>,
        leaving: bool,
    ) -> Ready<'a> {
        let mut reasons = Vec::new();
        if leaving {
            reasons.push("this instance hands its partitions over and ends".to_owned());
        }
        if standings.is_empty() {
            reasons.push("no partition is assigned to this instance".to_owned());
        }
        let mut partitions = BTreeMap::new();
        let mut seen = self.0.lock();
        seen.retain(|partition, _| standings.contains_key(partition));
        for (partition, at) in standings {
            let (moved_to, since) = seen.entry(*partition).or_insert((at.applied, now));
            let lag = ends.get(partition).map(|end| end.0.saturating_sub(at.applied.0));
            if *moved_to != at.applied || at.owning && lag == Some(0) {
                (*moved_to, *since) = (at.applied, now);
            }
            let still = now.saturating_sub(*since);
            if still >= STANDS_STILL_MS {
                let what = if at.owning { "stands still" } else { "is not owned yet" };
                reasons.push(format!("partition {partition} {what}: at offset {} for {still} ms", at.applied));
            }
            partitions.insert(partition.0, Progress { owning: at.owning, applied: at.applied.0, lag });
        }
        drop(seen);
        if ends.len() < standings.len() {
            reasons.push(format!("the log did not answer within {LOG_MS} ms"));
        }
        if !standings.is_empty() && !standings.values().any(|at| at.owning) {
            reasons.push("no partition is owned yet".to_owned());
        }
        Ready { instance, ready: reasons.is_empty(), partitions, reasons }
    }
}

/// End offsets, of those partitions whose log answers in time.
pub async fn ends<L: EventLog, C: Clock>(
    log: &L,
    clock: &C,
    partitions: Vec<PartitionId>,
) -> BTreeMap<PartitionId, Offset> {
    let asks = partitions.into_iter().map(|partition| async move {
        let range = within(clock, LOG_MS, log.range(partition)).await?.ok()?;
        Some((partition, range.end))
    });
    join_all(asks).await.into_iter().flatten().collect()
}
