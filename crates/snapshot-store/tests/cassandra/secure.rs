//! A node that speaks TLS only and asks for a password.

use secrecy::SecretString;
use snapshot_store::conformance::node::CassandraNode;
use snapshot_store::conformance::{NOW_MS, PARTITION, full_row, read, snapshot_write, task, write};
use snapshot_store::{CassandraClient, CassandraConfig, CassandraStore, CassandraTls, check, migrate};

fn with_tls(node: &CassandraNode) -> CassandraConfig {
    let file = |name: &str| std::fs::read(node.field(name)).expect("a file");
    let text = |name: &str| String::from_utf8(file(name)).expect("a text");
    let mut config = node.config(|| NOW_MS);
    config.tls = Some(CassandraTls {
        ca_pem: file("ca"),
        client: Some(CassandraClient { cert_pem: file("certificate"), key_pem: text("key").into() }),
    });
    config.user = Some(node.field("user"));
    config.password = Some(text("password_file").into());
    config
}

/// With certificate and password it is a store like any other; without one of both nobody gets in, and
/// nobody reads in the error what the password was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_and_a_password() {
    let node = tokio::task::spawn_blocking(|| CassandraNode::start(&["--secure"])).await.expect("a node");
    let config = with_tls(&node);
    migrate(&config).await.expect("migrated");
    let store = CassandraStore::connect(config.clone()).await.expect("connected");
    let row = full_row(task(PARTITION, 1));
    write(&store, vec![snapshot_write(1, row.clone())]).await;
    assert_eq!(read(&store, row.core.id).await, Some(row));

    let refused = async |change: &dyn Fn(&mut CassandraConfig)| {
        let mut config = config.clone();
        change(&mut config);
        check(&config).await.expect_err("refused").to_string()
    };
    let wrong = SecretString::from("obviously-fake");
    let why = refused(&|config| config.password = Some(wrong.clone())).await;
    assert!(why.contains("password") && !why.contains("obviously-fake"), "{why}");
    refused(&|config| (config.user, config.password) = (None, None)).await;
    refused(&|config| config.tls = None).await;
    // Signed by another authority: the client's own certificate is none.
    let stranger = config.tls.as_ref().and_then(|tls| tls.client.as_ref()).expect("there is one").cert_pem.clone();
    refused(&|config| config.tls = Some(CassandraTls { ca_pem: stranger.clone(), client: None })).await;
}
