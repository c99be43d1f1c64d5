//! Timers as data: the owner arms, cancels and pops them by its own monotonic clock.

mod ordered;
mod wheel;

pub use ordered::OrderedTimers;
pub use wheel::{SLOT_MS, TimerWheel};

/// Where timers wait. Times are milliseconds of one monotonic clock; a timer never fires early.
pub trait Timers<K> {
    /// Arms or re-arms the timer of `key`.
    fn arm(&mut self, key: K, due_ms: u64);

    /// Disarms it.
    fn cancel(&mut self, key: &K);

    /// Disarms all; time stays where it is.
    fn clear(&mut self);

    /// When the timer of `key` is due.
    fn due(&self, key: &K) -> Option<u64>;

    /// Number of armed timers.
    fn len(&self) -> usize;

    /// Whether none is armed.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// It is `now_ms`; earlier times than said before change nothing.
    fn advance(&mut self, now_ms: u64);

    /// Takes a timer due at or before `now_ms`, the earliest first as far as the granularity goes.
    fn pop_due(&mut self, now_ms: u64) -> Option<K>;

    /// No timer fires before; exact for those that are due after [`Timers::advance`] to now.
    fn next_due(&self) -> Option<u64>;
}
