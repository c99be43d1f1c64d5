//! `store rebuild`: partition by partition, with a bar.

use std::time::Duration;

use dualtrack::rebuild::{Rebuild, RebuildError, Rebuilt};
use event_log::{KafkaConfig, KafkaLog, LogError, TopicSpec};
use service_kit::{Metrics, SystemClock};
use snapshot_store::{CassandraConfig, CassandraStore};
use task_events::{Offset, PartitionId};

use super::super::failure::{complain, hint, note};
use super::super::progress::bar;
use super::super::{Failure, Output, say};
use super::refused;

/// What the log's client gets to end.
const CLOSE: Duration = Duration::from_secs(2);

/// Rebuilds these partitions, or all.
pub async fn run(
    store: CassandraConfig,
    (log, spec): (KafkaConfig, TopicSpec),
    only: &[u16],
    output: Output,
) -> Result<(), Failure> {
    let partitions = log.partitions;
    if let Some(wrong) = only.iter().find(|partition| **partition >= partitions) {
        return Err(Failure::Usage(format!("--partition {wrong}: the topic has {partitions}, from 0 on")));
    }
    let store = CassandraStore::connect(store).await.map_err(refused)?;
    let log = KafkaLog::open(log, &spec).await.map_err(|why| unread(&why))?;
    let work = Rebuild { log: log.clone(), store: store.clone(), clock: SystemClock, metrics: Metrics::default() };
    let all: Vec<u16> = (0..partitions).collect();
    let (mut rows, mut others) = (0, 0);
    for &partition in if only.is_empty() { &all } else { only } {
        let shown = bar(Some(0), "records");
        let done = work.partition(PartitionId(partition), |progress| {
            shown.set_length(progress.of);
            shown.set_position(progress.folded);
        });
        let done = done.await;
        shown.finish_and_clear();
        let done = done.map_err(failed)?;
        (rows, others) = (rows + done.rows, others + done.others);
        tell(output, partition, &done)?;
    }
    for (name, alarm) in work.metrics.alarms() {
        note(&format!("dualtrack: {name}: {}", alarm.last));
    }
    log.close(CLOSE).await;
    match output {
        Output::Table => say(&format!("{rows} rows and {others} other writes, {} mutations", store.mutations())),
        Output::Json => {
            let summary = serde_json::json!({ "rows": rows, "others": others, "mutations": store.mutations() });
            say(&serde_json::json!({ "summary": summary }).to_string())
        }
    }
}

fn tell(output: Output, partition: u16, done: &Rebuilt) -> Result<(), Failure> {
    let Rebuilt { from, to, rows, others, quarantined } = done;
    match output {
        Output::Table => {
            let mut line = format!("partition {partition}: offsets {from} to {to}, {rows} rows, {others} other writes");
            if *quarantined > 0 {
                line += &format!(", {quarantined} records that are none");
            }
            if *from > Offset(0) {
                line += &format!("; what ended before offset {from} is not in the log any more");
            }
            say(&line)
        }
        Output::Json => {
            let told = serde_json::json!({
                "partition": partition, "from": from.0, "to": to.0, "rows": rows, "others": others,
                "quarantined": quarantined,
            });
            say(&told.to_string())
        }
    }
}

fn unread(why: &LogError) -> Failure {
    complain(&why.to_string());
    match why {
        LogError::Unavailable(_) | LogError::NotMember(_) => {
            hint("is it running? --bootstrap says where it is");
            Failure::Said(4)
        }
        LogError::Refused(_) | LogError::OutOfRange { .. } | LogError::Damaged { .. } => Failure::Said(3),
    }
}

fn failed(why: RebuildError) -> Failure {
    match why {
        RebuildError::Log(why) => unread(&why),
        RebuildError::Store(why) => {
            complain(&why.to_string());
            hint("what was written stays: run the same command again");
            Failure::Said(4)
        }
        RebuildError::Load(_) | RebuildError::Gap { .. } | RebuildError::UnknownRules { .. } => {
            Failure::Local(why.to_string())
        }
    }
}
