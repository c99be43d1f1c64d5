//! The volatile adapter passes the conformance suite.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use snapshot_store::MemoryStore;
use snapshot_store::conformance::{Harness, NOW_MS};

struct Memory {
    store: MemoryStore,
    now_ms: Arc<AtomicI64>,
}

impl Harness for Memory {
    type Store = MemoryStore;

    async fn start() -> Self {
        let now_ms = Arc::new(AtomicI64::new(NOW_MS));
        let clock = now_ms.clone();
        Self { store: MemoryStore::with_clock(Arc::new(move || clock.load(Ordering::Relaxed))), now_ms }
    }

    fn store(&self) -> MemoryStore {
        self.store.clone()
    }

    fn set_clock(&self, unix_ms: i64) {
        self.now_ms.store(unix_ms, Ordering::Relaxed);
    }
}

snapshot_store::conformance_suite!(Memory);
