//! What all simulated ports share: the queue of events, the seed, the faults, log, groups, store,
//! lock, and the auditor that sees it all. Nothing in here is polled while it is locked.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use crate::act::Act;
use crate::audit::Audit;
use crate::clock::{Alarm, TrueTime};
use crate::exec::ProcId;
use crate::faults::{Fault, Faults, Tally};
use crate::ports::groups::Groups;
use crate::ports::lock::LockServer;
use crate::ports::log::Topic;
use crate::ports::store::Tables;
use crate::rng::Rng;

/// What happens at a time.
pub enum Ev {
    /// Somebody who sleeps is woken.
    Ring(Weak<Alarm>),
    /// Something inside a port.
    Port(Box<dyn FnOnce(&mut Shared) + Send>),
    /// A reader sees what landed.
    Deliver(usize),
    /// Something outside: processes, workers, clients.
    Act(Act),
}

struct Entry {
    at: u64,
    seq: u64,
    ev: Ev,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    // The heap gives the greatest first: the earliest, and of equal times the first one queued.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.seq).cmp(&(self.at, self.seq))
    }
}

/// Events in the order of true time.
#[derive(Default)]
pub struct Queue {
    heap: BinaryHeap<Entry>,
    seq: u64,
}

impl Queue {
    fn push(&mut self, at: u64, ev: Ev) {
        self.seq += 1;
        self.heap.push(Entry { at, seq: self.seq, ev });
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<(u64, Ev)> {
        self.heap.pop().map(|e| (e.at, e.ev))
    }
}

/// What is known of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcState {
    /// Number of its start; what an earlier one sent belongs to a dead process.
    pub life: u64,
    /// It runs, frozen or not.
    pub up: bool,
    /// True µs until which nothing of it runs; 0 = it runs.
    pub frozen_until: u64,
}

/// Everything behind the ports.
pub struct Shared {
    /// True time.
    pub time: TrueTime,
    /// What will happen.
    pub queue: Queue,
    /// The seed's numbers.
    pub rng: Rng,
    /// What may go wrong now.
    pub faults: Faults,
    /// What went wrong so far.
    pub tally: Tally,
    /// Processes.
    pub procs: Vec<ProcState>,
    /// The log.
    pub topic: Topic,
    /// Groups of its readers.
    pub groups: Groups,
    /// The snapshot track.
    pub tables: Tables,
    /// The lock server.
    pub locks: LockServer,
    /// Sees everything.
    pub audit: Audit,
}

impl Shared {
    /// True time, µs.
    pub fn now(&self) -> u64 {
        self.time.us()
    }

    /// Queues an event; never before now.
    pub fn at(&mut self, us: u64, ev: Ev) {
        let at = us.max(self.time.us());
        self.queue.push(at, ev);
    }

    /// Queues something inside a port.
    pub fn later(&mut self, us: u64, work: impl FnOnce(&mut Shared) + Send + 'static) {
        self.at(us, Ev::Port(Box::new(work)));
    }

    /// Whether this fault happens now; counts it if so.
    pub fn strikes(&mut self, fault: Fault) -> bool {
        let strikes = self.rng.chance(self.faults.ppm(fault));
        if strikes {
            self.tally.add(fault);
        }
        strikes
    }

    /// State of a process.
    pub fn proc(&self, id: ProcId) -> ProcState {
        self.procs.get(id).copied().unwrap_or_default()
    }
}

/// The shared part, as ports hold it.
#[derive(Clone)]
pub struct Hub(Arc<Mutex<Shared>>);

impl Hub {
    /// Takes it over.
    pub fn new(shared: Shared) -> Self {
        Self(Arc::new(Mutex::new(shared)))
    }

    /// For a moment, never across a poll.
    pub fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock()
    }

    /// Queues an event.
    pub fn at(&self, us: u64, ev: Ev) {
        self.lock().at(us, ev);
    }
}
