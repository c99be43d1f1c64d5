//! `GET|POST /api/v1/rules`: which rules are active where, who knows which, and their activation.
//!
//! Rules are activated only while every live member of every group of ours knows them: whoever reads
//! a record that activates rules it does not know must stop (design.md §3). A member that starts later
//! with older rules stops by itself when it comes to that record.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::owner::{Answer, Command, Look, Looked};
use coordinator::surface::Peers;
use event_log::{ClientId, EventLog, MemberInfo};
use rest_contract::{ActivateRequest, Code, MAX_BODY_BYTES, MemberRules, PartitionRules, Problem, RulesView};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::{RuleVersion, SUPPORTED_RULES, Service};

use crate::problems::{Answered, Failure};
use crate::upstream::parameters::query;
use crate::{Edge, reply};

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn rules(State(edge): State<Self>, request: Request) -> Answered {
        query(request.uri(), &[])?;
        let (mut partitions, mut unanswered) = (Vec::new(), Vec::new());
        for (partition, answer) in edge.surface.ask_all(&Command::Look(Look::Rules)).await {
            let looked = if let Answer::Looked(looked) = answer { Some(*looked) } else { None };
            if let Some(Looked::Rules(active)) = looked {
                partitions.push(PartitionRules { partition: partition.0, active: active.0 });
            } else {
                unanswered.push(partition.0);
            }
        }
        let members = edge.log.members().await.ok().map(|members| ours(&members));
        let all = unanswered.is_empty() && members.is_some();
        let status = if all { StatusCode::OK } else { StatusCode::MULTI_STATUS };
        reply::json(status, &RulesView { known: SUPPORTED_RULES.0, partitions, unanswered, members })
    }

    pub(super) async fn activate(State(edge): State<Self>, request: Request) -> Answered {
        query(request.uri(), &[])?;
        let ActivateRequest { version } = edge.json(request, MAX_BODY_BYTES).await?;
        if version == 0 {
            let problem = Problem::new(Code::InvalidField, "version = 0 must be at least 1");
            return Err(problem.field("/version").value(0).limit(1).into());
        }
        if version > SUPPORTED_RULES.0 {
            let text = format!("instance {:?} knows rules up to {SUPPORTED_RULES}", edge.instance.as_str());
            return Err(unsupported(version, text).limit(SUPPORTED_RULES.0).into());
        }
        let members = edge.log.members().await.map_err(|why| {
            let text = format!("who reads the log cannot be told, so nothing is activated: {why}; nothing was written");
            Failure::from(Problem::new(Code::LogUnavailable, text))
        })?;
        let behind: Vec<MemberRules> = ours(&members).into_iter().filter(|member| !member.knows(version)).collect();
        if !behind.is_empty() {
            let names: Vec<String> = behind.iter().map(named).collect();
            let text = format!("these members do not know rules {version}: {}", names.join(", "));
            let behind = serde_json::to_value(&behind).unwrap_or_default();
            return Err(unsupported(version, text).fact("members", behind).into());
        }
        tracing::info!(version, "rules are being activated in every partition");
        edge.everywhere(&Command::Activate { version: RuleVersion(version) }, &Answer::RulesActive).await
    }
}

fn unsupported(version: u32, text: String) -> Problem {
    Problem::new(Code::RulesUnsupported, format!("{text}; nothing was written")).field("/version").value(version)
}

fn named(member: &MemberRules) -> String {
    match (&member.instance, member.rules_to) {
        (Some(instance), Some(to)) => format!("{} of {} (up to {to})", instance, member.group),
        _ => format!("{:?} of {}", member.client_id, member.group),
    }
}

// Members of our services. A group of somebody else reads events and judges none of them; one of ours
// that does not say what it knows is held to know nothing.
fn ours(members: &[MemberInfo]) -> Vec<MemberRules> {
    let mut found: Vec<MemberRules> = members.iter().filter(|member| is_ours(&member.group)).map(shown).collect();
    found.sort_by(|a, b| (&a.group, &a.client_id).cmp(&(&b.group, &b.client_id)));
    found
}

fn is_ours(group: &str) -> bool {
    Service::ALL.iter().any(|service| service.as_str().to_ascii_lowercase().replace('_', "-") == group)
}

fn shown(member: &MemberInfo) -> MemberRules {
    let id: Option<ClientId> = member.client_id.parse().ok();
    MemberRules {
        group: member.group.as_str().into(),
        client_id: member.client_id.as_str().into(),
        instance: id.as_ref().map(|id| id.instance.as_str().into()),
        rules_from: id.as_ref().map(|id| id.rules.0),
        rules_to: id.as_ref().map(|id| id.rules.1),
        partitions: member.partitions.iter().map(|partition| partition.0).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_ours_must_say_what_they_know() {
        let member = |group: &str, client_id: &str| MemberInfo {
            group: group.to_owned(),
            client_id: client_id.to_owned(),
            partitions: Vec::new(),
        };
        let members = [
            member("task-engine", "task-engine|e|rules=1-2|"),
            member("coordinator", "coordinator|c|rules=1-1|http://h"),
            member("auto-replay", "rdkafka"),
            member("somebodys-reports", "rdkafka"),
        ];
        let found = ours(&members);
        let groups: Vec<_> = found.iter().map(|m| (m.group.as_str(), m.knows(1), m.knows(2))).collect();
        assert_eq!(groups, [("auto-replay", false, false), ("coordinator", true, false), ("task-engine", true, true)]);
        assert_eq!(named(&found[0]), "\"rdkafka\" of auto-replay");
        assert_eq!(named(&found[1]), "c of coordinator (up to 1)");
    }
}
