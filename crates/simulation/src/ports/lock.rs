//! The lock server: slow, away, restarted, emptied, with foreign values.

use std::collections::BTreeMap;
use std::future::Future;

use assignment_lock::{AssignmentLock, Holder, Lock, LockUnavailable, ServerState, Taken};
use futures::channel::oneshot;
use task_events::{ExecEpoch, TaskId, Text};

use crate::faults::Fault;
use crate::hub::{Hub, Shared};

/// What the server holds.
#[derive(Default)]
pub struct LockServer {
    held: BTreeMap<TaskId, (Holder, u64)>,
    /// Away until then, true µs.
    pub down_until: u64,
    run: u64,
    sentinel: bool,
}

impl LockServer {
    /// Everything is gone; `restarted` = under another run id too.
    pub fn flush(&mut self, restarted: bool) {
        self.held.clear();
        self.sentinel = false;
        self.run += u64::from(restarted);
    }
}

/// The server as a process sees it.
#[derive(Clone)]
pub struct SimLock {
    hub: Hub,
}

impl SimLock {
    /// A connection.
    pub fn new(hub: Hub) -> Self {
        Self { hub }
    }

    fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Shared) -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, LockUnavailable>> + Send + 'static {
        let (answer, receiver) = oneshot::channel();
        let mut s = self.hub.lock();
        let at = s.now() + s.rng.delay(300);
        if at < s.locks.down_until {
            let at = at + s.rng.between(10_000, 300_000);
            s.later(at, move |_| {
                let _ = answer.send(Err(LockUnavailable::Away("no answer".to_owned())));
            });
        } else {
            s.later(at, move |s| {
                let done = work(s);
                let at = s.now() + s.rng.delay(150);
                s.later(at, move |_| {
                    let _ = answer.send(Ok(done));
                });
            });
        }
        drop(s);
        async move { receiver.await.unwrap_or_else(|_| Err(LockUnavailable::Away("gone".to_owned()))) }
    }
}

fn take(s: &mut Shared, lock: Lock) -> Taken {
    let now = s.now();
    if s.strikes(Fault::LockForeign) {
        let foreign = Holder { worker_id: Text::const_new("somebody"), exec_epoch: ExecEpoch(1) };
        s.locks.held.insert(lock.task, (foreign, now + 10_000_000));
    }
    let foreign = s.locks.held.get(&lock.task).is_some_and(|(h, until)| *until > now && *h != lock.holder);
    s.locks.held.insert(lock.task, (lock.holder, now + lock.ttl_ms * 1_000));
    if foreign { Taken::Replaced } else { Taken::Yes }
}

impl AssignmentLock for SimLock {
    fn take(&self, locks: Vec<Lock>) -> impl Future<Output = Result<Vec<Taken>, LockUnavailable>> + Send + 'static {
        self.call(move |s| locks.into_iter().map(|lock| take(s, lock)).collect())
    }

    fn renew(&self, locks: Vec<Lock>) -> impl Future<Output = Result<usize, LockUnavailable>> + Send + 'static {
        self.call(move |s| {
            let now = s.now();
            let mut lost = 0;
            for lock in locks {
                let there = s.locks.held.get(&lock.task).filter(|(_, until)| *until > now).map(|(holder, _)| holder);
                lost += usize::from(there != Some(&lock.holder));
                if there.is_none_or(|holder| holder.exec_epoch <= lock.holder.exec_epoch) {
                    s.locks.held.insert(lock.task, (lock.holder, now + lock.ttl_ms * 1_000));
                }
            }
            lost
        })
    }

    fn release(
        &self,
        locks: Vec<(TaskId, Holder)>,
    ) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static {
        self.call(move |s| {
            for (task, holder) in locks {
                if s.locks.held.get(&task).is_some_and(|(h, _)| *h == holder) {
                    s.locks.held.remove(&task);
                }
            }
        })
    }

    fn server(&self) -> impl Future<Output = Result<ServerState, LockUnavailable>> + Send + 'static {
        self.call(|s| {
            let sentinel = std::mem::replace(&mut s.locks.sentinel, true);
            ServerState { run_id: s.locks.run.to_string(), sentinel }
        })
    }
}
