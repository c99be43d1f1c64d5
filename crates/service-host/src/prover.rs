//! The proof that the engines are as they must be, before anything is written: what the settings
//! alone cannot show. Each violation names key, value, and what to set.

use std::fmt;

use event_log::{EventLog, KafkaLog, TopicFinding, topic_exists, topic_findings};
use futures::future::join_all;
use service_kit::{Clock as _, SystemClock, within};
use snapshot_store::{ConnectError, Schema};
use task_events::{Offset, PartitionId};

use crate::engines::EngineError;
use crate::sections::{LockSection, LogSection, StoreSection};

/// Clocks that differ by so much are an alarm, ms (design.md §4.11).
const CLOCKS_MS: i64 = 5_000;

/// Partitions whose newest stamp is looked at: one that is written would do.
const STAMPS: u16 = 8;

/// Longest wait for those stamps, ms.
const STAMPS_MS: u64 = 2_000;

/// The one policy of Redis under which a lock stays until it is released or expires.
const NOEVICTION: &str = "noeviction";

/// Something about an engine that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Of what: `topic NAME`, `Redis`, …
    pub of: String,
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Why that cannot stay, and what to set.
    pub set: String,
    /// Nothing starts before it is changed; else it is an alarm.
    pub refuses: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, key, value, set, .. } = self;
        write!(f, "{of}: {key} = {value}: {set}")
    }
}

/// Refuses to start on these findings, or says what is an alarm only.
///
/// # Errors
/// [`EngineError::NotAsItMustBe`] with those that refuse.
pub fn accept(findings: Vec<Finding>) -> Result<(), EngineError> {
    let (refused, alarms): (Vec<_>, Vec<_>) = findings.into_iter().partition(|finding| finding.refuses);
    for alarm in alarms {
        tracing::error!(%alarm, "an engine is not as it should be");
    }
    if refused.is_empty() { Ok(()) } else { Err(EngineError::NotAsItMustBe(refused)) }
}

/// What is not as it must be about the topic, and about its broker's clock.
///
/// # Errors
/// The cluster does not answer, or refuses to.
pub async fn log(section: &LogSection, client_id: &str) -> Result<Vec<Finding>, EngineError> {
    let (config, spec) = section.kafka(client_id)?;
    if !topic_exists(&config).await.map_err(EngineError::of_log)? {
        return Ok(vec![Finding {
            of: format!("topic {}", section.topic),
            key: "state".into(),
            value: "missing".into(),
            set: "make it once with `dualtrack topic ensure`, or set log.topic to the one that is there".into(),
            refuses: true,
        }]);
    }
    let found = topic_findings(&config, &spec).await.map_err(EngineError::of_log)?;
    let mut findings: Vec<_> = found.into_iter().map(|found| of_topic(&section.topic, found)).collect();
    if findings.is_empty() {
        let log = section.connect(client_id).await?;
        findings.extend(clock(&section.topic, &log).await);
        log.close(std::time::Duration::from_millis(STAMPS_MS)).await;
    }
    Ok(findings)
}

/// What is not as it must be about the tables.
///
/// # Errors
/// No node answers, or a setting cannot be used.
pub async fn store(section: &StoreSection) -> Result<Vec<Finding>, EngineError> {
    let finding = |key: &str, value: String, set| {
        vec![Finding { of: format!("keyspace {}", section.keyspace), key: key.into(), value, set, refuses: true }]
    };
    match snapshot_store::check(&section.cassandra()?).await {
        Ok(Schema { migrations, .. }) if migrations.is_empty() => Ok(Vec::new()),
        Ok(Schema { version, needed, .. }) => {
            let set = format!("this program needs {needed}: run `dualtrack store migrate`");
            Ok(finding("schema version", version.to_string(), set))
        }
        // Beside what there is to say of the other engines, so that all is mended in one go.
        Err(ConnectError::Schema { problem, .. }) => Ok(finding("state", "unusable".into(), format!("it {problem}"))),
        Err(why @ (ConnectError::Refused(_) | ConnectError::Unavailable(_))) => Err(EngineError::of_store(why)),
    }
}

/// What is not as it must be about the lock server. One that does not answer is an alarm only: what it
/// would guard the log guards better.
///
/// # Errors
/// A setting that cannot be used.
pub async fn lock(section: &LockSection) -> Result<Vec<Finding>, EngineError> {
    let finding = |key: &str, value, set: &str, refuses| {
        vec![Finding { of: section.to_string(), key: key.into(), value, set: set.into(), refuses }]
    };
    Ok(match section.connect()?.eviction_policy().await {
        Ok(policy) if policy == NOEVICTION => Vec::new(),
        Ok(policy) => {
            finding("maxmemory-policy", policy, "set it to noeviction: else locks vanish while they are held", true)
        }
        Err(why) => finding("state", why.to_string(), "until it answers attempts are fenced by the log alone", false),
    })
}

fn of_topic(topic: &str, found: TopicFinding) -> Finding {
    let TopicFinding { key, value, wanted, why } = found;
    Finding { of: format!("topic {topic}"), key, value, set: format!("set it to {wanted}: {why}"), refuses: true }
}

// A record's stamp was the broker's time once: one that lies ahead of us by so much is of a clock that
// is not ours. A broker behind us shows itself with the first record that is written, to the owner.
async fn clock(topic: &str, log: &KafkaLog) -> Option<Finding> {
    let partitions = (0..log.partition_count().min(STAMPS)).map(PartitionId);
    let stamps = within(&SystemClock, STAMPS_MS, join_all(partitions.map(|partition| newest(log, partition)))).await?;
    let newest = stamps.into_iter().flatten().max()?;
    let ahead_ms = newest.saturating_sub(SystemClock.wall_ms());
    (ahead_ms >= CLOCKS_MS).then(|| Finding {
        of: format!("topic {topic}"),
        key: "newest stamp of the broker".into(),
        value: format!("{ahead_ms} ms ahead of this machine's clock"),
        set: format!("clocks that differ by {CLOCKS_MS} ms stop creates: set both by the same time server"),
        refuses: false,
    })
}

async fn newest(log: &KafkaLog, partition: PartitionId) -> Option<i64> {
    let range = log.range(partition).await.ok()?;
    let last = Offset(range.end.0.checked_sub(1).filter(|last| *last >= range.start.0)?);
    Some(log.read_at(partition, vec![last]).await.ok()?.first()?.broker_ms)
}
