//! What metrics read off the owners when somebody asks.

use std::collections::BTreeMap;

use coordinator::metrics::{
    PARTITION_BACKLOG, PARTITION_EPOCH, PARTITION_IN_FLIGHT, PARTITION_OPEN_TASKS, PARTITION_OWED_BYTES,
    PARTITION_OWED_ROWS, PARTITION_RECORDS, QUEUE_BACKLOG, QUEUE_OPEN_TASKS, QUEUE_RUNNING, SNAPSHOT_LAG_RECORDS,
    SNAPSHOT_LAG_SECONDS, ZOMBIE_REJECTED,
};
use coordinator::owner::{OwnerFacts, QueueFacts};
use coordinator::service::GROUP;
use coordinator::surface::Status;
use service_http::probes::STANDINGS;
pub(super) use service_http::probes::standings;
use service_kit::Described;
use service_kit::metrics::Scrape;
use task_core::Reason;
use task_events::{Offset, PartitionId};

/// Queues that are told by name; what the names cost must not rest on who makes up names.
const QUEUES: usize = 50;

/// All that is set here.
const ALL: [&Described; 13] = [
    &PARTITION_BACKLOG,
    &PARTITION_OPEN_TASKS,
    &PARTITION_IN_FLIGHT,
    &PARTITION_OWED_BYTES,
    &PARTITION_EPOCH,
    &PARTITION_OWED_ROWS,
    &SNAPSHOT_LAG_RECORDS,
    &SNAPSHOT_LAG_SECONDS,
    &PARTITION_RECORDS,
    &ZOMBIE_REJECTED,
    &QUEUE_BACKLOG,
    &QUEUE_OPEN_TASKS,
    &QUEUE_RUNNING,
];

/// Sets what status, log and owners said; of those that did not answer in time nothing is set.
pub(super) fn fill(
    scrape: &mut Scrape<'_>,
    status: &Status,
    ends: &BTreeMap<PartitionId, Offset>,
    facts: &BTreeMap<PartitionId, OwnerFacts>,
) {
    scrape.clear(&ALL);
    scrape.clear(&STANDINGS);
    let folds = status.assigned.iter().map(|(partition, owner)| (*partition, super::standing(owner))).collect();
    standings(scrape, (GROUP, status.partitions), &folds, ends);
    for (partition, owner) in &status.assigned {
        let name = partition.to_string();
        let of = [name.as_str()];
        scrape.set(&PARTITION_BACKLOG, &of, owner.backlog as u64);
        scrape.set(&PARTITION_OPEN_TASKS, &of, owner.open_tasks as u64);
        scrape.set(&PARTITION_IN_FLIGHT, &of, owner.in_flight as u64);
        scrape.set(&PARTITION_OWED_BYTES, &of, owner.owed_bytes as u64);
    }
    for (partition, facts) in facts {
        owner(scrape, &partition.to_string(), facts);
    }
    queues(scrape, facts.values().flat_map(|facts| &facts.queues));
}

fn owner(scrape: &mut Scrape<'_>, partition: &str, facts: &OwnerFacts) {
    scrape.set(&PARTITION_EPOCH, &[partition], u64::from(facts.epoch.0));
    scrape.set(&PARTITION_OWED_ROWS, &[partition], facts.owed_rows);
    scrape.set(&SNAPSHOT_LAG_RECORDS, &[partition], facts.behind);
    scrape.set_ms(&SNAPSHOT_LAG_SECONDS, &[partition], facts.overdue_ms);
    scrape.set(&PARTITION_RECORDS, &[partition, "accepted"], facts.accepted);
    scrape.set(&PARTITION_RECORDS, &[partition, "quarantined"], facts.quarantined);
    let mut zombies = 0;
    for (reason, count) in Reason::ALL.iter().zip(&facts.rejected) {
        scrape.set(&PARTITION_RECORDS, &[partition, reason.as_str()], *count);
        zombies += if is_zombie(*reason) { *count } else { 0 };
    }
    scrape.set(&ZOMBIE_REJECTED, &[partition], zombies);
}

// The fences: whoever wrote that was an owner, a run or an attempt that is over.
const fn is_zombie(reason: Reason) -> bool {
    matches!(reason, Reason::StaleEpoch | Reason::ClaimConflict | Reason::WrongRun | Reason::WrongAttempt)
}

fn queues<'a>(scrape: &mut Scrape<'_>, facts: impl Iterator<Item = &'a QueueFacts>) {
    let mut sums: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for queue in facts {
        let sum = sums.entry(&queue.queue).or_default();
        *sum = [sum[0] + queue.ready, sum[1] + queue.open, sum[2] + queue.running];
    }
    let mut all: Vec<_> = sums.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mut rest = [0; 3];
    for (at, (queue, sum)) in all.into_iter().enumerate() {
        if at < QUEUES {
            tell(scrape, queue, sum);
        } else {
            rest = [rest[0] + sum[0], rest[1] + sum[1], rest[2] + sum[2]];
        }
    }
    if rest != [0; 3] {
        tell(scrape, "_other", rest);
    }
}

fn tell(scrape: &mut Scrape<'_>, queue: &str, [ready, open, running]: [u64; 3]) {
    scrape.set(&QUEUE_BACKLOG, &[queue], ready);
    scrape.set(&QUEUE_OPEN_TASKS, &[queue], open);
    scrape.set(&QUEUE_RUNNING, &[queue], running);
}

#[cfg(test)]
mod tests {
    use coordinator::surface::PartitionStatus;
    use service_kit::Metrics;
    use task_events::PartitionEpoch;

    use super::*;

    fn facts(queues: usize) -> OwnerFacts {
        let queue = |n: usize| QueueFacts {
            queue: format!("q{n:03}").into(),
            paused: false,
            ready: n as u64,
            running: 1,
            open: 2,
            polled_ms_ago: None,
        };
        OwnerFacts {
            epoch: PartitionEpoch(3),
            owed_rows: 4,
            behind: 5,
            overdue_ms: 1_500,
            accepted: 6,
            quarantined: 0,
            rejected: vec![7; Reason::ALL.len()],
            queues: (0..queues).map(queue).collect(),
        }
    }

    #[test]
    fn what_owners_say_is_told_and_what_did_not_answer_is_not() {
        let (metrics, mut status) = (Metrics::default(), Status { partitions: 4, ..Status::default() });
        for partition in [1, 2] {
            let owner = PartitionStatus { owning: true, applied: Offset(8), backlog: 5, ..PartitionStatus::default() };
            status.assigned.insert(PartitionId(partition), owner);
        }
        let ends = [(PartitionId(2), Offset(11))].into();
        let facts = [(PartitionId(2), facts(60))].into();
        let text = metrics.scrape(|scrape| fill(scrape, &status, &ends, &facts));
        for wanted in [
            "dualtrack_partitions 4\n",
            "dualtrack_partition_owning{service=\"coordinator\",partition=\"1\"} 1\n",
            "dualtrack_partition_lag_records{service=\"coordinator\",partition=\"2\"} 3\n",
            "dualtrack_partition_backlog{partition=\"1\"} 5\n",
            "dualtrack_snapshot_lag_seconds{partition=\"2\"} 1.5\n",
            "dualtrack_partition_records_total{partition=\"2\",verdict=\"stale_epoch\"} 7\n",
            "dualtrack_zombie_rejected_total{partition=\"2\"} 28\n",
            "dualtrack_queue_backlog{queue=\"q059\"} 59\n",
            // 0 to 9
            "dualtrack_queue_backlog{queue=\"_other\"} 45\n",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        for gone in ["lag_records{service=\"coordinator\",partition=\"1\"}", "queue=\"q009\""] {
            assert!(!text.contains(gone), "{gone} is in\n{text}");
        }
    }
}
