//! The embedded adapter passes the conformance suite and the suite of durable stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use snapshot_store::conformance::{Durable, Harness, NOW_MS};
use snapshot_store::{Durability, EmbeddedConfig, EmbeddedStore};
use tempfile::TempDir;

struct Embedded {
    store: EmbeddedStore,
    now_ms: Arc<AtomicI64>,
    dir: TempDir,
}

fn open(dir: &TempDir, now_ms: &Arc<AtomicI64>) -> EmbeddedStore {
    let clock = now_ms.clone();
    let mut config = EmbeddedConfig::new(dir.path().join("store"), move || clock.load(Ordering::Relaxed));
    config.durability = Durability::Volatile;
    EmbeddedStore::open(config).expect("store")
}

impl Harness for Embedded {
    type Store = EmbeddedStore;

    async fn start() -> Self {
        let (dir, now_ms) = (tempfile::tempdir().expect("temporary directory"), Arc::new(AtomicI64::new(NOW_MS)));
        Self { store: open(&dir, &now_ms), now_ms, dir }
    }

    fn store(&self) -> EmbeddedStore {
        self.store.clone()
    }

    fn set_clock(&self, unix_ms: i64) {
        self.now_ms.store(unix_ms, Ordering::Relaxed);
    }
}

impl Durable for Embedded {
    async fn reopen(self) -> Self {
        let Self { store, now_ms, dir } = self;
        store.close();
        Self { store: open(&dir, &now_ms), now_ms, dir }
    }
}

snapshot_store::conformance_suite!(Embedded);
snapshot_store::durability_suite!(Embedded);
