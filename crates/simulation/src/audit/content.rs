//! What accepted records say, against what was said before: one task per key, retry law, timers,
//! evidence of skips (invariants 10, 12, 13, 14), and who was promised what about them.

use task_core::decide::{View, due_timeout};
use task_core::invariants::Before;
use task_core::{Record, Row};
use task_events::{
    Body, ErrorCategory, EventSequence, ExecutionId, KindClass, Sha256Hash, StepDone, TaskId, TaskState, Text,
};

use super::answers::ReportTag;
use super::{Audit, Map, Set};
use crate::clock::EPOCH_MS;

/// Window of a key, ms.
const KEY_WINDOW_MS: i64 = 24 * 3_600 * 1_000;

/// The first task of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyOf {
    pub task: TaskId,
    pub request: Option<Sha256Hash>,
    pub created_at: i64,
}

/// What accepted records said so far.
#[derive(Default)]
pub(crate) struct Told {
    steps: Map<TaskId, Vec<(EventSequence, Text)>>,
    results: Set<(TaskId, u32)>,
    noted: Set<ExecutionId>,
}

impl Audit {
    fn prove(&mut self, id: TaskId, at: EventSequence, steps: &[StepDone]) {
        self.told.steps.entry(id).or_default().extend(steps.iter().map(|s| (at, s.step.clone())));
        self.facts.steps.extend(steps.iter().map(|s| (id, s.index, s.output_hash)));
    }

    /// A record was accepted.
    pub(super) fn accepted(&mut self, p: usize, record: &Record, before: Before, row: Option<&Row>) {
        let event = &record.event;
        let Some(id) = event.task_id else { return };
        let at = Some((self.parts[p].fold.partition, record.offset));
        let seq = event.event_sequence;
        self.answered_before(p, record, id);
        let core = match before {
            Before::Open(core) => Some(core),
            Before::Unborn | Before::Closed(_) => None,
        };
        let mut broken: Option<(u8, String)> = None;
        match (&event.body, core, row) {
            (Body::TaskCreated(b), ..) => {
                if let Some(key) = b.key_hash {
                    let new = KeyOf { task: id, request: b.request_hash, created_at: event.event_time };
                    let keys = &mut self.parts[p].keys;
                    match keys.get(&key) {
                        Some(first) if first.created_at + KEY_WINDOW_MS > event.event_time => {
                            broken = Some((18, format!("key of task {} was used again for task {id}", first.task)));
                        }
                        Some(_) | None => {
                            keys.insert(key, new);
                        }
                    }
                }
            }
            (Body::TaskAssigned(_), _, Some(row))
                if row.not_before.is_some_and(|at| record.broker_ms + self.early_ms < at) =>
            {
                broken = Some((13, format!("task {id} assigned at {} before {:?}", record.broker_ms, row.not_before)));
            }
            (Body::TaskTimedOut(b), Some(core), Some(row)) => {
                let due = due_timeout(View { core: &core, row });
                if !due.is_some_and(|(at, kind)| kind == b.timeout && at <= record.broker_ms + self.early_ms) {
                    broken = Some((
                        13,
                        format!("task {id} timed out ({:?}) at {}, due {due:?}", b.timeout, record.broker_ms),
                    ));
                }
                // Nobody can have run longer than since the assignment landed.
                let assigned = self.assigned_us(id).map(|us| EPOCH_MS + (us / 1_000) as i64);
                let earliest = assigned.map(|at| at + row.created.timeouts.start_to_close_ms as i64);
                if b.timeout == task_events::TimeoutKind::StartToClose
                    && earliest.is_some_and(|at| record.broker_ms + self.early_ms < at)
                {
                    broken = Some((
                        13,
                        format!("task {id} ran out of its time at {}, assigned {assigned:?}", record.broker_ms),
                    ));
                }
            }
            (Body::TaskOverdue(_), Some(core), Some(row)) if row.is_overdue_noted(core.state) => {
                broken = Some((13, format!("task {id} is overdue twice in {}", core.state)));
            }
            (Body::TaskRetryApproved(b), Some(core), Some(row)) => {
                broken = retry_law(b, &core, row);
            }
            (Body::TaskReplayPlanned(b), Some(core), _) => {
                let proofs = self.told.steps.get(&id).map_or(&[][..], Vec::as_slice);
                for skip in &b.skip {
                    if !skip.evidence.iter().any(|e| proofs.contains(&(*e, skip.step.clone()))) {
                        broken = Some((
                            14,
                            format!("task {id} skips {:?} by {:?}, which proves nothing", skip.step, skip.evidence),
                        ));
                    }
                }
                if b.based_on.iter().any(|e| *e > core.version) {
                    broken = Some((14, format!("plan of task {id} rests on events to come: {:?}", b.based_on)));
                }
            }
            (Body::TaskCompleted(b), ..) => {
                self.prove(id, seq, &b.steps_done);
                if !self.told.results.insert((id, event.run_no.0)) {
                    broken = Some((10, format!("run {} of task {id} has two results", event.run_no)));
                }
            }
            (Body::TaskFailed(b), Some(core), _) => {
                self.prove(id, seq, &b.steps_done);
                self.spent = (core.retry_count >= core.max_retries && !core.cancel_requested).then_some(id);
            }
            (Body::TaskStepCompleted(b), ..) => self.prove(id, seq, std::slice::from_ref(&b.done)),
            (Body::TaskReplayRequested(b), ..) => self.prove(id, seq, &b.carried.steps),
            (Body::RejectedReport(b), ..) if !self.told.noted.insert(b.execution_id) => {
                broken = Some((0, format!("execution {} of task {id} has two RejectedReports", b.execution_id)));
            }
            _ => {}
        }
        if let Some((invariant, what)) = broken {
            self.find(invariant, what, Some(id), at);
        }
    }

    // Promises made about this record before it came.
    fn answered_before(&mut self, p: usize, record: &Record, id: TaskId) {
        let event = &record.event;
        let at = (self.parts[p].fold.partition, record.offset);
        let tag = ReportTag::of_event(&event.body);
        if let Some((execution, tag)) = tag {
            if self.facts.fenced.contains(&(execution, tag)) {
                let what = format!("{} of task {id} is accepted although it was answered fenced", event.kind);
                self.find(18, what, Some(id), Some(at));
            }
            self.facts.reports.insert((execution, tag));
        }
        let op = match &event.body {
            Body::TaskCreated(_) => super::OpId::of_trace(&event.trace_id),
            Body::TaskCancelRequested(b) => super::OpId::of_actor(&b.actor),
            Body::TaskReplayRequested(b) => super::OpId::of_actor(&b.actor),
            Body::TaskReviewed(b) => super::OpId::of_actor(&b.actor),
            _ => None,
        };
        if let Body::TaskCancelRequested(_) = event.body {
            self.facts.cancelled.insert((id, event.run_no.0));
        }
        let Some(op) = op else { return };
        debug_assert_eq!(event.kind.class(), KindClass::TaskEvent);
        if let Some(why) = self.facts.not_done.get(&op) {
            let what = format!("{} of {op} is accepted although it was answered {why}", event.kind);
            self.find(18, what, Some(id), Some(at));
        }
        if self.facts.unknown_id.get(&op).is_some_and(|named| *named != id) {
            let what = format!("{op} was told the outcome of another task than {id} is unknown");
            self.find(18, what, Some(id), Some(at));
        }
        if let Some((other, _)) = self.facts.done.insert(op, (id, record.offset)) {
            let what = format!("{} of {op} is accepted twice, for tasks {other} and {id}", event.kind);
            self.find(18, what, Some(id), Some(at));
        }
    }
}

fn retry_law(b: &task_events::TaskRetryApproved, core: &task_core::CoreState, row: &Row) -> Option<(u8, String)> {
    let lost = core.state == TaskState::Lost;
    let counts = (core.retry_count + u32::from(!lost), core.lost_count + u32::from(lost));
    if (b.retry_count, b.lost_count) != counts {
        return Some((
            12,
            format!("retry of task {} counts {:?}, the fold {counts:?}", core.id, (b.retry_count, b.lost_count)),
        ));
    }
    if b.policy_version == 0 || b.backoff_ms > crate::verdicts::CAP_MS {
        return Some((12, format!("retry of task {}: policy {}, backoff {}", core.id, b.policy_version, b.backoff_ms)));
    }
    let never = matches!(row.category, Some(ErrorCategory::NonRetryable | ErrorCategory::OutcomeUnknown));
    if !lost && (never || row.error_code.as_deref() == Some("TIMEOUT_DEADLINE")) {
        return Some((12, format!("task {} is retried after {:?} {:?}", core.id, row.category, row.error_code)));
    }
    // What is on record and kept is not run again, so its outcome does not matter.
    let again = row.failed_step.as_ref().is_some_and(|f| row.kept_steps().iter().all(|kept| kept.done.step != *f));
    let cut_off = lost || row.category == Some(ErrorCategory::Timeout);
    if cut_off && again && row.failed_step_idempotent == Some(false) {
        return Some((
            12,
            format!("task {} is retried although the outcome of {:?} is unknown", core.id, row.failed_step),
        ));
    }
    None
}
