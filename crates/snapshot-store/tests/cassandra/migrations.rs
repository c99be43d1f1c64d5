//! Making the tables, and what a keyspace without them says.

use std::time::Duration;

use snapshot_store::conformance::NOW_MS;
use snapshot_store::conformance::node::CassandraNode;
use snapshot_store::{CassandraStore, ConnectError, check, migrate};

use crate::kit::{ask, raw, within};

async fn node() -> &'static CassandraNode {
    tokio::task::spawn_blocking(CassandraNode::shared).await.expect("a node")
}

/// All of several get there; each migration was applied by one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_migrate_at_once() {
    let config = node().await.config(|| NOW_MS);
    let all = (0..4).map(|_| {
        let config = config.clone();
        tokio::spawn(async move { migrate(&config).await })
    });
    let all: Vec<_> = all.collect();
    let mut applied = Vec::new();
    for one in all {
        let schema = within("a migration", Duration::from_secs(120), one).await.expect("no panic").expect("migrated");
        assert_eq!(schema.version, schema.needed);
        applied.extend(schema.migrations);
    }
    assert_eq!(applied, [1], "once, by whoever was first");
    let schema = check(&config).await.expect("it is there");
    assert_eq!((schema.version, schema.migrations), (schema.needed, Vec::new()));
    let lock: Vec<(String,)> = ask(&raw(&config).await, "SELECT holder FROM schema_lock").await;
    assert_eq!(lock, [], "nobody holds it any more");
    CassandraStore::connect(config).await.expect("it can be used");
}

/// What is missing is named, with what to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keyspace_without_tables_says_so() {
    let mut config = node().await.config(|| NOW_MS);
    let why = CassandraStore::connect(config.clone()).await.err().expect("there is no keyspace");
    assert!(!why.is_retryable() && why.to_string().contains("dualtrack store migrate"), "{why}");
    migrate(&config).await.expect("migrated");
    let session = raw(&config).await;
    session.query_unpaged("DELETE FROM schema_migrations WHERE version = 1", ()).await.expect("deleted");
    let why = CassandraStore::connect(config.clone()).await.err().expect("a migration is missing").to_string();
    assert!(why.contains("schema version 0") && why.contains("needs 1"), "{why}");
    let schema = migrate(&config).await.expect("migrating again harms nothing");
    assert_eq!(schema.migrations, [1]);
    session.query_unpaged("UPDATE schema_migrations SET sha256 = 'x' WHERE version = 1", ()).await.expect("changed");
    let why = check(&config).await.expect_err("another text").to_string();
    assert!(why.contains("migration 1") && why.contains("another text"), "{why}");
    config.local_dc = "elsewhere".into();
    let why = check(&config).await.expect_err("no such data centre");
    assert!(matches!(why, ConnectError::Refused(_)) && why.to_string().contains("datacenter1"), "{why}");
}
