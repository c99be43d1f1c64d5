//! Time as an argument. The boot clock measures durations (leases, back-offs, timers): it goes on
//! while the machine sleeps and never steps. The wall clock only stamps what people read.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use rustix::time::{ClockId, Timespec};

/// Longest single wait of [`SystemClock::sleep_until`]: the runtime's timers stand still while the
/// machine sleeps, so after a wake-up a timer is late by at most this.
const LONGEST_WAIT_MS: u64 = 1_000;

/// Both clocks of a machine, and waiting on the first.
pub trait Clock: Clone + Send + Sync + 'static {
    /// CLOCK_BOOTTIME, ms. Never goes back; comparable only inside one boot of one machine.
    fn boot_ms(&self) -> u64;

    /// Unix ms by the machine's wall clock, which may step either way.
    fn wall_ms(&self) -> i64;

    /// CLOCK_BOOTTIME, µs: how long something took. Of a clock that knows no µs: its ms.
    fn boot_us(&self) -> u64 {
        self.boot_ms().saturating_mul(1000)
    }

    /// Unix µs by the machine's wall clock: when something was, for people.
    fn wall_us(&self) -> i64 {
        self.wall_ms().saturating_mul(1000)
    }

    /// Ready once `boot_ms()` has reached `boot_ms`; never early. Dropping it is harmless.
    fn sleep_until(&self, boot_ms: u64) -> impl Future<Output = ()> + Send + 'static;
}

/// What `what` yields, if it does within so many ms.
pub async fn within<T>(clock: &impl Clock, ms: u64, what: impl Future<Output = T>) -> Option<T> {
    let limit = clock.sleep_until(clock.boot_ms().saturating_add(ms));
    match select(pin!(what), pin!(limit)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

/// The clocks of this machine. Waiting needs a tokio runtime with time enabled.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn boot_ms(&self) -> u64 {
        u64::try_from(read_us(ClockId::Boottime) / 1000).unwrap_or(0)
    }

    fn wall_ms(&self) -> i64 {
        read_us(ClockId::Realtime).div_euclid(1000)
    }

    fn boot_us(&self) -> u64 {
        u64::try_from(read_us(ClockId::Boottime)).unwrap_or(0)
    }

    fn wall_us(&self) -> i64 {
        read_us(ClockId::Realtime)
    }

    fn sleep_until(&self, boot_ms: u64) -> impl Future<Output = ()> + Send + 'static {
        wait_until(*self, boot_ms)
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that waits on the runtime's timers")]
async fn wait_until(clock: SystemClock, boot_ms: u64) {
    // Read again after each wait: the runtime's timers run on another clock than ours.
    loop {
        let left = boot_ms.saturating_sub(clock.boot_ms());
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(left.min(LONGEST_WAIT_MS))).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clocks")]
fn read_us(id: ClockId) -> i64 {
    let Timespec { tv_sec, tv_nsec } = rustix::time::clock_gettime(id);
    tv_sec.saturating_mul(1_000_000).saturating_add(tv_nsec / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleep_is_never_early() {
        let clock = SystemClock;
        let due = clock.boot_ms() + 15;
        clock.sleep_until(due).await;
        assert!(clock.boot_ms() >= due);
        clock.sleep_until(0).await;
        assert!(clock.wall_ms() > 1_704_067_200_000);
    }
}
