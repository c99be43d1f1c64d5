//! Heartbeats of one attempt.

use super::RequestId;
use super::shared::Shared;

/// More unanswered heartbeats than this tell nothing new.
const REMEMBERED: usize = 8;
/// Shortest wait before a failed heartbeat is tried again, ms.
const RETRY_MIN_MS: u64 = 100;

#[derive(Debug)]
pub(super) struct Beats {
    interval_ms: u64,
    next_at: u64,
    unanswered: Vec<(RequestId, u64)>,
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

    pub(super) fn sent(&mut self, request: RequestId, shared: &mut Shared) {
        let now = shared.now.boot_ms;
        self.next_at = now.saturating_add(self.interval_ms);
        if self.unanswered.len() == REMEMBERED {
            let (oldest, _) = self.unanswered.remove(0);
            shared.requests.remove(&oldest);
        }
        self.unanswered.push((request, now));
    }

    /// When the heartbeat answered here was sent; `None` when it is none of ours.
    pub(super) fn answered(&mut self, request: RequestId, shared: &mut Shared) -> Option<u64> {
        let at = self.unanswered.iter().position(|(r, _)| *r == request)?;
        shared.requests.remove(&request);
        Some(self.unanswered.remove(at).1)
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
        self.unanswered.iter().any(|(r, _)| *r == request)
    }

    pub(super) fn close(&mut self, shared: &mut Shared) {
        for (request, _) in self.unanswered.drain(..) {
            shared.requests.remove(&request);
        }
    }
}
