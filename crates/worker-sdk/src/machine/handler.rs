//! Entering, watching and ending the handler of an attempt.

use task_events::{ErrorCategory, StepDone, Text};
use worker_protocol::ReportBody;

use super::attempt::{Attempt, Phase};
use super::line::report_of;
use super::shared::Shared;
use super::{CANCELLED, EntryKey, HANDLER_PANICKED, HandlerEnd, OutboxEntry, Output, Stop, TIMEOUT_START_TO_CLOSE};

impl Attempt {
    /// Whether its handler may act at `now`.
    pub(super) fn may_write(&self, now: u64) -> bool {
        self.write_until().is_some_and(|until| now < until)
    }

    /// Until when its handler may act.
    pub(super) fn write_until(&self) -> Option<u64> {
        match self.phase {
            Phase::Inside { .. } => self.handler_end_at(),
            Phase::Waiting | Phase::Declining { .. } | Phase::Stopping { .. } | Phase::Reporting | Phase::Over => None,
        }
    }

    /// Until when what its handler left behind may go on.
    pub(super) fn lease_until(&self) -> Option<u64> {
        match self.phase {
            Phase::Inside { .. } | Phase::Stopping { why: Stop::StartToClose | Stop::CancelGrace, .. } => {
                Some(self.lease.until())
            }
            Phase::Stopping { why: Stop::LeaseEnd | Stop::Fenced, .. }
            | Phase::Waiting
            | Phase::Declining { .. }
            | Phase::Reporting
            | Phase::Over => None,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// First moment at which a handler inside must stop.
    pub(super) fn handler_end_at(&self) -> Option<u64> {
        let Phase::Inside { entered_at } = self.phase else { return None };
        let longest = entered_at.saturating_add(self.start_to_close_ms());
        Some(self.lease.until().min(longest).min(self.cancel_until.unwrap_or(u64::MAX)))
    }

    /// STARTING is on record.
    pub(super) fn started(&mut self, shared: &mut Shared) {
        self.confirmed = true;
        // A cancel came first: it is on record as started, so it must be ended by a report.
        if self.is_waiting() && self.cancel_until.is_some() {
            self.phase = Phase::Reporting;
            self.report_failure(
                CANCELLED,
                "cancelled before the handler was entered".into(),
                ErrorCategory::Transient,
                0,
                shared,
            );
        }
    }

    /// Enters the handler if the rules allow it now.
    pub(super) fn try_enter(&mut self, shared: &mut Shared) {
        let Some(assignment) = self.assignment.clone().filter(|_| self.is_waiting()) else { return };
        let now = shared.now.boot_ms;
        let allowed = self.confirmed || assignment.optimistic_start;
        if !allowed || self.cancel_until.is_some() || !self.lease.holds(now) {
            return;
        }
        // A handler that was told to stop may need a while: two of one task never overlap in here.
        if shared.inside.contains_key(&self.task_id) {
            shared.blocked.insert(self.name.execution_id);
            return;
        }
        shared.inside.insert(self.task_id, self.name.execution_id);
        self.phase = Phase::Inside { entered_at: now };
        shared.out.push_back(Output::Start { assignment });
    }

    /// What is over by the clock.
    pub(super) fn expire(&mut self, shared: &mut Shared) {
        let now = shared.now.boot_ms;
        let patience = shared.config.start_patience_ms;
        match self.phase {
            Phase::Waiting if now >= self.lease.until().saturating_add(patience) => self.phase = Phase::Over,
            Phase::Declining { since } if now >= since.saturating_add(patience) => self.phase = Phase::Over,
            Phase::Inside { entered_at } => {
                if !self.lease.holds(now) {
                    self.stop(Stop::LeaseEnd, shared);
                } else if now >= entered_at.saturating_add(self.start_to_close_ms()) {
                    self.stop(Stop::StartToClose, shared);
                } else if self.cancel_until.is_some_and(|at| now >= at) {
                    self.stop(Stop::CancelGrace, shared);
                }
            }
            Phase::Stopping { why: Stop::StartToClose | Stop::CancelGrace, .. } if !self.lease.holds(now) => {
                self.stop(Stop::LeaseEnd, shared);
            }
            Phase::Waiting | Phase::Declining { .. } | Phase::Stopping { .. } | Phase::Reporting | Phase::Over => {}
        }
    }

    /// Tells the handler to stop; of a handler already told so only the reason changes.
    pub(super) fn stop(&mut self, why: Stop, shared: &mut Shared) {
        match self.phase {
            Phase::Inside { entered_at } => {
                self.phase = Phase::Stopping { entered_at, why };
                shared.out.push_back(Output::Stop { execution_id: self.name.execution_id, why });
            }
            Phase::Stopping { entered_at, .. } => self.phase = Phase::Stopping { entered_at, why },
            Phase::Waiting | Phase::Declining { .. } | Phase::Reporting | Phase::Over => {}
        }
    }

    /// The owner says by a poll's answer that the attempt is fenced or cancelled. Which of both
    /// the next heartbeat tells; until then the handler gets the benefit of the grace.
    pub(super) fn told_to_stop(&mut self, shared: &mut Shared) {
        self.cancel(shared);
        self.beats.hurry(shared.now.boot_ms);
    }

    /// The task's cancel was requested.
    pub(super) fn cancel(&mut self, shared: &mut Shared) {
        if self.cancel_until.is_some() {
            return;
        }
        match self.phase {
            Phase::Waiting | Phase::Inside { .. } => {
                self.cancel_until = Some(shared.now.boot_ms.saturating_add(shared.config.cancel_grace_ms));
            }
            Phase::Declining { .. } | Phase::Stopping { .. } | Phase::Reporting | Phase::Over => return,
        }
        if self.is_waiting() {
            if self.confirmed {
                self.started(shared);
            }
        } else {
            shared.out.push_back(Output::Cancel { execution_id: self.name.execution_id });
        }
    }

    /// A step begins. Should the worker die in a step that must not run twice, the owner has to
    /// know that it was inside: so such a step is announced at once.
    pub(super) fn step_started(&mut self, step: Text, is_idempotent: bool, shared: &Shared) {
        if matches!(self.phase, Phase::Inside { .. }) {
            self.step_in_progress = Some((step, is_idempotent));
            self.step_number += 1;
            if !is_idempotent {
                self.beats.hurry(shared.now.boot_ms);
            }
        }
    }

    pub(super) fn is_step_announced(&self) -> bool {
        match self.step_in_progress {
            Some((_, is_idempotent)) => is_idempotent || self.step_announced == self.step_number,
            None => false,
        }
    }

    /// A completed step counts only while the handler may act.
    pub(super) fn step_done(&mut self, done: StepDone, shared: &mut Shared) {
        if !matches!(self.phase, Phase::Inside { .. }) {
            return;
        }
        // A checkpoint inside a step does not end it.
        self.step_in_progress.take_if(|(step, _)| *step == done.step);
        match self.steps.iter_mut().find(|s| s.step == done.step) {
            Some(known) => *known = done.clone(),
            None => self.steps.push(done.clone()),
        }
        self.push(ReportBody::Step(done), shared);
    }

    /// The handler is gone.
    pub(super) fn handler_ended(&mut self, end: HandlerEnd, shared: &mut Shared) {
        let (entered_at, told) = match self.phase {
            Phase::Inside { entered_at } => (entered_at, None),
            Phase::Stopping { entered_at, why } => (entered_at, Some(why)),
            Phase::Waiting | Phase::Declining { .. } | Phase::Reporting | Phase::Over => return,
        };
        if shared.inside.get(&self.task_id) == Some(&self.name.execution_id) {
            shared.inside.remove(&self.task_id);
        }
        self.phase = Phase::Reporting;
        let ran_ms = shared.now.boot_ms.saturating_sub(entered_at);
        match (told, end) {
            // Silence: whatever came out of it, the owner may have handed the task on.
            (Some(Stop::LeaseEnd | Stop::Fenced), _) => {}
            (Some(Stop::StartToClose), _) => {
                let category = self.unless_unsafe(ErrorCategory::Timeout);
                let message = "the handler took longer than allowed".into();
                self.report_failure(TIMEOUT_START_TO_CLOSE, message, category, ran_ms, shared);
            }
            (Some(Stop::CancelGrace) | None, HandlerEnd::Success { result_data_hash }) => {
                let body = ReportBody::Success {
                    result_data_hash,
                    execution_time_ms: ran_ms,
                    steps_done: self.steps.clone(),
                    memory_usage_percent: shared.memory,
                };
                self.push(body, shared);
            }
            (Some(Stop::CancelGrace), _) => self.report_cancelled(ran_ms, shared),
            (None, _) if self.cancel_until.is_some() => self.report_cancelled(ran_ms, shared),
            (None, HandlerEnd::Failed { error_code, error_message, category }) => {
                self.report_failure(error_code, error_message, category, ran_ms, shared);
            }
            (None, HandlerEnd::Panicked { message }) => {
                let category = self.unless_unsafe(ErrorCategory::Transient);
                self.report_failure(HANDLER_PANICKED, message, category, ran_ms, shared);
            }
            // It gave up by itself although nobody asked it to.
            (None, HandlerEnd::Stopped) => {
                let category = self.unless_unsafe(ErrorCategory::Transient);
                self.report_failure(CANCELLED, "the handler gave up".into(), category, ran_ms, shared);
            }
        }
    }

    fn report_cancelled(&mut self, ran_ms: u64, shared: &mut Shared) {
        let category = self.unless_unsafe(ErrorCategory::Transient);
        self.report_failure(CANCELLED, "stopped by a cancel request".into(), category, ran_ms, shared);
    }

    // Of a step that was broken off nobody knows what it did, unless it may simply run again.
    fn unless_unsafe(&self, category: ErrorCategory) -> ErrorCategory {
        match self.step_in_progress {
            Some((_, false)) => ErrorCategory::OutcomeUnknown,
            Some((_, true)) | None => category,
        }
    }

    fn report_failure(
        &mut self,
        error_code: Text,
        error_message: Text,
        category: ErrorCategory,
        execution_time_ms: u64,
        shared: &mut Shared,
    ) {
        let (failed_step, is_idempotent) = self.step_in_progress.take().unzip();
        let body = ReportBody::Failure {
            error_code,
            error_message,
            category,
            failed_step,
            is_idempotent,
            execution_time_ms,
            steps_done: self.steps.clone(),
            memory_usage_percent: shared.memory,
        };
        self.push(body, shared);
    }

    fn push(&mut self, body: ReportBody, shared: &mut Shared) {
        let key = EntryKey { execution_id: self.name.execution_id, number: 0 };
        let report = report_of(self.name, shared, body);
        let entry = OutboxEntry { key, task_id: self.task_id, attempt_token: self.token.clone(), report };
        self.line.push(entry, shared);
    }

    fn start_to_close_ms(&self) -> u64 {
        self.assignment.as_ref().map_or(u64::MAX, |a| a.start_to_close_ms)
    }
}
