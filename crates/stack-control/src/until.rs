//! Waiting for conditions.

use std::future::Future;

use anyhow::bail;
use service_kit::{Clock as _, SystemClock};

/// Pause between two looks, ms.
pub const LOOK_MS: u64 = 20;

/// Looks again and again until there is what is looked for.
///
/// # Errors
/// It did not come within so many ms, or a look failed.
pub async fn until<T, F>(what: &str, within_ms: u64, mut look: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Option<T>>>,
{
    let limit = SystemClock.boot_ms().saturating_add(within_ms);
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if SystemClock.boot_ms() >= limit {
            bail!("{what}: not within {within_ms} ms");
        }
        SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_MS).await;
    }
}
