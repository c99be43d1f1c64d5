//! One task as the auditor sees it: the laws of its life, written down a second time and
//! independently of the invariants every checker shares.
#![expect(clippy::wildcard_enum_match_arm, reason = "a law names the kinds it speaks of")]

use task_events::{Body, Event, Kind, TaskState};

use crate::audit::{TaskAudit, report_bit};
use crate::plain::named_attempt;

impl TaskAudit {
    /// Takes in an accepted event.
    pub(crate) fn event(&mut self, event: &Event) -> Result<(), String> {
        let kind = event.kind;
        if event.event_sequence.0 != self.seq + 1 {
            return Err(format!("{kind} takes event_sequence {} after {}", event.event_sequence, self.seq));
        }
        let replay = kind == Kind::TaskReplayRequested;
        let run = if kind == Kind::TaskCreated || replay { self.run + 1 } else { self.run };
        if event.run_no.0 != run {
            return Err(format!("{kind} of run {} in run {}", event.run_no, self.run));
        }
        if self.over && !matches!(kind, Kind::TaskReplayRequested | Kind::TaskReviewed) {
            return Err(format!("terminal state left by {kind}"));
        }
        (self.seq, self.run) = (event.event_sequence.0, run);
        let (attempt, verdict, life) = (self.attempt(event), self.verdict(event), self.life(event));
        attempt.and(verdict).and(life)
    }

    // Reports and the end of attempts.
    fn attempt(&mut self, event: &Event) -> Result<(), String> {
        let kind = event.kind;
        let named = named_attempt(&event.body);
        match kind {
            Kind::TaskAssigned => {
                if self.live {
                    return Err("two live attempts".into());
                }
                if event.exec_epoch.0 != self.attempts + 1 || named != Some(self.attempts + 1) {
                    return Err(format!("assignment {} has exec_epoch {}", self.attempts + 1, event.exec_epoch));
                }
                self.attempts += 1;
                if let Some(run) = self.runs.get_mut(self.attempts as usize - 1) {
                    *run = self.run as u8;
                }
                (self.live, self.lost, self.awaits_verdict) = (true, false, false);
                return Ok(());
            }
            Kind::TaskTimedOut if !self.live && !self.awaits_verdict => {
                (self.lost, self.awaits_verdict) = (false, true);
                return Ok(());
            }
            Kind::TaskStarted
            | Kind::TaskStepCompleted
            | Kind::TaskReleased
            | Kind::TaskCompleted
            | Kind::TaskFailed
            | Kind::TaskLost
            | Kind::TaskTimedOut => {}
            _ => return Ok(()),
        }
        if event.exec_epoch.0 != self.attempts || named != Some(self.attempts) || self.attempts == 0 {
            return Err(format!("{kind} of another attempt accepted"));
        }
        let late = self.lost && kind == Kind::TaskCompleted;
        if !(self.live || late) {
            return Err(format!("closed attempt closed again or moved by {kind}"));
        }
        if !matches!(kind, Kind::TaskStarted | Kind::TaskStepCompleted) {
            self.live = false;
            self.lost = kind == Kind::TaskLost;
            self.awaits_verdict = matches!(kind, Kind::TaskFailed | Kind::TaskLost | Kind::TaskTimedOut);
        }
        if matches!(kind, Kind::TaskCompleted | Kind::TaskFailed) {
            self.reports |= report_bit(self.attempts, kind == Kind::TaskCompleted);
        }
        Ok(())
    }

    // What decides whether the task goes on.
    fn verdict(&mut self, event: &Event) -> Result<(), String> {
        let hands_on = matches!(
            event.kind,
            Kind::TaskAssigned
                | Kind::TaskRetryApproved
                | Kind::TaskFailedPermanently
                | Kind::TaskReplayPlanned
                | Kind::TaskRetried
        );
        let asked = hands_on && self.cancel;
        if matches!(event.kind, Kind::TaskRetryApproved | Kind::TaskFailedPermanently) {
            if !self.awaits_verdict {
                return Err(format!("{} without a failure to judge", event.kind));
            }
            self.awaits_verdict = false;
        }
        if event.kind == Kind::TaskRetryApproved {
            let (count, limit) = if self.lost { (&mut self.retries.1, 5) } else { (&mut self.retries.0, self.max) };
            *count += 1;
            if *count > limit {
                return Err(format!("retry law: retry {count} of {limit}"));
            }
        }
        if asked { Err(format!("{} after the cancel request", event.kind)) } else { Ok(()) }
    }

    fn life(&mut self, event: &Event) -> Result<(), String> {
        match &event.body {
            Body::TaskCreated(b) => {
                self.births += 1;
                self.max = b.max_retries;
                if self.births > 1 {
                    return Err("born twice".into());
                }
            }
            Body::TaskCompleted(_) | Body::TaskFailedPermanently(_) => self.over = true,
            Body::TaskCancelled(_) => (self.over, self.live) = (true, false),
            Body::TaskCancelRequested(_) => self.cancel = true,
            Body::TaskReplayRequested(b) => {
                if !self.over {
                    return Err("replay of a task that is not closed".into());
                }
                if b.carried.state == TaskState::Created {
                    return Err("replay carries a state that is not terminal".into());
                }
                self.replays += 1;
                (self.over, self.live, self.lost, self.cancel) = (false, false, false, false);
                (self.awaits_verdict, self.retries) = (false, (0, 0));
            }
            Body::TaskReviewed(_) if !self.over => return Err("review of a task that is not closed".into()),
            _ => {}
        }
        Ok(())
    }
}
