//! How a test really stops an owner.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use task_core::PartitionState;

/// Stops the threads of an owner where they stand, as SIGSTOP would stop its process: for tests
/// that run two coordinators in one process, each on its own runtime.
#[derive(Clone, Default)]
pub struct Freeze {
    gate: Arc<(Mutex<Gate>, Condvar)>,
    watch: Option<Watch>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gate {
    #[default]
    Open,
    ClosesWhenAsked,
    Closed,
}

type Watch = Arc<dyn Fn(&PartitionState) + Send + Sync>;

impl Freeze {
    /// One that nobody freezes, and whose owner shows its fold after everything it takes in.
    pub fn watched(watch: impl Fn(&PartitionState) + Send + Sync + 'static) -> Self {
        Self { watch: Some(Arc::new(watch)), ..Self::default() }
    }

    pub(super) fn show(&self, fold: &PartitionState) {
        if let Some(watch) = &self.watch {
            watch(fold);
        }
    }

    /// From now on every thread that comes by stops.
    pub fn freeze(&self) {
        *self.gate.0.lock() = Gate::Closed;
    }

    /// The next request closes the gate: the thread stops with it in its hands, before it acts on it.
    pub fn freeze_when_asked(&self) {
        *self.gate.0.lock() = Gate::ClosesWhenAsked;
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        *self.gate.0.lock() = Gate::Open;
        self.gate.1.notify_all();
    }

    /// Whether the gate is closed.
    pub fn is_frozen(&self) -> bool {
        *self.gate.0.lock() == Gate::Closed
    }

    /// Blocks the calling thread while frozen.
    pub fn hold_here(&self) {
        let mut gate = self.gate.0.lock();
        while *gate == Gate::Closed {
            self.gate.1.wait(&mut gate);
        }
    }

    pub(super) fn asked(&self) {
        let mut gate = self.gate.0.lock();
        if *gate == Gate::ClosesWhenAsked {
            *gate = Gate::Closed;
        }
    }
}
