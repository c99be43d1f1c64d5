//! Time in the benchmarks. Workers and this process are on one machine, so that their boot clocks
//! are one clock.

use rustix::time::{ClockId, Timespec};
use service_kit::{Clock as _, SystemClock};

/// CLOCK_BOOTTIME, µs.
#[expect(clippy::disallowed_methods, reason = "latencies of 1 ms need a finer clock than service_kit::Clock")]
pub fn boot_us() -> u64 {
    let Timespec { tv_sec, tv_nsec } = rustix::time::clock_gettime(ClockId::Boottime);
    u64::try_from(tv_sec.saturating_mul(1_000_000).saturating_add(tv_nsec / 1_000)).unwrap_or(0)
}

/// Waits for so many ms.
pub async fn pause(ms: u64) {
    SystemClock.sleep_until(SystemClock.boot_ms() + ms).await;
}

/// Seconds since a reading of [`boot_us`].
pub fn seconds_since(us: u64) -> f64 {
    seconds(boot_us().saturating_sub(us))
}

/// µs as seconds.
pub fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}
