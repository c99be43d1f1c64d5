//! Requests: each is answered at most once, and every one of them is answered (design.md §4.5).

use task_core::timers::Timers as _;
use worker_protocol::{HeartbeatAnswer, PollAnswer, ReportAnswer};

use super::work::Job;
use super::{Answer, Command, Effect, Now, Owner, Phase, Request, RequestKind, Token, Why};

/// Pause between sweeps of what nobody waits for any more, ms.
const SWEEP_MS: u64 = 1_000;

impl Owner {
    /// A request arrives.
    pub(super) fn command(&mut self, now: Now, token: Token, command: Command) {
        let kind = match &command {
            Command::Poll(_) => RequestKind::Poll,
            Command::Heartbeat(_) => RequestKind::Heartbeat,
            Command::Report(_) => RequestKind::Report,
            Command::Create(_)
            | Command::Cancel { .. }
            | Command::Replay { .. }
            | Command::Review { .. }
            | Command::Get { .. }
            | Command::Await { .. }
            | Command::Why { .. }
            | Command::Find { .. }
            | Command::Look(_)
            | Command::Release { .. }
            | Command::Activate { .. }
            | Command::Queue { .. } => RequestKind::Other,
        };
        let until_ms = now.boot_ms.saturating_add(command.patience_ms());
        self.requests.insert(token, Request { kind, until_ms, has_record: false, minted: None });
        self.deadlines.arm(token, until_ms.saturating_add(self.cfg.request_ms));
        let job = Job { token, command };
        if self.draining.is_some() || self.phase == Phase::Done {
            self.reply(token, Answer::Unavailable(Why::Draining));
        } else if self.phase == Phase::Owning {
            self.run(now, job);
        } else if self.parked.len() < self.cfg.max_in_flight && !matches!(self.phase, Phase::Superseded { .. }) {
            self.parked.push_back(job);
        } else {
            self.reply(token, Answer::Unavailable(Why::NotOwner));
        }
    }

    /// Nobody waits for the answer any more. What is in flight stays, its outcome is just not told.
    pub(super) fn forget(&mut self, token: Token) {
        self.requests.remove(&token);
        self.deadlines.cancel(&token);
        self.polls.retain(|poll| poll.token != token);
        self.awaits.remove(token);
    }

    /// Answers a request, once; what nobody waits for any more is dropped.
    pub(super) fn reply(&mut self, token: Token, answer: Answer) {
        let Some(request) = self.requests.remove(&token) else { return };
        self.deadlines.cancel(&token);
        self.awaits.remove(token);
        let answer = match (answer, request.kind) {
            (Answer::Unavailable(_) | Answer::OutcomeUnknown { .. }, RequestKind::Poll) => {
                Answer::Poll(PollAnswer::Unavailable)
            }
            (Answer::Unavailable(_) | Answer::OutcomeUnknown { .. }, RequestKind::Heartbeat) => {
                Answer::Heartbeat(HeartbeatAnswer::Unavailable)
            }
            (Answer::Unavailable(_), RequestKind::Report) => Answer::Report(ReportAnswer::Unavailable),
            (Answer::OutcomeUnknown { .. }, RequestKind::Report) => Answer::Report(ReportAnswer::OutcomeUnknown),
            (answer, _) => answer,
        };
        self.out.push(Effect::Reply(token, answer));
    }

    /// Requests whose time is up: unknown if a record of theirs is in flight, else not done.
    pub(super) fn expire(&mut self, now: Now) {
        while let Some(token) = self.deadlines.pop_due(now.boot_ms) {
            let Some(request) = self.requests.get(&token) else { continue };
            let answer = if request.has_record {
                Answer::OutcomeUnknown { task_id: request.minted }
            } else {
                Answer::Unavailable(Why::NotOwner)
            };
            if request.kind == RequestKind::Poll {
                self.polls.retain(|poll| poll.token != token);
            }
            self.reply(token, answer);
        }
        self.sweep(now);
    }

    // While the log is away requests come, wait their ten seconds and go; what they left behind
    // would grow with the length of the outage.
    fn sweep(&mut self, now: Now) {
        if now.boot_ms < self.swept_ms.saturating_add(SWEEP_MS) {
            return;
        }
        self.swept_ms = now.boot_ms;
        let requests = &self.requests;
        let waits = |job: &Job| requests.contains_key(&job.token);
        self.parked.retain(waits);
        self.unproven.retain(waits);
        self.waiting.retain(|_, jobs| {
            jobs.retain(waits);
            !jobs.is_empty()
        });
        self.keys_pending.values_mut().for_each(|jobs| jobs.retain(waits));
        self.holds.retain(|_, until_ms| *until_ms > now.boot_ms);
    }
}
