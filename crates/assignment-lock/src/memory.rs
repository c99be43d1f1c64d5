//! Volatile adapter for one process. Time comes from the caller, since nothing in here may look at
//! a clock of its own.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::sync::Arc;

use parking_lot::Mutex;
use task_events::TaskId;

use crate::{AssignmentLock, Holder, Lock, LockUnavailable, ServerState, Taken};

type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The volatile locks; clones share one content.
#[derive(Clone)]
pub struct MemoryLock {
    held: Arc<Mutex<HashMap<TaskId, (Holder, u64)>>>,
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
        self.held.lock().get(&task).filter(|(_, until)| *until > now).map(|(holder, _)| holder.clone())
    }
}

impl AssignmentLock for MemoryLock {
    fn take(&self, locks: Vec<Lock>) -> impl Future<Output = Result<Vec<Taken>, LockUnavailable>> + Send + 'static {
        let now = (self.now_ms)();
        let mut held = self.held.lock();
        let taken = locks.into_iter().map(|lock| {
            let foreign = held.get(&lock.task).is_some_and(|(holder, until)| *until > now && *holder != lock.holder);
            held.insert(lock.task, (lock.holder, now.saturating_add(lock.ttl_ms)));
            if foreign { Taken::Replaced } else { Taken::Yes }
        });
        let taken = taken.collect();
        ready(Ok(taken))
    }

    fn renew(&self, locks: Vec<Lock>) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static {
        let now = (self.now_ms)();
        let mut held = self.held.lock();
        for lock in locks {
            held.insert(lock.task, (lock.holder, now.saturating_add(lock.ttl_ms)));
        }
        ready(Ok(()))
    }

    fn release(
        &self,
        locks: Vec<(TaskId, Holder)>,
    ) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static {
        let mut held = self.held.lock();
        for (task, holder) in locks {
            if held.get(&task).is_some_and(|(there, _)| *there == holder) {
                held.remove(&task);
            }
        }
        ready(Ok(()))
    }

    fn server(&self) -> impl Future<Output = Result<ServerState, LockUnavailable>> + Send + 'static {
        ready(Ok(ServerState { run_id: "memory".to_owned(), sentinel: true }))
    }
}
