//! Open loop: calls leave on schedule whatever the answers, and latencies count from the schedule, so
//! that a server that stands still cannot hide what it cost (no coordinated omission).

use std::future::Future;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::Context as _;
use hdrhistogram::Histogram;
use tokio::runtime::Handle;

use super::clock::boot_us;

/// Longest latency that is told apart, µs (1 h).
const LONGEST_US: u64 = 3_600_000_000;

/// A histogram of µs, to three digits.
///
/// # Errors
/// None with these bounds.
pub fn histogram() -> anyhow::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, LONGEST_US, 3).context("a histogram")
}

/// A quantile in ms.
pub fn ms(of: &Histogram<u64>, quantile: f64) -> f64 {
    of.value_at_quantile(quantile) as f64 / 1e3
}

/// How a schedule was kept.
pub struct Paced {
    /// When the first call was due, boot clock, µs.
    pub began_us: u64,
    /// By how much calls left late: the generator's own share of a latency.
    pub late: Histogram<u64>,
}

/// Makes `per_second` calls for so many seconds; each is given its number and when it was due (boot
/// clock, µs). Ready when all have ended.
///
/// # Errors
/// A call panicked.
pub async fn open_loop<F, R>(per_second: u64, seconds: u64, call: F) -> anyhow::Result<Paced>
where
    F: Fn(u64, u64) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let runtime = Handle::current();
    let mut late = histogram()?;
    // A thread of its own: the runtime's timers are too coarse for 1 ms.
    let pacing = tokio::task::spawn_blocking(move || {
        let (_held, never) = channel::<()>();
        let began_us = boot_us() + 1_000;
        let mut calls = Vec::new();
        for n in 0..per_second * seconds {
            let due_us = began_us + n * 1_000_000 / per_second;
            loop {
                let now_us = boot_us();
                if now_us >= due_us {
                    late.saturating_record(now_us - due_us);
                    break;
                }
                // A wait of the kernel's precision; nothing ever comes.
                let _ = never.recv_timeout(Duration::from_micros(due_us - now_us));
            }
            calls.push(runtime.spawn(call(n, due_us)));
        }
        (Paced { began_us, late }, calls)
    });
    let (paced, calls) = pacing.await.context("the pacing thread")?;
    for call in calls {
        call.await.context("a call")?;
    }
    Ok(paced)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test]
    async fn every_call_is_made_and_none_before_it_is_due() {
        let early = Arc::new(AtomicU64::new(0));
        let made = Arc::new(AtomicU64::new(0));
        let counts = (early.clone(), made.clone());
        let call = move |_, due_us| {
            counts.0.fetch_add(u64::from(boot_us() < due_us), Ordering::SeqCst);
            counts.1.fetch_add(1, Ordering::SeqCst);
            async {}
        };
        let paced = open_loop(200, 1, call).await.expect("paced");
        assert_eq!((early.load(Ordering::SeqCst), made.load(Ordering::SeqCst)), (0, 200));
        assert_eq!(paced.late.len(), 200);
    }
}
