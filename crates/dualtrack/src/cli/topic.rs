//! `dualtrack topic`: makes the topic of the event track, and says what about it must be changed.

use clap::{Args, Subcommand};
use event_log::{KafkaConfig, LogError, TopicFinding, TopicSpec, ensure_topic, topic_exists, topic_findings};
use serde_json::json;
use service_host::settings::LayerArgs;
use service_host::{EngineError, Rule, Sources};

use super::{Failure, Output, say};

/// Name of the client, in the brokers' logs.
const CLIENT: &str = "dualtrack-topic";

/// Arguments of `dualtrack topic`.
#[derive(Clone, Debug, Args)]
pub struct TopicArgs {
    #[command(subcommand)]
    command: TopicCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum TopicCommand {
    /// Make the topic unless it is there, then check it
    #[command(
        after_help = "Example:\n  dualtrack topic ensure --set log.bootstrap=kafka-1:9092 --set log.partitions=64\n\n\
                      Exit codes: 0; 2 settings that cannot work, 3 the topic is not as it must be, 4 no broker answers"
    )]
    Ensure(Topic),
    /// Say what about the topic must be changed
    #[command(after_help = "Example:\n  dualtrack topic check --config coordinator.toml\n\n\
                      Exit codes: 0; 2 settings that cannot work, 3 the topic is not as it must be, 4 no broker answers")]
    Check(Topic),
}

/// Which topic. The settings are those of `[log]` of a coordinator.
#[derive(Clone, Debug, Args)]
struct Topic {
    #[command(flatten)]
    layers: LayerArgs,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    output: Output,
}

/// Runs it.
///
/// # Errors
/// Settings that cannot work, brokers that do not answer, a topic that is not as it must be.
pub async fn run(args: TopicArgs) -> Result<(), Failure> {
    match args.command {
        TopicCommand::Ensure(topic) => {
            let (config, spec) = settings(&topic)?;
            match ensure_topic(&config, &spec).await {
                Ok(made) => tell(&topic, &config, made, Vec::new()),
                // Which of its settings that is it says one by one.
                Err(LogError::Refused(why)) => match topic_findings(&config, &spec).await {
                    Ok(findings) if !findings.is_empty() => tell(&topic, &config, false, findings),
                    Ok(_) | Err(_) => Err(failure(LogError::Refused(why))),
                },
                Err(why) => Err(failure(why)),
            }
        }
        TopicCommand::Check(topic) => {
            let (config, spec) = settings(&topic)?;
            if !topic_exists(&config).await.map_err(failure)? {
                let name = &config.topic;
                return Err(Failure::Refused(format!(
                    "there is no topic {name}\n  make it with `dualtrack topic ensure`"
                )));
            }
            let findings = topic_findings(&config, &spec).await.map_err(failure)?;
            tell(&topic, &config, false, findings)
        }
    }
}

fn settings(topic: &Topic) -> Result<(KafkaConfig, TopicSpec), Failure> {
    let read = |sources: Sources| {
        let log = sources.load::<dualtrack_coordinator::Settings>()?.log;
        Rule::hold(log.rules())?;
        log.kafka(CLIENT)
    };
    topic.layers.sources().and_then(read).map_err(|why| Failure::Usage(why.to_string()))
}

fn failure(why: LogError) -> Failure {
    let why = EngineError::of_log(why);
    if why.is_final() { Failure::Refused(why.to_string()) } else { Failure::Away(why.to_string()) }
}

fn tell(topic: &Topic, config: &KafkaConfig, made: bool, findings: Vec<TopicFinding>) -> Result<(), Failure> {
    let (name, partitions) = (&config.topic, config.partitions);
    match topic.output {
        Output::Json => {
            let findings: Vec<_> = findings
                .iter()
                .map(|TopicFinding { key, value, wanted, why }| {
                    json!({ "key": key, "value": value, "wanted": wanted, "why": why })
                })
                .collect();
            let told = json!({ "topic": name, "partitions": partitions, "made": made, "findings": findings });
            say(&format!("{told:#}"))?;
        }
        Output::Table if findings.is_empty() => {
            let how = if made { "made" } else { "is there and as it must be" };
            say(&format!("topic {name}: {how}, {partitions} partitions"))?;
        }
        Output::Table => {
            for finding in &findings {
                say(&finding.to_string())?;
            }
        }
    }
    if findings.is_empty() {
        return Ok(());
    }
    let advice = "change it with the brokers' own tools (kafka-configs --alter --entity-type topics); the number of \
                  partitions can never be changed: give another topic";
    Err(Failure::Refused(format!("{} settings of topic {name} are not as they must be\n  {advice}", findings.len())))
}
