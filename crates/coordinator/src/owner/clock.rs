//! Broker time on the owner's monotonic clock (design.md §4.11).
//!
//! Deadlines in events are broker time; timers run on CLOCK_BOOTTIME. The anchor between them is
//! the broker stamp of an own record, taken as if it had been stamped only when it was read back:
//! the estimate is then never ahead of the broker, so a timer is late by a round trip at most and
//! never early.

use super::Now;

/// The monotonic clock and the broker's run at rates that differ by less than one in this many.
const RATE: u64 = 1_000;

/// The anchor, and whether the clocks agree.
#[derive(Clone, Copy, Debug)]
pub(super) struct BrokerClock {
    tolerance_ms: i64,
    anchor: Option<Anchor>,
    off_by_ms: Option<i64>,
    told: bool,
}

#[derive(Clone, Copy, Debug)]
struct Anchor {
    boot_ms: u64,
    wall_ms: i64,
    broker_ms: i64,
}

impl BrokerClock {
    pub(super) const fn new(tolerance_ms: i64) -> Self {
        Self { tolerance_ms, anchor: None, off_by_ms: None, told: false }
    }

    /// Takes the broker's stamp of an own record that was read back now. Re-anchors only when the
    /// wall clock agrees with it: when they differ nobody knows which of them stepped.
    pub(super) fn observe(&mut self, now: Now, broker_ms: i64) {
        let off = now.wall_ms.saturating_sub(broker_ms);
        if off.unsigned_abs() <= self.tolerance_ms.unsigned_abs() {
            self.anchor = Some(Anchor { boot_ms: now.boot_ms, wall_ms: now.wall_ms, broker_ms });
            self.off_by_ms = None;
        } else {
            self.off_by_ms = Some(off);
            // A first anchor is needed even so, or no timer would ever run.
            self.anchor.get_or_insert(Anchor { boot_ms: now.boot_ms, wall_ms: now.wall_ms, broker_ms });
        }
    }

    /// Compares the wall clock with the monotonic one. Settled again only by [`Self::observe`].
    pub(super) fn check(&mut self, now: Now) {
        if let Some(a) = self.anchor {
            let boot = i64::try_from(now.boot_ms.saturating_sub(a.boot_ms)).unwrap_or(i64::MAX);
            let drift = now.wall_ms.saturating_sub(a.wall_ms).saturating_sub(boot);
            if drift.unsigned_abs() > self.tolerance_ms.unsigned_abs() {
                self.off_by_ms.get_or_insert(drift);
            }
        }
    }

    /// By how much the clocks disagree; `None` = settled.
    pub(super) const fn unsettled(&self) -> Option<i64> {
        self.off_by_ms
    }

    /// Broker time now, never ahead of the broker. The wall clock before the first anchor.
    pub(super) fn broker_ms(&self, now: Now) -> i64 {
        self.anchor.map_or(now.wall_ms, |a| {
            let passed = now.boot_ms.saturating_sub(a.boot_ms);
            // Both readings were cut to whole ms, and this clock may run a little fast.
            let sure = passed.saturating_sub(passed.div_ceil(RATE)).saturating_sub(1);
            a.broker_ms.saturating_add(i64::try_from(sure).unwrap_or(i64::MAX))
        })
    }

    /// When broker time `at_ms` was, on the monotonic clock; at most now.
    pub(super) fn boot_at_past(&self, now: Now, at_ms: i64) -> u64 {
        let ago = self.broker_ms(now).saturating_sub(at_ms);
        now.boot_ms.saturating_sub(u64::try_from(ago).unwrap_or(0))
    }

    /// Whether an alarm is due: once for each time the clocks came apart.
    pub(super) fn tell(&mut self) -> Option<i64> {
        let told = std::mem::replace(&mut self.told, self.off_by_ms.is_some());
        self.off_by_ms.filter(|_| !told)
    }

    /// When broker time `at_ms` will have come, on the monotonic clock.
    pub(super) fn boot_at(&self, now: Now, at_ms: i64) -> u64 {
        let ahead = at_ms.saturating_sub(self.broker_ms(now));
        now.boot_ms.saturating_add(u64::try_from(ahead).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn now(boot_ms: u64, wall_ms: i64) -> Now {
        Now::at_ms(boot_ms, wall_ms)
    }

    #[test]
    fn a_stepped_wall_clock_moves_no_timer_and_stops_creates_until_settled() {
        let mut c = BrokerClock::new(5_000);
        c.observe(now(1_000, 100_000), 99_900);
        let late = |due: u64| (5_000..5_005).contains(&due);
        assert!(late(c.boot_at(now(2_000, 101_000), 103_900)));
        c.check(now(3_000, 102_000 + 3_600_000));
        assert!(c.unsettled().is_some());
        assert!(late(c.boot_at(now(3_000, 102_000 + 3_600_000), 103_900)), "timers stay on the monotonic clock");
        c.observe(now(4_000, 103_000 + 3_600_000), 102_900);
        assert!(c.unsettled().is_some(), "the broker disagrees with the wall clock still");
        c.observe(now(5_000, 104_000), 103_900);
        assert_eq!(c.unsettled(), None);
    }

    #[test]
    fn a_broker_step_is_not_followed_alone() {
        let mut c = BrokerClock::new(5_000);
        c.observe(now(0, 0), 0);
        c.observe(now(1_000, 1_000), 3_600_000);
        assert!(c.unsettled().is_some());
        assert!((995..1_000).contains(&c.broker_ms(now(1_000, 1_000))), "behind it, never ahead");
    }
}
