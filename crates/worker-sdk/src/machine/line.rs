//! The reports of one attempt, in order, one at a time: STARTING before steps before the result,
//! because the owner refuses a step of an attempt that has not started.

use std::collections::VecDeque;

use worker_protocol::{Report, ReportAnswer, ReportBody};

use super::backoff::backoff_ms;
use super::shared::Shared;
use super::{EntryKey, OutboxEntry, Output, RequestId};

/// More unanswered copies of one report than this tell nothing new.
const REMEMBERED: usize = 8;

/// What was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Starting,
    Declined,
    /// Outbox entry of this number.
    Entry(u32),
}

/// What an answer means for the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    /// It is on record.
    Settled(Sent),
    /// The attempt is over.
    Fenced(Sent),
}

/// Reports that are not part of the outbox: they are worth nothing after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) what: Sent,
    pub(super) body: ReportBody,
}

#[derive(Debug, Default)]
pub(super) struct Line {
    /// STARTING or Declined, until it is answered; sent before any entry.
    opening: Option<Opening>,
    entries: VecDeque<OutboxEntry>,
    next_number: u32,
    unanswered: Vec<(RequestId, Sent)>,
    /// When the head is sent (again), boot ms.
    send_at: u64,
    tried: u32,
}

impl Line {
    pub(super) fn open(&mut self, opening: Opening) {
        self.opening = Some(opening);
    }

    pub(super) fn drop_opening(&mut self) {
        self.opening = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.opening.is_none() && self.entries.is_empty()
    }

    pub(super) fn due_at(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.send_at)
    }

    pub(super) fn has_result(&self) -> bool {
        self.result_number().is_some()
    }

    /// Number of the result, if it waits.
    pub(super) fn result_number(&self) -> Option<u32> {
        self.entries.back().filter(|e| e.report.body.is_terminal()).map(|e| e.key.number)
    }

    pub(super) fn restore(&mut self, entry: OutboxEntry) {
        self.next_number = self.next_number.max(entry.key.number.saturating_add(1));
        self.entries.push_back(entry);
    }

    /// Keeps a report until it is answered.
    pub(super) fn push(&mut self, mut entry: OutboxEntry, shared: &mut Shared) {
        entry.key.number = self.next_number;
        self.next_number += 1;
        if self.is_empty() {
            (self.send_at, self.tried) = (shared.now.boot_ms, 0);
        }
        shared.out.push_back(Output::Persist { entry: entry.clone() });
        self.entries.push_back(entry);
    }

    /// Forgets entries that can no longer count.
    pub(super) fn retain(&mut self, shared: &mut Shared, keep: impl Fn(&ReportBody) -> bool) {
        let out = &mut shared.out;
        self.entries.retain(|entry| {
            let kept = keep(&entry.report.body);
            if !kept {
                out.push_back(Output::Forget { key: entry.key });
            }
            kept
        });
        self.send_at = self.send_at.min(shared.now.boot_ms);
    }

    /// The report to send now, with what it is.
    pub(super) fn head(&self, now: u64) -> Option<(Sent, &ReportBody)> {
        if self.send_at > now {
            return None;
        }
        match (&self.opening, self.entries.front()) {
            (Some(opening), _) => Some((opening.what, &opening.body)),
            (None, Some(entry)) => Some((Sent::Entry(entry.key.number), &entry.report.body)),
            (None, None) => None,
        }
    }

    /// The head goes out; without an answer it goes out again.
    pub(super) fn sent(&mut self, request: RequestId, what: Sent, shared: &mut Shared) {
        self.send_at = shared.now.boot_ms.saturating_add(shared.config.answer_wait_ms);
        if self.unanswered.len() == REMEMBERED {
            let (oldest, _) = self.unanswered.remove(0);
            shared.requests.remove(&oldest);
        }
        self.unanswered.push((request, what));
    }

    pub(super) fn answered(&mut self, request: RequestId, answer: ReportAnswer, shared: &mut Shared) -> Effect {
        let Some((at, is_newest)) = self.find(request) else { return Effect::Nothing };
        shared.requests.remove(&request);
        let (_, what) = self.unanswered.remove(at);
        match answer {
            ReportAnswer::Accepted | ReportAnswer::Duplicate => {
                self.settle(what, shared);
                Effect::Settled(what)
            }
            ReportAnswer::Fenced => Effect::Fenced(what),
            ReportAnswer::TooEarly | ReportAnswer::OutcomeUnknown | ReportAnswer::Unavailable => {
                // A copy that is still on its way may yet bring the answer; only the newest one's
                // failure is a reason to send another.
                if is_newest {
                    self.back_off(shared);
                }
                Effect::Nothing
            }
        }
    }

    /// Whether the failed request was a report of ours.
    pub(super) fn failed(&mut self, request: RequestId, shared: &mut Shared) {
        if let Some((_, is_newest)) = self.find(request) {
            // It may have arrived: its answer, if one comes after all, still counts.
            if is_newest {
                self.back_off(shared);
            }
        }
    }

    pub(super) fn close(&mut self, shared: &mut Shared) {
        self.opening = None;
        for (request, _) in self.unanswered.drain(..) {
            shared.requests.remove(&request);
        }
        for entry in self.entries.drain(..) {
            shared.out.push_back(Output::Forget { key: entry.key });
        }
    }

    fn settle(&mut self, what: Sent, shared: &mut Shared) {
        for (request, _) in self.unanswered.extract_if(.., |(_, w)| *w == what) {
            shared.requests.remove(&request);
        }
        match what {
            Sent::Starting | Sent::Declined => self.opening.take_if(|o| o.what == what).is_some(),
            Sent::Entry(number) => {
                let at = self.entries.iter().position(|e| e.key.number == number);
                at.and_then(|at| self.entries.remove(at)).map(|e| forget(e.key, shared)).is_some()
            }
        };
        self.send_at = shared.now.boot_ms;
        // STARTING may be repeated because a step came too early: that pair must not spin.
        if what != Sent::Starting {
            self.tried = 0;
        }
    }

    fn find(&self, request: RequestId) -> Option<(usize, bool)> {
        let at = self.unanswered.iter().position(|(r, _)| *r == request)?;
        Some((at, at + 1 == self.unanswered.len()))
    }

    fn back_off(&mut self, shared: &Shared) {
        let wait = backoff_ms(shared.config.resend_min_ms, shared.config.resend_max_ms, self.tried);
        self.send_at = shared.now.boot_ms.saturating_add(wait);
        self.tried = self.tried.saturating_add(1);
    }
}

fn forget(key: EntryKey, shared: &mut Shared) {
    shared.out.push_back(Output::Forget { key });
}

/// Whether a report may count although the attempt was closed: a result that comes late.
pub(super) fn may_come_late(body: &ReportBody) -> bool {
    matches!(body, ReportBody::Success { .. })
}

/// The report in the words of the protocol.
pub(super) fn report_of(attempt: worker_protocol::Attempt, shared: &Shared, body: ReportBody) -> Report {
    Report { attempt, worker_id: shared.config.worker_id.clone(), body }
}
