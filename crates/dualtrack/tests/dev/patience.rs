//! Waiting for what other processes do.

use std::time::Duration;

use service_kit::{Clock as _, SystemClock};

/// Longest wait for anything; only a defect reaches it.
const PATIENCE_MS: u64 = 90_000;

/// Looks at other processes again and again until there is what is looked for.
#[expect(clippy::disallowed_methods, reason = "between two looks at another process")]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let limit = SystemClock.boot_ms() + PATIENCE_MS;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(SystemClock.boot_ms() < limit, "never came: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
