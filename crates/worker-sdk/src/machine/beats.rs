//! Heartbeats of one attempt.

use super::RequestId;
use super::shared::Shared;

/// More unanswered heartbeats than this tell nothing new.
const REMEMBERED: usize = 8;
/// Shortest wait before a failed heartbeat is tried again, ms.
const RETRY_MIN_MS: u64 = 100;

/// A heartbeat that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat {
    request: RequestId,
    pub(super) sent_at: u64,
    /// Number of the step it named.
    pub(super) step_number: u64,
}

#[derive(Debug)]
pub(super) struct Beats {
    interval_ms: u64,
    next_at: u64,
    unanswered: Vec<Beat>,
}

impl Beats {
    /// The first sign of life was sent at `sent_at`: with a poll.
    pub(super) fn new(sent_at: u64, interval_ms: u64) -> Self {
        let interval_ms = interval_ms.max(1);
        Self { interval_ms, next_at: sent_at.saturating_add(interval_ms), unanswered: Vec::new() }
    }

    pub(super) fn due_at(&self) -> u64 {
        self.next_at
    }

    pub(super) fn hurry(&mut self, now: u64) {
        self.next_at = self.next_at.min(now);
    }

    pub(super) fn sent(&mut self, request: RequestId, step_number: u64, shared: &mut Shared) {
        let now = shared.now.boot_ms;
        self.next_at = now.saturating_add(self.interval_ms);
        if self.unanswered.len() == REMEMBERED {
            let oldest = self.unanswered.remove(0);
            shared.requests.remove(&oldest.request);
        }
        self.unanswered.push(Beat { request, sent_at: now, step_number });
    }

    /// The heartbeat answered here; `None` when it is none of ours.
    pub(super) fn answered(&mut self, request: RequestId, shared: &mut Shared) -> Option<Beat> {
        let at = self.unanswered.iter().position(|beat| beat.request == request)?;
        shared.requests.remove(&request);
        Some(self.unanswered.remove(at))
    }

    /// Nobody could answer: try again well before the lease is over.
    pub(super) fn retry(&mut self, now: u64) {
        self.next_at = self.next_at.min(now.saturating_add((self.interval_ms / 4).max(RETRY_MIN_MS)));
    }

    /// No more of them.
    pub(super) fn pause(&mut self) {
        self.next_at = u64::MAX;
    }

    pub(super) fn is_ours(&self, request: RequestId) -> bool {
        self.unanswered.iter().any(|beat| beat.request == request)
    }

    pub(super) fn close(&mut self, shared: &mut Shared) {
        for beat in self.unanswered.drain(..) {
            shared.requests.remove(&beat.request);
        }
    }
}
