//! Asking for work: one poll at a time.

use task_events::ExecutionId;
use worker_protocol::{Poll, PollAnswer};

use super::backoff::backoff_ms;
use super::shared::Shared;
use super::{Output, RequestId};

#[derive(Debug)]
pub(super) struct Polling {
    outstanding: Option<(RequestId, u64)>,
    next_at: u64,
    tried: u32,
    /// Since when polls that were answered brought nothing to a worker without attempts.
    idle_from: Option<u64>,
}

impl Polling {
    pub(super) fn new(now: u64) -> Self {
        Self { outstanding: None, next_at: now, tried: 0, idle_from: None }
    }

    /// When the outstanding poll that is answered here was sent; `None` for any other.
    pub(super) fn answered(&mut self, request: RequestId, answer: &PollAnswer, shared: &Shared) -> Option<u64> {
        let (_, sent_at) = self.outstanding.filter(|(outstanding, _)| *outstanding == request)?;
        match answer {
            PollAnswer::Work { assignments, .. } => {
                self.outstanding = None;
                self.tried = 0;
                match assignments.is_empty() {
                    true => drop(self.idle_from.get_or_insert(sent_at)),
                    false => self.idle_from = None,
                }
                let pause = if assignments.is_empty() { shared.config.poll_pause_ms } else { 0 };
                self.next_at = shared.now.boot_ms.saturating_add(pause);
            }
            PollAnswer::Superseded | PollAnswer::Drain | PollAnswer::Unavailable => self.back_off(shared),
        }
        Some(sent_at)
    }

    /// Whether the failed request was the outstanding poll.
    pub(super) fn failed(&mut self, request: RequestId, shared: &Shared) -> bool {
        let ours = self.outstanding.is_some_and(|(outstanding, _)| outstanding == request);
        if ours {
            self.back_off(shared);
        }
        ours
    }

    /// Gives up a poll without an answer, and sends one if there is a free slot.
    pub(super) fn advance(&mut self, shared: &mut Shared, known: usize, held: impl FnOnce() -> Vec<ExecutionId>) {
        let now = shared.now.boot_ms;
        if self.given_up_at(shared).is_some_and(|at| at <= now) {
            self.back_off(shared);
        }
        if self.outstanding.is_some() || self.next_at > now || !may_poll(shared, known) {
            return;
        }
        let request = shared.next_request();
        self.outstanding = Some((request, now));
        let config = &shared.config;
        let poll = Poll {
            worker_id: config.worker_id.clone(),
            incarnation: config.incarnation,
            handler_version: config.handler_version.clone(),
            queues: config.queues.clone(),
            free_slots: shared.free_slots(),
            held: held(),
            wait_ms: config.poll_wait_ms,
        };
        shared.out.push_back(Output::Poll { request, poll });
    }

    /// Has the worker drain if it had nothing to do for as long as it is to wait for work.
    pub(super) fn end_if_idle(&mut self, shared: &mut Shared, known: usize) {
        if known > 0 {
            self.idle_from = None;
        }
        shared.draining |= self.idle_until(shared).is_some_and(|at| at <= shared.now.boot_ms);
    }

    pub(super) fn next_due(&self, shared: &Shared, known: usize) -> Option<u64> {
        let polls = self.given_up_at(shared).or_else(|| may_poll(shared, known).then_some(self.next_at));
        let idle = self.idle_until(shared).filter(|_| !shared.draining);
        polls.into_iter().chain(idle).min()
    }

    fn idle_until(&self, shared: &Shared) -> Option<u64> {
        Some(self.idle_from?.saturating_add(shared.config.end_when_idle_ms?))
    }

    fn given_up_at(&self, shared: &Shared) -> Option<u64> {
        let wait = shared.config.poll_wait_ms.saturating_add(shared.config.poll_slack_ms);
        self.outstanding.map(|(_, sent_at)| sent_at.saturating_add(wait))
    }

    fn back_off(&mut self, shared: &Shared) {
        self.outstanding = None;
        // Who is not answered does not know whether there is work.
        self.idle_from = None;
        let wait = backoff_ms(shared.config.resend_min_ms, shared.config.resend_max_ms, self.tried);
        self.next_at = shared.now.boot_ms.saturating_add(wait);
        self.tried = self.tried.saturating_add(1);
    }
}

fn may_poll(shared: &Shared, known: usize) -> bool {
    !shared.draining && shared.free_slots() > 0 && known < shared.config.max_undelivered as usize
}
