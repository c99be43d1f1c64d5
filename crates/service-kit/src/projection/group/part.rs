//! A partition as the loop files it.

use futures::future::AbortHandle;

use super::super::Projection;
use super::super::live::Live;
use super::super::work::Generation;

pub(super) struct Part<P: Projection> {
    pub(super) generation: Generation,
    /// Being given away: nothing is decided any more.
    pub(super) revoked_until: Option<u64>,
    pub(super) phase: Phase<P>,
}

pub(super) enum Phase<P: Projection> {
    Opening(AbortHandle),
    Live(Box<Live<P>>),
}

impl<P: Projection> Part<P> {
    /// When it wants to be looked at.
    pub(super) fn next_due(&self, now: u64) -> Option<u64> {
        match (&self.phase, self.revoked_until) {
            (_, Some(until)) => Some(until),
            (Phase::Live(live), None) => Some(live.next_due(now)),
            (Phase::Opening(_), None) => None,
        }
    }
}

impl<P: Projection> Drop for Part<P> {
    fn drop(&mut self) {
        if let Phase::Opening(handle) = &self.phase {
            handle.abort();
        }
    }
}
