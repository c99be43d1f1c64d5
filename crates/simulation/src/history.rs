//! What led to a finding, in the notation of the behaviour tests (conventions.md 9), shortened to
//! the task concerned and the claims around it.
//!
//! `claim p=2 by=c1 | submit t1 max=2 | assign t1 e=1 s=2 | … => rejected(stale_sequence)`. Tasks
//! are numbered in the order in which they come up; `p` is the partition epoch, `o` the owner_seq.

use std::fmt::Write as _;

use event_log::RawRecord;
use task_events::{Kind, KindClass, Offset, PartitionId, TaskId};

use crate::audit::{Audit, Finding, Judged};

/// The verb of a kind, as in `model-search`'s histories.
const fn verb(kind: Kind) -> &'static str {
    match kind {
        Kind::TaskCreated => "submit",
        Kind::TaskAssigned => "assign",
        Kind::TaskStarted => "start",
        Kind::TaskStepCompleted => "step",
        Kind::TaskReleased => "release",
        Kind::TaskCompleted => "complete",
        Kind::TaskFailed => "fail",
        Kind::TaskLost => "lose",
        Kind::TaskTimedOut => "timeout",
        Kind::TaskRetryApproved => "approve",
        Kind::TaskFailedPermanently => "giveup",
        Kind::TaskReplayPlanned => "plan",
        Kind::TaskRetried => "retry",
        Kind::TaskCancelRequested => "cancel",
        Kind::TaskCancelled => "cancelled",
        Kind::TaskReplayRequested => "replay",
        Kind::TaskReviewed => "review",
        Kind::RejectedReport => "reject",
        Kind::TaskOverdue => "overdue",
        Kind::TaskFailureAnalysis => "analyse",
        Kind::TaskSkippedByPolicy => "skip",
        Kind::WorkerQuarantined => "quarantine",
        Kind::WorkerReleased => "free",
        Kind::QueuePaused => "pause",
        Kind::QueueResumed => "resume",
        Kind::BacklogAlarm => "backlog",
        Kind::OwnershipClaimed => "claim",
        Kind::OwnershipRenewed => "renew",
        Kind::RulesActivated => "rules",
        Kind::LogSealed => "seal",
    }
}

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

/// The history of a finding: the records of its task, and every claim of its partition from the
/// first of them on.
pub fn shortened(finding: &Finding, audit: &Audit, topic: &[Vec<RawRecord>]) -> String {
    let (partition, task): (PartitionId, Option<TaskId>) = match (finding.task, finding.record) {
        (Some(task), _) => (task.partition(), Some(task)),
        (None, Some((partition, _))) => (partition, None),
        (None, None) => return "(no record concerned)".to_owned(),
    };
    let p = usize::from(partition.0);
    let last = finding.record.map_or(Offset(u64::MAX), |(_, offset)| offset);
    let mut lines = Vec::new();
    for raw in topic.get(p).into_iter().flatten().take_while(|raw| raw.offset <= last) {
        let Some(event) = raw.event().ok() else { continue };
        let ours = match task {
            Some(task) => event.task_id == Some(task) || event.kind == Kind::OwnershipClaimed,
            None => event.kind.class() == KindClass::Control && event.kind != Kind::OwnershipRenewed,
        };
        if ours {
            let judged = audit.parts[p].judged.get(raw.offset.0 as usize).copied();
            lines.push((raw.offset, event.kind, words(raw, judged)));
        }
    }
    // Claims before the task was born say nothing.
    let born = lines.iter().position(|(_, kind, _)| *kind != Kind::OwnershipClaimed).unwrap_or(0);
    let shown = lines.into_iter().skip(born.saturating_sub(1)).map(|(offset, _, text)| format!("{text}  @{offset}"));
    shown.collect::<Vec<_>>().join("\n| ")
}
