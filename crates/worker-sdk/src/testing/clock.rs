//! A clock that the test moves.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use crate::WorkerClock;
use crate::machine::Now;

/// Stands still until it is moved. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<(u64, Vec<Waker>)>>);

impl ManualClock {
    /// Moves it.
    pub fn advance(&self, ms: u64) {
        let wakers = {
            let mut state = self.0.lock();
            state.0 = state.0.saturating_add(ms);
            std::mem::take(&mut state.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl WorkerClock for ManualClock {
    fn now(&self) -> Now {
        let boot_ms = self.0.lock().0;
        Now { boot_ms, wall_ms: i64::try_from(boot_ms).unwrap_or(i64::MAX) }
    }

    fn sleep_until(&self, boot_ms: u64) -> impl Future<Output = ()> + Send + 'static {
        let state = self.0.clone();
        poll_fn(move |cx| {
            let mut state = state.lock();
            if state.0 >= boot_ms {
                return Poll::Ready(());
            }
            state.1.push(cx.waker().clone());
            Poll::Pending
        })
    }
}
