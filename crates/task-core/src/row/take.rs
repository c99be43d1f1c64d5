//! What accepted events leave in a row.

use task_events::{Body, ErrorCategory, EventSequence, ReleaseReason, TaskState, Text};

use super::{Plan, Review, Row, steps, timeout_error};

impl Row {
    /// Takes over what an accepted event says.
    pub(crate) fn take(&mut self, body: &Body, at: i64, version: EventSequence, state: TaskState) {
        match body {
            Body::TaskAssigned(b) => {
                self.worker_id = b.worker_id.clone();
                self.worker_incarnation = b.incarnation;
                self.handler_version = b.handler_version.clone();
                self.timeout_config = Some(b.timeout_config.clone());
                self.lease_max_ms = b.lease_max_ms;
                self.optimistic_start = b.optimistic_start;
                self.assigned_at = Some(b.assignment_time);
                self.start_time = None;
                self.started_at = None;
                self.attempt_failed = false;
                self.lease_left_ms = 0;
            }
            Body::TaskStarted(b) => {
                self.start_time = Some(b.start_time);
                self.started_at = Some(self.changed_broker_ms);
                self.memory_usage_percent = b.memory_usage_percent;
                self.released_in_a_row = 0;
            }
            Body::TaskStepCompleted(b) => steps::note(&mut self.steps, &b.done, version),
            Body::TaskReleased(b) => {
                self.released_in_a_row = self.released_in_a_row.saturating_add(1);
                self.lease_left_ms = b.lease_left_ms;
                if b.reason != ReleaseReason::Drain && !self.avoid_workers.contains(&self.worker_id) {
                    self.avoid_workers.push(self.worker_id.clone());
                }
            }
            Body::TaskCompleted(b) => {
                steps::merge(&mut self.steps, &b.steps_done, version);
                // What an earlier attempt failed of is in the history; the task did not fail.
                (self.error_code, self.error_message, self.category) = (None, None, None);
                (self.failed_step, self.failed_step_idempotent) = (None, None);
                self.result_data_hash = Some(b.result_data_hash);
                self.memory_usage_percent = b.memory_usage_percent;
                self.end_time = Some(at);
                self.lease_left_ms = 0;
            }
            Body::TaskFailed(b) => {
                steps::merge(&mut self.steps, &b.steps_done, version);
                self.fail(at, b.error_code.clone(), b.error_message.clone(), b.category);
                self.failed_step = b.failed_step.clone();
                self.failed_step_idempotent = b.is_idempotent;
                self.attempt_failed = true;
                self.memory_usage_percent = b.memory_usage_percent;
                self.lease_left_ms = 0;
                self.released_in_a_row = 0;
            }
            Body::TaskLost(b) => {
                self.fail(at, "WORKER_LOST".into(), "no sign of life".into(), ErrorCategory::Transient);
                self.failed_step = b.step_in_progress.clone();
                self.failed_step_idempotent = b.step_is_idempotent;
                self.attempt_failed = false;
                self.lease_left_ms = b.lease_left_ms;
                self.released_in_a_row = 0;
            }
            Body::TaskTimedOut(b) => {
                let (code, text) = timeout_error(b.timeout);
                self.fail(at, code.into(), text.into(), ErrorCategory::Timeout);
                self.failed_step = b.step_in_progress.clone();
                self.failed_step_idempotent = b.step_is_idempotent;
                self.attempt_failed = b.execution_id.is_some();
                self.released_in_a_row = 0;
                // Without an attempt the one before may still have its lease, or what is left of it.
                if b.execution_id.is_some() {
                    self.lease_left_ms = b.lease_left_ms;
                }
            }
            Body::TaskRetryApproved(b) => {
                self.not_before = b.not_before;
                self.avoid_workers = b.avoid_workers.clone();
            }
            Body::TaskReplayPlanned(b) => {
                self.plan = Some(Plan { resume_from_step: b.resume_from_step.clone(), skip: b.skip.clone() });
            }
            Body::TaskRetried(b) => {
                self.not_before = self.not_before.max(b.not_before);
                self.waiting_since = at;
            }
            Body::TaskFailedPermanently(b) => {
                self.error_code = Some(b.error_code.clone());
                self.end_time = Some(at);
                self.review = b.review.then_some(Review::Waiting);
            }
            Body::TaskCancelled(b) => {
                self.end_time = Some(at);
                self.lease_left_ms = b.lease_left_ms;
            }
            Body::TaskOverdue(_) => self.overdue_noted |= 1 << state as u16,
            Body::TaskCreated(_)
            | Body::TaskCancelRequested(_)
            | Body::TaskReplayRequested(_)
            | Body::TaskReviewed(_)
            | Body::RejectedReport(_)
            | Body::TaskFailureAnalysis(_)
            | Body::TaskSkippedByPolicy(_)
            | Body::WorkerQuarantined(_)
            | Body::WorkerReleased(_)
            | Body::QueuePaused(_)
            | Body::QueueResumed(_)
            | Body::BacklogAlarm(_)
            | Body::OwnershipClaimed(_)
            | Body::OwnershipRenewed(_)
            | Body::RulesActivated(_)
            | Body::LogSealed(_) => {}
        }
    }

    fn fail(&mut self, at: i64, code: Text, message: Text, category: ErrorCategory) {
        self.end_time = Some(at);
        self.error_code = Some(code);
        self.error_message = Some(message);
        self.category = Some(category);
    }
}
