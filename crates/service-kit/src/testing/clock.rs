//! A clock that the test moves.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use crate::Clock;

/// Boot time starts at 0, wall time at 2024-01-01T00:00:00Z.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    boot_ms: u64,
    next: u64,
    sleeping: BTreeMap<(u64, u64), Waker>,
}

impl ManualClock {
    /// Moves both clocks and wakes who slept until then.
    pub fn advance(&self, ms: u64) {
        let mut state = self.state.lock();
        state.boot_ms += ms;
        let later = state.boot_ms + 1;
        let asleep = state.sleeping.split_off(&(later, 0));
        let awake = std::mem::replace(&mut state.sleeping, asleep);
        drop(state);
        awake.into_values().for_each(Waker::wake);
    }
}

impl Clock for ManualClock {
    fn boot_ms(&self) -> u64 {
        self.state.lock().boot_ms
    }

    fn wall_ms(&self) -> i64 {
        1_704_067_200_000 + self.boot_ms() as i64
    }

    fn sleep_until(&self, boot_ms: u64) -> impl Future<Output = ()> + Send + 'static {
        let state = self.state.clone();
        let id = {
            let mut state = state.lock();
            state.next += 1;
            state.next
        };
        poll_fn(move |cx| {
            let mut state = state.lock();
            if state.boot_ms >= boot_ms {
                return Poll::Ready(());
            }
            state.sleeping.insert((boot_ms, id), cx.waker().clone());
            Poll::Pending
        })
    }
}
