//! A store in a keyspace of its own, and what a test asks the node itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::deserialize::row::DeserializeRow;
use snapshot_store::conformance::node::CassandraNode;
use snapshot_store::conformance::{Durable, Harness, NOW_MS};
use snapshot_store::{CassandraConfig, CassandraStore, migrate};

/// The harness of the suites.
pub struct Cassandra {
    pub store: CassandraStore,
    pub config: CassandraConfig,
    now_ms: Arc<AtomicI64>,
}

impl Cassandra {
    /// In a keyspace of this node.
    pub async fn on(node: &CassandraNode) -> Self {
        let now_ms = Arc::new(AtomicI64::new(NOW_MS));
        let clock = now_ms.clone();
        let config = node.config(move || clock.load(Ordering::Relaxed));
        migrate(&config).await.expect("migrated");
        let store = CassandraStore::connect(config.clone()).await.expect("connected");
        Self { store, config, now_ms }
    }
}

impl Harness for Cassandra {
    type Store = CassandraStore;

    async fn start() -> Self {
        let node = tokio::task::spawn_blocking(CassandraNode::shared).await.expect("a node");
        Self::on(node).await
    }

    fn store(&self) -> CassandraStore {
        self.store.clone()
    }

    fn set_clock(&self, unix_ms: i64) {
        self.now_ms.store(unix_ms, Ordering::Relaxed);
    }
}

impl Durable for Cassandra {
    async fn reopen(self) -> Self {
        let Self { store, config, now_ms } = self;
        drop(store);
        let store = CassandraStore::connect(config.clone()).await.expect("connected anew");
        Self { store, config, now_ms }
    }
}

/// A session of the test's own, with the keyspace in use.
pub async fn raw(config: &CassandraConfig) -> Session {
    let session = SessionBuilder::new().known_nodes(&config.contact_points).build().await.expect("a session");
    session.use_keyspace(&config.keyspace, false).await.expect("the keyspace is there");
    session
}

/// The rows of a query.
pub async fn ask<R>(session: &Session, query: &str) -> Vec<R>
where
    R: for<'frame, 'metadata> DeserializeRow<'frame, 'metadata>,
{
    let found = session.query_unpaged(query, ()).await.unwrap_or_else(|why| panic!("{query}: {why}"));
    let found = found.into_rows_result().expect("rows");
    found.rows::<R>().expect("of this kind").map(|row| row.expect("a row")).collect()
}

/// Waits, but not for ever.
#[expect(clippy::disallowed_methods, reason = "a real node takes real time")]
pub async fn within<T>(what: &str, limit: Duration, done: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, done).await.unwrap_or_else(|_| panic!("{what}: not within {limit:?}"))
}
