//! The topic's settings: made right at creation, checked at every start. Every finding is listed
//! at once, so that an operator fixes them in one go.

use std::fmt;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::types::RDKafkaErrorCode;

use super::config::KafkaConfig;
use super::context::Quiet;
use super::convert::error_of;
use crate::LogError;

/// How soon a topic that was just created is looked at again.
const SETTLE: Duration = Duration::from_millis(50);

/// What the topic must be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSpec {
    /// Copies of each partition: 3 in production.
    pub replication: u16,
    /// Copies that must have a record before it is acknowledged: 2 in production.
    pub min_insync: u16,
    /// How long records are kept, at least. 90 days by contract.
    pub retention: Duration,
}

impl TopicSpec {
    /// Three copies, two in sync, 90 days.
    pub fn production() -> Self {
        Self { replication: 3, min_insync: 2, retention: Duration::from_secs(90 * 24 * 3600) }
    }

    /// One copy: a single broker for development and tests.
    pub fn single_node() -> Self {
        Self { replication: 1, min_insync: 1, ..Self::production() }
    }

    fn settings(&self, config: &KafkaConfig) -> Vec<(&'static str, String)> {
        vec![
            ("cleanup.policy", "delete".into()),
            ("retention.ms", self.retention.as_millis().to_string()),
            ("retention.bytes", "-1".into()),
            ("message.timestamp.type", "LogAppendTime".into()),
            ("unclean.leader.election.enable", "false".into()),
            ("min.insync.replicas", self.min_insync.to_string()),
            ("max.message.bytes", config.max_record_bytes.to_string()),
        ]
    }
}

/// Creates the topic unless it is there, then checks it. `true`: it was made.
///
/// # Errors
/// As [`check_topic`]; [`LogError::Unavailable`] also when the creation failed or did not settle
/// within [`KafkaConfig::request_timeout`].
#[expect(clippy::disallowed_methods, reason = "waits for a real broker to spread its metadata")]
pub async fn ensure_topic(config: &KafkaConfig, spec: &TopicSpec) -> Result<bool, LogError> {
    config.check()?;
    let admin = admin(config)?;
    let settings = spec.settings(config);
    let replication = TopicReplication::Fixed(i32::from(spec.replication));
    let mut topic = NewTopic::new(&config.topic, i32::from(config.partitions), replication);
    for (name, value) in &settings {
        topic = topic.set(name, value);
    }
    let results = admin.create_topics([&topic], &options(config)).await;
    let mut made = false;
    for result in results.map_err(|e| error_of("cannot create the topic", &e))? {
        match result {
            Ok(_) => made = true,
            Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((name, code)) => return Err(LogError::Unavailable(format!("cannot create topic {name}: {code}"))),
        }
    }
    // A created topic is not known everywhere at once.
    let settled = async {
        loop {
            match check_topic(config, spec).await {
                Err(LogError::Unavailable(_)) => tokio::time::sleep(SETTLE).await,
                result => return result,
            }
        }
    };
    match tokio::time::timeout(config.request_timeout, settled).await {
        Ok(result) => result,
        Err(_) => check_topic(config, spec).await,
    }?;
    Ok(made)
}

/// Checks the topic's settings.
///
/// # Errors
/// [`LogError::Refused`] names everything that contradicts the contract.
/// [`LogError::Unavailable`]: the cluster didn't answer.
pub async fn check_topic(config: &KafkaConfig, spec: &TopicSpec) -> Result<(), LogError> {
    let findings = topic_findings(config, spec).await?;
    if findings.is_empty() {
        return Ok(());
    }
    let findings: Vec<_> = findings.iter().map(ToString::to_string).collect();
    Err(LogError::Refused(format!("topic {}: {}", config.topic, findings.join("; "))))
}

/// Something about a topic that contradicts the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicFinding {
    /// Setting of the topic, or `partitions`, `replication`.
    pub key: String,
    /// What it is.
    pub value: String,
    /// What it must be.
    pub wanted: String,
    /// Why.
    pub why: &'static str,
}

impl fmt::Display for TopicFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, wanted, why } = self;
        write!(f, "{key} = {value} must be {wanted} ({why})")
    }
}

/// Everything about the topic that contradicts the contract.
///
/// # Errors
/// [`LogError::Refused`]: invalid settings, or there is no such topic.
/// [`LogError::Unavailable`]: the cluster didn't answer.
pub async fn topic_findings(config: &KafkaConfig, spec: &TopicSpec) -> Result<Vec<TopicFinding>, LogError> {
    config.check()?;
    let admin = admin(config)?;
    let described = admin.describe_configs([&ResourceSpecifier::Topic(&config.topic)], &options(config)).await;
    let described = described.map_err(|e| error_of("cannot describe the topic", &e))?;
    let resource = match described.into_iter().next() {
        Some(Ok(resource)) => resource,
        Some(Err(code)) => return Err(LogError::Refused(format!("topic {}: {code}", config.topic))),
        None => return Err(LogError::Unavailable(format!("topic {} was not described", config.topic))),
    };
    if resource.entries.is_empty() {
        return Err(LogError::Unavailable(format!("topic {} is not known to the broker yet", config.topic)));
    }
    let mut findings = setting_findings(&resource, config, spec);
    findings.extend(shape_findings(admin, config, spec).await?);
    Ok(findings)
}

/// Whether the topic is there, by the word of the cluster.
///
/// # Errors
/// [`LogError::Refused`]: invalid settings. [`LogError::Unavailable`]: the cluster didn't answer.
pub async fn topic_exists(config: &KafkaConfig) -> Result<bool, LogError> {
    config.check()?;
    let (admin, timeout) = (admin(config)?, config.request_timeout);
    let asked = tokio::task::spawn_blocking(move || admin.inner().fetch_metadata(None, timeout)).await;
    let metadata = asked.map_err(|e| LogError::Unavailable(format!("metadata request was cut off: {e}")))?;
    let metadata = metadata.map_err(|e| error_of("cannot read the names of the topics", &e))?;
    Ok(metadata.topics().iter().any(|topic| topic.name() == config.topic))
}

fn setting_findings(resource: &ConfigResource, config: &KafkaConfig, spec: &TopicSpec) -> Vec<TopicFinding> {
    let value = |name: &str| resource.get(name).and_then(|entry| entry.value.clone()).unwrap_or_default();
    let mut findings = Vec::new();
    let mut exactly = |name: &str, wanted: &str, why| {
        if value(name) != wanted {
            findings.push(TopicFinding { key: name.into(), value: value(name), wanted: wanted.into(), why });
        }
    };
    exactly("cleanup.policy", "delete", "compaction removes events");
    exactly("retention.bytes", "-1", "a size limit deletes without regard to age");
    exactly("message.timestamp.type", "LogAppendTime", "the broker's clock stamps the records");
    exactly("unclean.leader.election.enable", "false", "it loses acknowledged events");
    let mut at_least = |name: &str, wanted: u128, why| {
        let found = value(name).parse::<i64>().unwrap_or(0);
        if found != -1 && u128::try_from(found).unwrap_or(0) < wanted {
            let wanted = format!("at least {wanted}");
            findings.push(TopicFinding { key: name.into(), value: found.to_string(), wanted, why });
        }
    };
    at_least("retention.ms", spec.retention.as_millis(), "history must stay");
    at_least("max.message.bytes", config.max_record_bytes as u128, "the largest record must fit");
    at_least("min.insync.replicas", u128::from(spec.min_insync), "acknowledged events must survive a broker");
    findings
}

async fn shape_findings(
    admin: AdminClient<Quiet>,
    config: &KafkaConfig,
    spec: &TopicSpec,
) -> Result<Vec<TopicFinding>, LogError> {
    let (name, timeout) = (config.topic.clone(), config.request_timeout);
    let asked = tokio::task::spawn_blocking(move || admin.inner().fetch_metadata(Some(&name), timeout)).await;
    let metadata = asked.map_err(|e| LogError::Unavailable(format!("metadata request was cut off: {e}")))?;
    let metadata = metadata.map_err(|e| error_of("cannot read the topic's metadata", &e))?;
    let mut findings = Vec::new();
    let topic = metadata.topics().iter().find(|topic| topic.name() == config.topic);
    let partitions = topic.map_or(&[][..], |topic| topic.partitions());
    if partitions.is_empty() || partitions.iter().any(|partition| partition.leader() < 0) {
        return Err(LogError::Unavailable(format!("topic {} has partitions without a leader", config.topic)));
    }
    if partitions.len() != usize::from(config.partitions) {
        let (key, value, wanted) =
            ("partitions".into(), partitions.len().to_string(), format!("{}, as configured", config.partitions));
        findings.push(TopicFinding {
            key,
            value,
            wanted,
            why: "the number is fixed for life: each task's id holds its own",
        });
    }
    let thinnest = partitions.iter().map(|p| p.replicas().len()).min().unwrap_or_default();
    if thinnest < usize::from(spec.replication) {
        let (key, value, wanted) =
            ("replication".into(), thinnest.to_string(), format!("at least {}", spec.replication));
        findings.push(TopicFinding { key, value, wanted, why: "copies survive a broker" });
    }
    Ok(findings)
}

fn admin(config: &KafkaConfig) -> Result<AdminClient<Quiet>, LogError> {
    let client = AdminClient::from_config_and_context(&config.client(&config.client_id, &[]), Quiet("admin"));
    client.map_err(|e| error_of("cannot create the admin client", &e))
}

fn options(config: &KafkaConfig) -> AdminOptions {
    let timeout = Some(config.request_timeout);
    AdminOptions::new().request_timeout(timeout).operation_timeout(timeout)
}
