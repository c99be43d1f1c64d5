//! Up to where each partition may be read. The end moves after a commit, never before; injected
//! faults may hold it back, so that an acknowledgement comes before the record can be seen.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use task_events::PartitionId;
use tokio::sync::watch;

/// What may be read of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visible {
    /// One past the last visible offset.
    pub end: u64,
    /// The log was closed: nothing more will come.
    pub closed: bool,
}

/// Visible ends of all partitions.
pub(super) struct Visibility {
    ends: Arc<Vec<watch::Sender<Visible>>>,
    slow: Arc<Slow>,
}

#[derive(Default)]
struct Slow {
    state: Mutex<SlowState>,
    changed: Condvar,
}

#[derive(Default)]
struct SlowState {
    held: bool,
    delay: Duration,
    /// Ends that wait for their time, oldest first.
    waiting: VecDeque<(Instant, PartitionId, u64)>,
    thread: bool,
    closed: bool,
}

impl Visibility {
    pub fn new(ends: &[u64]) -> Self {
        Self {
            ends: Arc::new(ends.iter().map(|&end| watch::Sender::new(Visible { end, closed: false })).collect()),
            slow: Arc::default(),
        }
    }

    pub fn end(&self, partition: PartitionId) -> u64 {
        self.ends[usize::from(partition.0)].borrow().end
    }

    pub fn subscribe(&self, partition: PartitionId) -> watch::Receiver<Visible> {
        self.ends[usize::from(partition.0)].subscribe()
    }

    /// Records below `end` are committed.
    #[expect(clippy::disallowed_methods, reason = "injected delays run on the monotonic clock")]
    pub fn advance(&self, partition: PartitionId, end: u64) {
        let mut slow = self.slow.state.lock();
        if !slow.held && slow.delay.is_zero() && slow.waiting.is_empty() {
            drop(slow);
            move_end(&self.ends, partition, end);
            return;
        }
        let due = Instant::now() + slow.delay;
        slow.waiting.push_back((due, partition, end));
        self.slow.changed.notify_all();
    }

    /// Injection: holds everything committed from now on back until it is released again.
    pub fn hold(&self, held: bool) {
        self.set(|state| state.held = held);
    }

    /// Injection: everything committed from now on becomes visible this much later.
    pub fn delay(&self, delay: Duration) {
        self.set(|state| state.delay = delay);
    }

    /// Ends the wait of every reader at its end.
    pub fn close(&self) {
        for sender in self.ends.iter() {
            sender.send_modify(|visible| visible.closed = true);
        }
    }

    fn set(&self, change: impl FnOnce(&mut SlowState)) {
        let mut state = self.slow.state.lock();
        change(&mut state);
        if !state.thread {
            state.thread = true;
            let (ends, slow) = (self.ends.clone(), self.slow.clone());
            let run = move || publish(&ends, &slow);
            if let Err(error) = std::thread::Builder::new().name("log-visibility".into()).spawn(run) {
                tracing::error!(%error, "cannot start the thread of the injected visibility delay");
            }
        }
        self.slow.changed.notify_all();
    }
}

fn move_end(ends: &[watch::Sender<Visible>], partition: PartitionId, end: u64) {
    ends[usize::from(partition.0)].send_modify(|visible| visible.end = end);
}

impl Drop for Visibility {
    fn drop(&mut self) {
        self.slow.state.lock().closed = true;
        self.slow.changed.notify_all();
    }
}

#[expect(clippy::disallowed_methods, reason = "injected delays run on the monotonic clock")]
fn publish(ends: &[watch::Sender<Visible>], slow: &Slow) {
    let mut state = slow.state.lock();
    while !state.closed {
        match state.waiting.front().copied() {
            Some((due, partition, end)) if !state.held => {
                if due > Instant::now() {
                    let _ = slow.changed.wait_until(&mut state, due);
                    continue;
                }
                state.waiting.pop_front();
                move_end(ends, partition, end);
            }
            _ => slow.changed.wait(&mut state),
        }
    }
}
