//! Adapter for one process, and so the embedded one: its locks die with the process whose attempts
//! they show, and the log needs none of them. Time comes from the caller, since nothing in here may
//! look at a clock of its own.

use std::collections::{BTreeMap, HashMap};
use std::future::{Future, ready};
use std::sync::Arc;

use parking_lot::Mutex;
use task_events::{TaskId, Text};

use crate::{AssignmentLock, Board, Entry, Holder, Lock, LockUnavailable, ServerState, Taken};

type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Expired locks are looked for when there are twice as many as after the last look, but not for less.
const FEW: usize = 1_024;

#[derive(Default)]
struct Held {
    /// Holder, and when the lock expires.
    locks: HashMap<TaskId, (Holder, u64)>,
    /// Entries of the board, by name, and when they expire.
    board: BTreeMap<Text, (Entry, u64)>,
    /// Number of locks at which expired ones are looked for.
    look_at: usize,
}

impl Held {
    // A lock whose owner crashed is never released.
    fn set(&mut self, lock: Lock, now: u64) {
        self.locks.insert(lock.task, (lock.holder, now.saturating_add(lock.ttl_ms)));
        if self.locks.len() > self.look_at.max(FEW) {
            self.locks.retain(|_, (_, until)| *until > now);
            self.look_at = self.locks.len() * 2;
        }
    }
}

/// The volatile locks and board; clones share one content.
#[derive(Clone)]
pub struct MemoryLock {
    held: Arc<Mutex<Held>>,
    now_ms: Clock,
}

impl MemoryLock {
    /// Locks that expire by this monotonic clock, ms.
    pub fn new(now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { held: Arc::default(), now_ms: Arc::new(now_ms) }
    }

    /// Who holds the lock of a task now.
    pub fn holder(&self, task: TaskId) -> Option<Holder> {
        let now = (self.now_ms)();
        self.held.lock().locks.get(&task).filter(|(_, until)| *until > now).map(|(holder, _)| holder.clone())
    }

    /// Locks that are kept, expired ones among them.
    pub fn len(&self) -> usize {
        self.held.lock().locks.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl AssignmentLock for MemoryLock {
    fn take(&self, locks: Vec<Lock>) -> impl Future<Output = Result<Vec<Taken>, LockUnavailable>> + Send + 'static {
        let now = (self.now_ms)();
        let mut held = self.held.lock();
        let taken = locks.into_iter().map(|lock| {
            let foreign =
                held.locks.get(&lock.task).is_some_and(|(holder, until)| *until > now && *holder != lock.holder);
            held.set(lock, now);
            if foreign { Taken::Replaced } else { Taken::Yes }
        });
        let taken = taken.collect();
        ready(Ok(taken))
    }

    fn renew(&self, locks: Vec<Lock>) -> impl Future<Output = Result<usize, LockUnavailable>> + Send + 'static {
        let now = (self.now_ms)();
        let mut held = self.held.lock();
        let mut lost = 0;
        for lock in locks {
            let there = held.locks.get(&lock.task).filter(|(_, until)| *until > now).map(|(holder, _)| holder);
            lost += usize::from(there != Some(&lock.holder));
            if there.is_none_or(|holder| holder.exec_epoch <= lock.holder.exec_epoch) {
                held.set(lock, now);
            }
        }
        ready(Ok(lost))
    }

    fn release(
        &self,
        locks: Vec<(TaskId, Holder)>,
    ) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static {
        let mut held = self.held.lock();
        for (task, holder) in locks {
            if held.locks.get(&task).is_some_and(|(there, _)| *there == holder) {
                held.locks.remove(&task);
            }
        }
        ready(Ok(()))
    }

    fn server(&self) -> impl Future<Output = Result<ServerState, LockUnavailable>> + Send + 'static {
        ready(Ok(ServerState { run_id: "memory".to_owned(), sentinel: true }))
    }
}

impl Board for MemoryLock {
    fn put_up(&self, entry: Entry, ttl_ms: u64) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static {
        let until = (self.now_ms)().saturating_add(ttl_ms);
        self.held.lock().board.insert(entry.instance.clone(), (entry, until));
        ready(Ok(()))
    }

    fn take_down(&self, instance: Text) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static {
        self.held.lock().board.remove(&instance);
        ready(Ok(()))
    }

    fn entries(&self) -> impl Future<Output = Result<Vec<Entry>, LockUnavailable>> + Send + 'static {
        let now = (self.now_ms)();
        let mut held = self.held.lock();
        held.board.retain(|_, (_, until)| *until > now);
        ready(Ok(held.board.values().map(|(entry, _)| entry.clone()).collect()))
    }
}
