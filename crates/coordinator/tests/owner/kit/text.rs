//! Records and answers in the notation of the histories.

use coordinator::owner::{Answer, Looked};
use task_core::{Record, Verdict};
use task_events::{Body, TaskId};
use worker_protocol::{HeartbeatAnswer, PollAnswer, ReportAnswer};

use super::World;

impl World {
    pub fn name(&self, id: TaskId) -> String {
        self.named.get(&id).map_or_else(|| format!("#{id}"), Clone::clone)
    }

    /// `assign t1 w1 e=1 => rejected(stale_epoch)`
    pub(super) fn line(&self, record: &Record, verdict: &Verdict) -> String {
        let event = &record.event;
        let t = event.task_id.map(|id| self.name(id)).unwrap_or_default();
        let e = event.exec_epoch;
        let text = match &event.body {
            Body::TaskCreated(_) => format!("create {t}"),
            Body::TaskAssigned(b) => format!("assign {t} {} e={e}", b.worker_id),
            Body::TaskStarted(_) => format!("start {t} e={e}"),
            Body::TaskStepCompleted(b) => format!("step {t} e={e} {}", b.done.step),
            Body::TaskReleased(b) => format!("release {t} e={e} {}", b.reason),
            Body::TaskCompleted(_) => format!("complete {t} e={e}"),
            Body::TaskFailed(b) => format!("fail {t} e={e} {}", b.error_code),
            Body::TaskLost(_) => format!("lost {t} e={e}"),
            Body::TaskTimedOut(b) => match (&b.step_in_progress, b.step_is_idempotent) {
                (Some(step), Some(false)) => format!("timeout {t} {} in {step}, once only", b.timeout),
                (Some(step), _) => format!("timeout {t} {} in {step}", b.timeout),
                (None, _) => format!("timeout {t} {}", b.timeout),
            },
            Body::TaskRetryApproved(_) => format!("approve {t}"),
            Body::TaskFailedPermanently(_) => format!("giveup {t}"),
            Body::TaskReplayPlanned(_) => format!("plan {t}"),
            Body::TaskRetried(_) => format!("retry {t}"),
            Body::TaskCancelRequested(_) => format!("cancel {t}"),
            Body::TaskCancelled(_) => format!("cancelled {t}"),
            Body::TaskReplayRequested(_) => format!("replay {t} run={}", event.run_no),
            Body::TaskReviewed(_) => format!("review {t}"),
            Body::RejectedReport(_) => format!("noted {t} e={e}"),
            Body::TaskOverdue(b) => format!("overdue {t} {}", b.waiting_for),
            Body::TaskFailureAnalysis(_) => format!("analysis {t}"),
            Body::TaskSkippedByPolicy(_) => format!("skipped {t}"),
            Body::WorkerQuarantined(_) => format!("quarantine {t}"),
            Body::WorkerReleased(b) => format!("free {}", b.worker_id),
            Body::QueuePaused(b) => format!("pause {}", b.queue),
            Body::QueueResumed(b) => format!("resume {}", b.queue),
            Body::BacklogAlarm(b) => format!("backlog {}", b.overdue_per_minute),
            Body::OwnershipClaimed(b) => format!("claim {}", b.url),
            Body::OwnershipRenewed(_) => "renew".to_owned(),
            Body::RulesActivated(b) => format!("rules {}", b.activated),
            Body::LogSealed(_) => "seal".to_owned(),
        };
        match verdict.rejected() {
            None => text,
            Some(reason) => format!("{text} => rejected({reason})"),
        }
    }

    /// What a client heard.
    pub fn heard(&self, answer: Option<&Answer>) -> String {
        let Some(answer) = answer else { return "nothing".to_owned() };
        match answer {
            Answer::Created { task_id, .. } => format!("created {}", self.name(*task_id)),
            Answer::Duplicate { task_id } => format!("duplicate {}", self.name(*task_id)),
            Answer::KeyConflict { task_id } => format!("conflict {}", self.name(*task_id)),
            Answer::BacklogFull { limit } => format!("backlog_full {limit}"),
            Answer::Poll(PollAnswer::Superseded) => "superseded".to_owned(),
            Answer::Poll(PollAnswer::Drain) => "drain".to_owned(),
            Answer::Poll(PollAnswer::Unavailable)
            | Answer::Heartbeat(HeartbeatAnswer::Unavailable)
            | Answer::Report(ReportAnswer::Unavailable) => "unavailable".to_owned(),
            Answer::Poll(PollAnswer::Work { assignments, stop }) => {
                let mut words: Vec<String> = assignments
                    .iter()
                    .map(|a| format!("{} e={}", self.name(a.task_id), a.attempt.exec_epoch))
                    .collect();
                words
                    .extend(stop.iter().filter_map(|e| e.parts()).map(|(t, e)| format!("stop {} e={e}", self.name(t))));
                if words.is_empty() { "no work".to_owned() } else { words.join(", ") }
            }
            Answer::Heartbeat(HeartbeatAnswer::Accepted { cancel_requested: true, .. }) => "accepted, stop".to_owned(),
            Answer::Heartbeat(HeartbeatAnswer::Accepted { .. }) | Answer::Report(ReportAnswer::Accepted) => {
                "accepted".to_owned()
            }
            Answer::Heartbeat(HeartbeatAnswer::Fenced) | Answer::Report(ReportAnswer::Fenced) => "fenced".to_owned(),
            Answer::Report(ReportAnswer::Duplicate) => "duplicate".to_owned(),
            Answer::Report(ReportAnswer::TooEarly) => "too_early".to_owned(),
            Answer::Report(ReportAnswer::OutcomeUnknown) => "unknown".to_owned(),
            Answer::OutcomeUnknown { task_id: Some(_) } => "unknown, with its id".to_owned(),
            Answer::OutcomeUnknown { task_id: None } => "unknown".to_owned(),
            Answer::CancelAccepted => "cancel accepted".to_owned(),
            Answer::Replayed { run_no } => format!("run {run_no}"),
            Answer::Reviewed => "reviewed".to_owned(),
            Answer::QueueChanged => "changed".to_owned(),
            Answer::Task(seen) => format!("{} v{}", seen.row.core.state.as_str(), seen.row.core.version),
            Answer::Why(facts) => format!("why {}", facts.seen.row.core.state.as_str()),
            Answer::Found(found) => {
                let names: Vec<_> = found.iter().map(|seen| self.name(seen.row.core.id)).collect();
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            }
            Answer::Looked(looked) => match &**looked {
                Looked::Tasks { tasks, looked_at, looked_to, settled_to: _ } => {
                    let names: Vec<_> = tasks.iter().map(|task| self.name(task.id)).collect();
                    let more = looked_to.map(|id| format!(", more behind {}", self.name(id))).unwrap_or_default();
                    format!("[{}] of {looked_at}{more}", names.join(" "))
                }
                Looked::Queues(_)
                | Looked::Workers(_)
                | Looked::Rules(_)
                | Looked::Attempts { .. }
                | Looked::Facts(_)
                | Looked::Verdicts { .. } => {
                    format!("{looked:?}")
                }
            },
            Answer::RulesActive => "active".to_owned(),
            Answer::RulesRefused { version, active, known } => format!("rules {version} refused, {active} of {known}"),
            Answer::WorkerReleased => "released".to_owned(),
            Answer::PlacementConflict { beside, of_key } => format!("not in {beside}, its key is in {of_key}"),
            Answer::TaskClosed { state, .. } => format!("closed {}", state.as_str()),
            Answer::TaskOpen { state, .. } => format!("open {}", state.as_str()),
            Answer::NotFound => "not found".to_owned(),
            Answer::Gone => "gone".to_owned(),
            Answer::Refused(refusal) => format!("refused: {refusal}"),
            Answer::Unavailable(why) => format!("unavailable({why:?})"),
        }
    }
}
