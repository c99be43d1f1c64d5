//! The volatile adapter passes the conformance suite, and does not keep what has expired.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assignment_lock::conformance::board::BoardHarness;
use assignment_lock::conformance::{Harness, TTL_MS, holder, task};
use assignment_lock::{AssignmentLock as _, Holder, Lock, MemoryLock};
use task_events::TaskId;

struct Memory {
    locks: MemoryLock,
    now_ms: Arc<AtomicU64>,
}

impl Harness for Memory {
    type Locks = MemoryLock;

    async fn start() -> Self {
        let now_ms = Arc::new(AtomicU64::new(1_000));
        let clock = now_ms.clone();
        Self { locks: MemoryLock::new(move || clock.load(Ordering::Relaxed)), now_ms }
    }

    fn locks(&self) -> MemoryLock {
        self.locks.clone()
    }

    async fn pass(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    async fn holder(&self, task: TaskId) -> Option<Holder> {
        self.locks.holder(task)
    }
}

assignment_lock::conformance_suite!(Memory);

impl BoardHarness for Memory {
    type Board = MemoryLock;

    async fn start() -> Self {
        <Self as Harness>::start().await
    }

    fn board(&self) -> MemoryLock {
        self.locks.clone()
    }

    async fn pass(&self, ms: u64) {
        Harness::pass(self, ms).await;
    }
}

assignment_lock::board_suite!(Memory);

#[tokio::test]
async fn what_expired_is_not_kept() {
    let memory = <Memory as Harness>::start().await;
    for round in 0..50 {
        let locks = (0..1_000)
            .map(|n| Lock { task: task(n), holder: holder("w1", round), ttl_ms: TTL_MS })
            .map(|lock| Lock { task: TaskId::from_raw(lock.task.raw() + i64::from(round)).expect("an id"), ..lock });
        memory.locks.take(locks.collect()).await.expect("taken");
        Harness::pass(&memory, TTL_MS).await;
    }
    assert!(memory.locks.len() <= 4_000, "{} locks of 1,000 live ones are kept", memory.locks.len());
}
