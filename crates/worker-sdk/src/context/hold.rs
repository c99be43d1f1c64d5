//! What of an attempt acts outside its handler's future: a process, a machine elsewhere.
//!
//! A handler that must stop is dropped at its next await, and counts as gone: the attempt is reported,
//! and another one of its task may be entered. Whoever started something that a drop does not end
//! holds the attempt until that something is gone too.

use std::future::Future;

use tokio::sync::watch;

use super::Context;
use crate::machine::Stop;

/// An attempt that does not count as gone before this is dropped, whatever becomes of its handler.
#[derive(Debug)]
pub struct Hold {
    count: watch::Sender<usize>,
    stop: watch::Receiver<Option<Stop>>,
    lease: watch::Receiver<u64>,
}

impl Hold {
    /// Ready once the attempt must stop; says why. After [`Stop::StartToClose`] and
    /// [`Stop::CancelGrace`] there is time to end politely, until [`Hold::lease_until`]; after the
    /// others there is none.
    pub fn stopped(&self) -> impl Future<Output = Stop> + Send + use<> {
        let mut stop = self.stop.clone();
        // A worker whose loop is gone renews nothing.
        async move { stop.wait_for(Option::is_some).await.ok().and_then(|why| *why).unwrap_or(Stop::LeaseEnd) }
    }

    /// Until when what is held may go on at most, ms on the boot clock: the end of the lease, which
    /// accepted heartbeats move; 0 once nothing of the attempt may go on.
    pub fn lease_until(&self) -> u64 {
        *self.lease.borrow()
    }

    /// Ready when [`Hold::lease_until`] has changed since the last call.
    pub async fn lease_moved(&mut self) -> u64 {
        match self.lease.changed().await {
            Ok(()) => *self.lease.borrow_and_update(),
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.count.send_modify(|count| *count -= 1);
    }
}

impl Context {
    /// Keeps the attempt from counting as gone until the [`Hold`] is dropped.
    pub fn hold(&self) -> Hold {
        let Held { count, stop, lease } = self.held.clone();
        count.send_modify(|count| *count += 1);
        Hold { count, stop, lease }
    }
}

/// What a [`Hold`] is made of.
#[derive(Clone)]
pub(crate) struct Held {
    count: watch::Sender<usize>,
    stop: watch::Receiver<Option<Stop>>,
    lease: watch::Receiver<u64>,
}

/// The runner's side of it.
pub(crate) struct Holding {
    stop: watch::Sender<Option<Stop>>,
    lease: watch::Sender<u64>,
}

impl Holding {
    /// Both sides, and a future that is ready while nothing is held.
    pub(crate) fn new(lease_until: u64) -> (Self, Held, impl Future<Output = ()> + Send + use<>) {
        let (count, mut counted) = watch::channel(0);
        let (stop, stopped) = watch::channel(None);
        let (lease, leased) = watch::channel(lease_until);
        let none_held = async move {
            // Without a sender there is nobody left who could hold.
            let _ = counted.wait_for(|count| *count == 0).await;
        };
        (Self { stop, lease }, Held { count, stop: stopped, lease: leased }, none_held)
    }

    pub(crate) fn stop(&self, why: Stop) {
        self.stop.send_replace(Some(why));
    }

    pub(crate) fn move_lease(&self, until: u64) {
        self.lease.send_if_modified(|known| std::mem::replace(known, until) != until);
    }
}
