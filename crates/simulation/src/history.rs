//! Records in words: each with its own numbers for traces, and what led to a finding as a history
//! that plays, shortened to the task concerned and the claims around it.

use std::fmt::Write as _;

use event_log::RawRecord;
use model_search::Retelling;
use model_search::notation::verb;
use task_core::{Record, Rules};
use task_events::{Kind, Offset, PartitionId, TaskId};

use crate::audit::{Audit, Finding, Judged};

/// One record in words.
pub fn words(raw: &RawRecord, judged: Option<Judged>) -> String {
    let Some(event) = raw.event().ok() else { return format!("malformed => {judged:?}") };
    let mut out = verb(event.kind).to_owned();
    if let Some(task) = event.task_id {
        let _ = write!(out, " t{task} s={} r={}", event.event_sequence, event.run_no);
        if event.exec_epoch.0 > 0 {
            let _ = write!(out, " e={}", event.exec_epoch);
        }
    }
    if let (Some(epoch), Some(seq)) = (event.partition_epoch, event.owner_seq) {
        let _ = write!(out, " p={epoch}.{seq}");
    }
    let _ = write!(out, " by={}", event.producer.instance);
    match judged {
        Some(Judged::Rejected(reason)) => {
            let _ = write!(out, " => rejected({reason})");
        }
        Some(Judged::Quarantined(why)) => {
            let _ = write!(out, " => quarantined({why})");
        }
        Some(Judged::Accepted) | None => {}
    }
    out
}

/// The history of a finding, empty when no record is concerned: the records of its task, and every claim of its partition from the
/// one before its birth on.
pub fn shortened(finding: &Finding, audit: &Audit, topic: &[Vec<RawRecord>], rules: &'static Rules) -> String {
    let (partition, task): (PartitionId, Option<TaskId>) = match (finding.task, finding.record) {
        (Some(task), _) => (task.partition(), Some(task)),
        (None, Some((partition, offset))) => {
            let raw = topic.get(usize::from(partition.0)).and_then(|log| log.get(offset.0 as usize));
            let about = raw.and_then(|raw| raw.event().ok()).and_then(|event| event.task_id);
            (partition, about.filter(|task| task.partition() == partition))
        }
        (None, None) => return String::new(),
    };
    let p = usize::from(partition.0);
    let last = finding.record.map_or(Offset(u64::MAX), |(_, offset)| offset);
    let mut chosen = Vec::new();
    for raw in topic.get(p).into_iter().flatten().take_while(|raw| raw.offset <= last) {
        let Ok(event) = raw.event() else { continue };
        let ours = match event.kind {
            Kind::OwnershipClaimed => true,
            Kind::OwnershipRenewed => finding.record.is_some_and(|(_, offset)| offset == raw.offset),
            _ => task.is_some() && event.task_id == task,
        };
        let judged = audit.parts[p].judged.get(raw.offset.0 as usize).copied();
        let rejected = match judged {
            Some(Judged::Rejected(reason)) => Some(reason),
            Some(Judged::Accepted | Judged::Quarantined(_)) | None => None,
        };
        if ours {
            let record = Record { offset: raw.offset, broker_ms: raw.broker_ms, key: raw.record_key(), event };
            chosen.push((record, rejected));
        }
    }
    // Claims before the one under which the task was born say nothing.
    let born = chosen.iter().position(|(record, _)| record.event.kind != Kind::OwnershipClaimed).unwrap_or(0);
    let first = chosen[..born].iter().rposition(|(_, rejected)| rejected.is_none()).unwrap_or(0);
    let mut retelling = Retelling::new(rules, partition, task);
    let told = chosen[first..].iter().map(|(record, rejected)| retelling.tell(record, *rejected));
    told.collect::<Vec<_>>().join(" | ")
}
