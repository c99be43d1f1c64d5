//! How an own record ends: read back as accepted, or dead. Nothing else is an end (design.md §4.4).

use task_core::decide::Draft;
use task_core::{Reason, Record};
use task_events::{Body, OwnershipRenewed, TaskId};

use super::flight::{At, InFlight};
use super::work::{Batch, Origin};
use super::{Alarm, Answer, Now, Owner, Phase, Rejections, Timer, Why};
use task_core::timers::Timers as _;

/// Pause between two renewals of an owner whose tasks only wait, ms: a third of the silence that is
/// an alarm.
const QUIET_RENEW_MS: u64 = 5_000;

/// What is known of a record that is not decided anew.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ended {
    /// It is not in the log, or behind a claim: it counts for nothing.
    NotWritten(Why),
    /// Nobody here will learn what became of it.
    Unknown,
}

impl Owner {
    /// An own record counts: it proves currency, and every earlier own record that was not accepted
    /// is dead from here on.
    pub(super) fn own_accepted(&mut self, now: Now, record: &Record, at: At) {
        let dead = self.flight.take_before(at);
        let Some(own) = self.flight.remove(at) else { return };
        self.clock.observe(now, record.broker_ms);
        self.prove(now, own.appended_ms);
        let took_us = now.fine.boot_us.saturating_sub(own.appended_us);
        self.read_back_us = self.read_back_us.max(Some(took_us));
        if let Some(task) = own.task {
            self.rejections.remove(&task);
        }
        self.tell_record(now, record, &own);
        match own.origin {
            Origin::Job(job, answer) => {
                self.reported(now, &job, record);
                self.reply(job.token, answer);
            }
            Origin::Create(job, id) => self.created(now, job, id, record.event.event_time),
            Origin::Assign(task) => self.assigned(now, task),
            Origin::Rider | Origin::Internal => {}
        }
        dead.into_iter().for_each(|record| self.dead(now, record));
        if let Some(task) = own.task {
            self.freed(now, task);
        }
    }

    /// Not an answer yet: a copy of it may still land and be accepted.
    pub(super) fn own_rejected(&mut self, now: Now, at: At, reason: Reason) {
        let Some(own) = self.flight.get_mut(at) else { return };
        let first = own.rejected.replace(reason).is_none();
        let bears = !matches!(own.origin, Origin::Rider);
        let task = own.task;
        if first
            && bears
            && let Some(task) = task
        {
            self.note_rejection(now, task, reason);
        }
        if reason == Reason::StaleOwnerSeq && self.phase == Phase::Owning && self.rules.claim_again {
            // Our own later record would have taken this one out of flight, so somebody else counted
            // up our epoch: nothing of ours can be accepted in it any more.
            self.alarm(Alarm::OwnerSeqTaken);
            return self.claim(now);
        }
        if !self.rules.rejection_final
            && let Some(own) = self.flight.remove(at)
        {
            self.dead(now, own);
        }
    }

    // Three equal rejections of one task: something is not as this owner thinks.
    fn note_rejection(&mut self, now: Now, task: TaskId, reason: Reason) {
        let entry = self.rejections.entry(task).or_insert(Rejections { reason, count: 0 });
        entry.count = if entry.reason == reason { entry.count.saturating_add(1) } else { 1 };
        entry.reason = reason;
        if entry.count >= 3 {
            let doubled = self.cfg.reject_backoff_ms.saturating_mul(1 << (entry.count - 3).min(16));
            let until = now.boot_ms.saturating_add(doubled.min(self.cfg.reject_backoff_max_ms));
            self.acting.arm((task, Timer::Backoff), until);
            self.alarm(Alarm::RejectedRepeatedly(task, reason));
        }
    }

    /// A record is dead: no copy of it can be accepted any more. Decide anew from the fold.
    pub(super) fn dead(&mut self, now: Now, record: InFlight) {
        match record.origin {
            Origin::Job(job, _) => {
                if let Some(request) = self.requests.get_mut(&job.token) {
                    request.has_record = false;
                }
                self.run(now, job);
            }
            Origin::Create(job, id) => self.create_died(now, job, id),
            Origin::Assign(task) => self.hand_out_died(now, task),
            Origin::Rider => {}
            Origin::Internal => self.due_again(now, record.task),
        }
        if let Some(task) = record.task
            && self.phase == Phase::Owning
        {
            self.freed(now, task);
        }
    }

    /// A record is over and cannot be decided anew here.
    pub(super) fn abandon(&mut self, now: Now, record: InFlight, ended: Ended) {
        self.end(now, record.origin, record.task, ended);
        if let Some(task) = record.task
            && self.phase == Phase::Owning
        {
            self.freed(now, task);
        }
    }

    /// Tells whoever waits for it how it ended.
    pub(super) fn end(&mut self, now: Now, origin: Origin, task: Option<TaskId>, ended: Ended) {
        match origin {
            Origin::Job(job, _) => self.reply_ended(job.token, ended),
            Origin::Create(job, _) => {
                self.uncount(&job);
                self.reply_ended(job.token, ended);
                self.release_key(now, &job);
            }
            Origin::Assign(task) => self.hand_out_died(now, task),
            Origin::Rider => {}
            Origin::Internal => self.due_again(now, task),
        }
    }

    fn reply_ended(&mut self, token: super::Token, ended: Ended) {
        let answer = match ended {
            Ended::NotWritten(why) => Answer::Unavailable(why),
            Ended::Unknown => {
                Answer::OutcomeUnknown { task_id: self.requests.get(&token).and_then(|request| request.minted) }
            }
        };
        self.reply(token, answer);
    }

    // The timer that led to it has fired: whatever it was for is still to be done.
    fn due_again(&mut self, now: Now, task: Option<TaskId>) {
        if let (Some(task), Phase::Owning) = (task, self.phase) {
            self.arm(now, task);
        }
    }

    /// Whether an own record proves that no other owner could have been read about.
    pub(super) fn is_current(&self, now: Now) -> bool {
        self.phase == Phase::Owning && (!self.rules.proof || now.boot_ms <= self.proof_until_ms)
    }

    /// An own record that was appended at this time was read back as accepted.
    pub(super) fn prove(&mut self, now: Now, appended_ms: u64) {
        self.proof_until_ms = self.proof_until_ms.max(appended_ms.saturating_add(self.cfg.proof_ms));
        if self.is_current(now) {
            self.wants_proof = false;
        }
    }

    /// Writes a renewal while somebody needs the proof and nothing else is written, and also to
    /// give a rejected record the follower that makes its rejection final.
    pub(super) fn renew(&mut self, now: Now) {
        if !self.may_write(now) {
            return;
        }
        let idle = self.live.is_empty()
            && self.polls.is_empty()
            && self.acting.is_empty()
            && self.judged.is_empty()
            && !self.wants_proof;
        let due = now.boot_ms >= self.renewed_ms.saturating_add(self.cfg.renew_ms);
        // Tasks that only wait for a worker ask nothing of the owner, but whoever reads the log must
        // see that it is there.
        let quiet = now.boot_ms >= self.renewed_ms.saturating_add(QUIET_RENEW_MS) && !self.fold.tasks.is_empty();
        // With nothing proven at all the first waiting request need not wait for the next second.
        let urgent = self.wants_proof && self.flight.is_empty() && !self.is_current(now);
        let wanted = (!idle && (due || urgent) || quiet) && self.draining.is_none();
        if wanted || self.flight.needs_follower() {
            let body = Body::OwnershipRenewed(OwnershipRenewed {});
            self.append(now, vec![Batch { drafts: vec![Draft::control(body)], origin: Origin::Internal }]);
        }
    }
}
