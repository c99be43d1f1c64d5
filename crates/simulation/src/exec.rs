//! The executor of all simulated processes: tasks are polled in the order in which they were woken,
//! one at a time, so that a process can be crashed or frozen between any two awaits.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use parking_lot::Mutex;

/// A process of the world, by its place in the list of processes.
pub type ProcId = usize;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
type Queue = Arc<Mutex<VecDeque<(ProcId, u32, u64)>>>;

struct Flag {
    queue: Queue,
    proc: ProcId,
    slot: u32,
    // A waker that outlives its task must not wake the next one in the slot.
    life: u64,
    queued: AtomicBool,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.queue.lock().push_back((self.proc, self.slot, self.life));
        }
    }
}

struct Slot {
    task: Option<Task>,
    flag: Arc<Flag>,
    waker: Waker,
}

#[derive(Default)]
struct Proc {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    frozen: bool,
    held: VecDeque<(u32, u64)>,
}

/// All tasks of all processes.
#[derive(Default)]
pub struct Executor {
    queue: Queue,
    procs: Vec<Proc>,
    lives: u64,
    /// Polls so far.
    pub polls: u64,
}

impl Executor {
    /// Starts a task of a process.
    pub fn spawn(&mut self, proc: ProcId, task: impl Future<Output = ()> + Send + 'static) {
        while self.procs.len() <= proc {
            self.procs.push(Proc::default());
        }
        self.lives += 1;
        let p = &mut self.procs[proc];
        let slot = p.free.pop().unwrap_or_else(|| {
            p.slots.push(None);
            (p.slots.len() - 1) as u32
        });
        let flag =
            Arc::new(Flag { queue: self.queue.clone(), proc, slot, life: self.lives, queued: AtomicBool::new(false) });
        let waker = Waker::from(flag.clone());
        p.slots[slot as usize] = Some(Slot { task: Some(Box::pin(task)), flag: flag.clone(), waker });
        flag.wake_by_ref();
    }

    /// Drops everything a process runs, wherever it stands.
    pub fn crash(&mut self, proc: ProcId) {
        if let Some(p) = self.procs.get_mut(proc) {
            *p = Proc::default();
        }
    }

    /// From now on nothing of the process runs.
    pub fn freeze(&mut self, proc: ProcId) {
        if let Some(p) = self.procs.get_mut(proc) {
            p.frozen = true;
        }
    }

    /// It goes on with whatever woke it meanwhile.
    pub fn thaw(&mut self, proc: ProcId) {
        let Some(p) = self.procs.get_mut(proc) else { return };
        p.frozen = false;
        let mut queue = self.queue.lock();
        queue.extend(std::mem::take(&mut p.held).into_iter().map(|(slot, life)| (proc, slot, life)));
    }

    /// Polls one task that was woken. False when none is left.
    pub fn step(&mut self) -> bool {
        let Some((proc, at, life)) = self.queue.lock().pop_front() else { return false };
        let p = &mut self.procs[proc];
        if p.frozen {
            p.held.push_back((at, life));
            return true;
        }
        let Some(slot) = p.slots.get_mut(at as usize).and_then(Option::as_mut).filter(|s| s.flag.life == life) else {
            return true;
        };
        slot.flag.queued.store(false, Ordering::Relaxed);
        let Some(mut task) = slot.task.take() else { return true };
        let waker = slot.waker.clone();
        self.polls += 1;
        let done = task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let p = &mut self.procs[proc];
        if done {
            p.slots[at as usize] = None;
            p.free.push(at);
        } else if let Some(slot) = p.slots[at as usize].as_mut() {
            slot.task = Some(task);
        }
        true
    }
}
