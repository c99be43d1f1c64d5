//! Ports for tests of loops: a clock that stands still until it is told to move, a log in memory
//! whose outcomes and group events the test writes down, and an executor that says when everything
//! has come to rest. No threads, no sleeping, the same in every run.

mod clock;
mod log;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

pub use clock::ManualClock;
pub use log::{Fate, ScriptedLog, ScriptedMember, ScriptedTail};

use crate::Entropy;

/// A future under test, polled by hand.
pub struct Driven<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    flag: Arc<Flag>,
    /// Its result, once it has ended.
    pub output: Option<T>,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<T> Driven<T> {
    /// Does not poll it yet.
    pub fn new(future: impl Future<Output = T> + 'static) -> Self {
        Self { future: Box::pin(future), flag: Arc::new(Flag(AtomicBool::new(true))), output: None }
    }

    /// Polls once if something woke it; `false` when nothing did.
    pub fn poll_once(&mut self) -> bool {
        if self.output.is_some() || !self.flag.0.swap(false, Ordering::Relaxed) {
            return false;
        }
        let waker = Waker::from(self.flag.clone());
        if let Poll::Ready(output) = self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.output = Some(output);
        }
        true
    }

    /// Polls until nothing more happens by itself.
    ///
    /// # Panics
    /// When it does not come to rest: it spins.
    pub fn settle(&mut self) {
        for _ in 0..100_000 {
            if !self.poll_once() {
                return;
            }
        }
        panic!("the future under test does not come to rest");
    }
}

/// Numbers that are as even as a test needs: 0, then steps of the golden ratio.
#[derive(Clone, Debug, Default)]
pub struct Steps(u64);

impl Entropy for Steps {
    fn next_u64(&mut self) -> u64 {
        let now = self.0;
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        now
    }
}
