//! The lease, as the worker counts it.

/// It runs from the sending of the newest accepted sign of life. The owner starts its own count
/// later, at the arrival, and adds a margin: so the worker's lease always ends first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    from: u64,
    until: u64,
}

impl Lease {
    pub(super) fn new(sent_at: u64, lease_ms: u64) -> Self {
        Self { from: sent_at, until: sent_at.saturating_add(lease_ms) }
    }

    /// A sign of life sent at `sent_at` was accepted. One that was sent before the newest accepted
    /// one says nothing new, however late its answer comes.
    pub(super) fn renew(&mut self, sent_at: u64, lease_ms: u64) {
        if sent_at >= self.from {
            *self = Self::new(sent_at, lease_ms);
        }
    }

    /// First moment at which it is over.
    pub(super) fn until(self) -> u64 {
        self.until
    }

    pub(super) fn holds(self, now: u64) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_counts_from_its_own_sending() {
        let mut lease = Lease::new(1_000, 500);
        assert!(lease.holds(1_499) && !lease.holds(1_500));
        lease.renew(1_300, 500);
        assert_eq!(lease.until(), 1_800);
        lease.renew(1_200, 9_000);
        assert_eq!(lease.until(), 1_800, "older than what is known");
        lease.renew(1_400, 100);
        assert_eq!(lease.until(), 1_500, "the newest one counts even when it is shorter");
    }
}
