//! One attempt, from the poll that brought it to the answer of its last report.

use std::sync::Arc;

use task_events::{StepDone, TaskId, Text};
use worker_protocol::{Assignment, Heartbeat, HeartbeatAnswer, ReportAnswer, ReportBody};

use super::beats::Beats;
use super::lease::Lease;
use super::line::{Effect, Line, Opening, Sent, may_come_late, report_of};
use super::shared::Shared;
use super::{Config, OutboxEntry, Output, RequestId, Stop};

/// Where the attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The handler has not been entered.
    Waiting,
    /// It will not be entered, and the owner is told so.
    Declining { since: u64 },
    /// The handler is inside.
    Inside { entered_at: u64 },
    /// It was told to stop and is not gone yet.
    Stopping { entered_at: u64, why: Stop },
    /// The handler is gone; reports are left.
    Reporting,
    /// Nothing is left.
    Over,
}

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) task_id: TaskId,
    pub(super) name: worker_protocol::Attempt,
    pub(super) token: Text,
    /// `None` for an attempt of an earlier process, of which only reports are left.
    pub(super) assignment: Option<Arc<Assignment>>,
    pub(super) lease: Lease,
    pub(super) phase: Phase,
    pub(super) line: Line,
    pub(super) beats: Beats,
    /// STARTING was answered accepted or duplicate.
    pub(super) confirmed: bool,
    /// The task's cancel was requested; from then on the grace runs.
    pub(super) cancel_until: Option<u64>,
    /// Completed steps, earlier attempts' included.
    pub(super) steps: Vec<StepDone>,
    pub(super) step_in_progress: Option<(Text, bool)>,
    /// Steps entered so far, and the newest one that an accepted heartbeat named.
    pub(super) step_number: u64,
    pub(super) step_announced: u64,
    /// Key under which the machine files it.
    pub(super) filed_under: Option<u64>,
}

impl Attempt {
    /// An attempt that a poll sent at `sent_at` brought.
    pub(super) fn received(assignment: Assignment, sent_at: u64, shared: &Shared) -> Self {
        let now = shared.now.boot_ms;
        let declines = shared.draining || shared.free_slots() == 0;
        let mut line = Line::default();
        let (phase, opening) = if declines {
            let body = ReportBody::Declined { draining: shared.draining };
            (Phase::Declining { since: now }, Opening { what: Sent::Declined, body })
        } else {
            (Phase::Waiting, starting(shared))
        };
        line.open(opening);
        Self {
            task_id: assignment.task_id,
            name: assignment.attempt,
            token: assignment.attempt_token.clone(),
            lease: Lease::new(sent_at, assignment.lease_ms),
            phase,
            line,
            beats: Beats::new(sent_at, assignment.heartbeat_ms),
            confirmed: false,
            cancel_until: None,
            steps: assignment.steps_done.clone(),
            step_in_progress: None,
            step_number: 0,
            step_announced: 0,
            filed_under: None,
            assignment: Some(Arc::new(assignment)),
        }
    }

    /// An attempt of an earlier process, of which only reports are left.
    pub(super) fn restored(entry: &OutboxEntry, now: u64) -> Self {
        Self {
            task_id: entry.task_id,
            name: entry.report.attempt,
            token: entry.attempt_token.clone(),
            assignment: None,
            lease: Lease::new(now, 0),
            phase: Phase::Reporting,
            line: Line::default(),
            beats: Beats::new(u64::MAX, 1),
            confirmed: true,
            cancel_until: None,
            steps: Vec::new(),
            step_in_progress: None,
            step_number: 0,
            step_announced: 0,
            filed_under: None,
        }
    }

    /// Whether it occupies a slot.
    pub(super) fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Waiting | Phase::Inside { .. } | Phase::Stopping { .. })
    }

    /// Whether polls list it. An ASSIGNED attempt that a poll does not list is handed out again,
    /// so it is listed until the owner is known to have it as started.
    pub(super) fn is_listed(&self) -> bool {
        self.is_active() || self.phase == Phase::Reporting && !self.confirmed
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Forgets requests and entries; there is nothing more to send.
    pub(super) fn close(&mut self, shared: &mut Shared) {
        self.line.close(shared);
        self.beats.close(shared);
    }

    /// Does what is due: expiry first, then entry, then sending.
    pub(super) fn advance(&mut self, shared: &mut Shared) {
        self.expire(shared);
        self.try_enter(shared);
        self.send_report(shared);
        self.send_heartbeat(shared);
        if self.phase == Phase::Reporting && self.line.is_empty() {
            self.phase = Phase::Over;
        }
    }

    /// When [`Attempt::advance`] has something to do without any input.
    pub(super) fn next_due(&self, config: &Config) -> Option<u64> {
        let patience = config.start_patience_ms;
        let own = match self.phase {
            Phase::Waiting => Some(self.lease.until().saturating_add(patience)),
            Phase::Declining { since } => Some(since.saturating_add(patience)),
            Phase::Inside { .. } => self.handler_end_at(),
            Phase::Stopping { why: Stop::StartToClose | Stop::CancelGrace, .. } => Some(self.lease.until()),
            Phase::Stopping { why: Stop::LeaseEnd | Stop::Fenced, .. } | Phase::Reporting | Phase::Over => None,
        };
        let beat = self.is_beating().then(|| self.beats.due_at());
        own.into_iter().chain(self.line.due_at()).chain(beat).min()
    }

    // While the owner must not take it for lost: until the handler is gone and its result is on
    // record. Not once the lease is over inside a handler: then the owner shall take it for lost.
    fn is_beating(&self) -> bool {
        match self.phase {
            Phase::Waiting | Phase::Inside { .. } => true,
            Phase::Stopping { why, .. } => matches!(why, Stop::StartToClose | Stop::CancelGrace),
            Phase::Reporting => self.line.has_result() && self.assignment.is_some(),
            Phase::Declining { .. } | Phase::Over => false,
        }
    }

    fn send_report(&mut self, shared: &mut Shared) {
        let Some((what, body)) = self.line.head(shared.now.boot_ms) else { return };
        let report = report_of(self.name, shared, body.clone());
        let request = shared.request_of(self.name.execution_id);
        self.line.sent(request, what, shared);
        let (task_id, attempt_token) = (self.task_id, self.token.clone());
        shared.out.push_back(Output::Report { request, task_id, attempt_token, report });
    }

    fn send_heartbeat(&mut self, shared: &mut Shared) {
        let now = shared.now.boot_ms;
        if !self.is_beating() || self.beats.due_at() > now {
            return;
        }
        if self.phase == Phase::Reporting && !self.lease.holds(now) {
            // The owner is away for longer than the lease: the result itself will tell.
            self.beats.pause();
            return;
        }
        let request = shared.request_of(self.name.execution_id);
        self.beats.sent(request, self.step_number, shared);
        let heartbeat = Heartbeat {
            attempt: self.name,
            worker_id: shared.config.worker_id.clone(),
            incarnation: shared.config.incarnation,
            memory_usage_percent: shared.memory,
            step_in_progress: self.step_in_progress.clone(),
        };
        let (task_id, attempt_token) = (self.task_id, self.token.clone());
        shared.out.push_back(Output::Heartbeat { request, task_id, attempt_token, heartbeat });
    }

    pub(super) fn heartbeat_answered(&mut self, request: RequestId, answer: HeartbeatAnswer, shared: &mut Shared) {
        let Some(beat) = self.beats.answered(request, shared) else { return };
        match answer {
            HeartbeatAnswer::Accepted { lease_ms, cancel_requested } => {
                self.lease.renew(beat.sent_at, lease_ms);
                self.step_announced = self.step_announced.max(beat.step_number);
                if cancel_requested {
                    self.cancel(shared);
                }
            }
            HeartbeatAnswer::Fenced => self.fenced(None, shared),
            HeartbeatAnswer::Unavailable => self.beats.retry(shared.now.boot_ms),
        }
    }

    pub(super) fn report_answered(&mut self, request: RequestId, answer: ReportAnswer, shared: &mut Shared) {
        match self.line.answered(request, answer, shared) {
            Effect::Nothing if answer == ReportAnswer::TooEarly && !self.is_waiting() => {
                self.line.open(starting(shared));
            }
            Effect::Nothing => {}
            Effect::Settled(Sent::Starting) => self.started(shared),
            Effect::Settled(Sent::Declined) => self.phase = Phase::Over,
            Effect::Settled(Sent::Entry(_)) => self.confirmed = true,
            Effect::Fenced(what) => self.fenced(Some(what), shared),
        }
    }

    pub(super) fn send_failed(&mut self, request: RequestId, shared: &mut Shared) {
        if self.beats.is_ours(request) {
            self.beats.retry(shared.now.boot_ms);
        } else {
            self.line.failed(request, shared);
        }
    }

    // The attempt is over for the owner. The handler stops at once and its reports are dropped,
    // except a result that was complete before: it may still count although the attempt was taken
    // for lost, and the owner says so in its own answer.
    fn fenced(&mut self, what: Option<Sent>, shared: &mut Shared) {
        match self.phase {
            Phase::Waiting | Phase::Declining { .. } | Phase::Over => self.phase = Phase::Over,
            Phase::Inside { .. } | Phase::Stopping { .. } => {
                self.line.drop_opening();
                self.line.retain(shared, |_| false);
                self.stop(Stop::Fenced, shared);
            }
            Phase::Reporting => {
                let result_itself = matches!(what, Some(Sent::Entry(n)) if self.line.result_number() == Some(n));
                self.line.drop_opening();
                self.line.retain(shared, |body| !result_itself && may_come_late(body));
            }
        }
    }
}

fn starting(shared: &Shared) -> Opening {
    let body = ReportBody::Starting { start_time: shared.now.wall_ms, memory_usage_percent: shared.memory };
    Opening { what: Sent::Starting, body }
}
