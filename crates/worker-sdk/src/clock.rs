//! The runner's clock. A trait of its own rather than the services' one: what users import must not
//! link the services' plumbing, and with it a Kafka client.

use std::future::Future;
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::machine::Now;

/// Longest single wait: the runtime's timers stand still while the machine sleeps, so after a
/// wake-up a lease is noticed as over within this.
const LONGEST_WAIT_MS: u64 = 500;

/// Both clocks of a worker, and waiting on the boot clock.
pub trait WorkerClock: Clone + Send + Sync + 'static {
    /// Reads both.
    fn now(&self) -> Now;

    /// The boot clock in µs, for measuring only.
    fn boot_us(&self) -> u64 {
        self.now().boot_ms.saturating_mul(1000)
    }

    /// Ready once the boot clock has reached `boot_ms`.
    fn sleep_until(&self, boot_ms: u64) -> impl Future<Output = ()> + Send + 'static;
}

/// The clocks of this machine; waiting needs a tokio runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl WorkerClock for SystemClock {
    fn now(&self) -> Now {
        Now { boot_ms: self.boot_us() / 1000, wall_ms: read_us(ClockId::Realtime).div_euclid(1000) }
    }

    fn boot_us(&self) -> u64 {
        u64::try_from(read_us(ClockId::Boottime)).unwrap_or(0)
    }

    fn sleep_until(&self, boot_ms: u64) -> impl Future<Output = ()> + Send + 'static {
        wait_until(*self, boot_ms)
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place of the SDK that waits on the runtime's timers")]
async fn wait_until(clock: SystemClock, boot_ms: u64) {
    loop {
        let left = boot_ms.saturating_sub(clock.now().boot_ms);
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(left.min(LONGEST_WAIT_MS))).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place of the SDK that reads the machine's clocks")]
fn read_us(id: ClockId) -> i64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(id);
    tv_sec.saturating_mul(1_000_000).saturating_add(tv_nsec / 1000)
}
