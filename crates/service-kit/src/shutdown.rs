//! Asking loops to stop. Waiters are woken in the order in which they first waited, so that a
//! seeded executor sees the same order in every run.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// A request to stop, shared by all clones; it cannot be taken back.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    requested: bool,
    next: u64,
    waiting: BTreeMap<u64, Waker>,
}

impl Shutdown {
    /// Asks everybody to stop.
    pub fn request(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.requested = true;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_values().for_each(Waker::wake);
    }

    /// Whether stopping was asked for.
    pub fn is_requested(&self) -> bool {
        self.state.lock().requested
    }

    /// Ready once stopping was asked for.
    pub fn requested(&self) -> Requested {
        Requested { state: self.state.clone(), id: None }
    }
}

/// Future of [`Shutdown::requested`].
#[derive(Debug)]
pub struct Requested {
    state: Arc<Mutex<State>>,
    id: Option<u64>,
}

impl Future for Requested {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let mut state = this.state.lock();
        if state.requested {
            return Poll::Ready(());
        }
        let id = *this.id.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        state.waiting.insert(id, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Requested {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.state.lock().waiting.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn all_waiters_hear_of_it_and_dropped_ones_leave_nothing() {
        let shutdown = Shutdown::default();
        let mut first = shutdown.requested();
        assert_eq!((&mut first).now_or_never(), None);
        {
            let mut second = shutdown.clone().requested();
            assert_eq!((&mut second).now_or_never(), None);
            assert_eq!(shutdown.state.lock().waiting.len(), 2);
        }
        assert_eq!(shutdown.state.lock().waiting.len(), 1);
        shutdown.clone().request();
        assert!(shutdown.is_requested());
        assert_eq!(first.now_or_never(), Some(()));
        assert_eq!(shutdown.requested().now_or_never(), Some(()));
    }
}
