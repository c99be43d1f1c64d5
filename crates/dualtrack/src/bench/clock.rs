//! Time in the benchmarks. Workers and this process are on one machine, so that their boot clocks
//! are one clock.

use service_kit::{Clock as _, SystemClock};
use worker_sdk::WorkerClock as _;

/// CLOCK_BOOTTIME, µs.
pub fn boot_us() -> u64 {
    worker_sdk::SystemClock.boot_us()
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
