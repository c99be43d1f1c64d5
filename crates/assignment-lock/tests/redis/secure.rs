//! TLS with certificates on both sides, passwords, and the least a user must be allowed.

use assignment_lock::conformance::server::RedisServer;
use assignment_lock::conformance::{TTL_MS, holder, task};
use assignment_lock::{
    AssignmentLock as _, Board as _, Entry, Lock, LockUnavailable, RedisClient, RedisConfig, RedisLock, Taken,
};
use secrecy::SecretString;

/// As docs/guide/operations.md has it.
const LEAST: &str = include_str!("../../../../docs/guide/redis-user.acl");

fn lock(n: u16) -> Lock {
    Lock { task: task(n), holder: holder("w1", 1), ttl_ms: TTL_MS }
}

fn read(path: String) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"))
}

fn secure(server: &RedisServer) -> RedisConfig {
    let mut config = RedisConfig::new(server.field("secure_url"));
    config.user = Some(server.field("user"));
    config.password = Some(SecretString::from(read(server.field("password_file"))));
    config.ca_pem = Some(read(server.field("ca")).into_bytes());
    let key_pem = SecretString::from(read(server.field("key")));
    config.client = Some(RedisClient { cert_pem: read(server.field("certificate")).into_bytes(), key_pem });
    config
}

async fn error(config: &RedisConfig) -> LockUnavailable {
    let locks = RedisLock::connect(config).expect("settings");
    locks.take(vec![lock(1)]).await.expect_err("not let in")
}

#[tokio::test]
async fn certificates_and_passwords_are_checked_on_both_sides() {
    let server = RedisServer::start(&["--secure"]);
    let good = secure(&server);
    let locks = RedisLock::connect(&good).expect("settings");
    assert_eq!(locks.take(vec![lock(1)]).await, Ok(vec![Taken::Yes]));

    let wrong = RedisConfig { password: Some(SecretString::from("wrong".to_owned())), ..good.clone() };
    let why = error(&wrong).await;
    assert!(matches!(&why, LockUnavailable::Refused(text) if text.contains("user and password")), "{why}");
    let nobody = RedisConfig { user: None, password: None, ..good.clone() };
    let why = error(&nobody).await;
    assert!(matches!(&why, LockUnavailable::Refused(text) if text.contains("password")), "{why}");
    assert!(error(&RedisConfig { client: None, ..good.clone() }).await.is_server(), "no certificate of ours");
    // Those of the machine do not vouch for this server.
    let why = error(&RedisConfig { ca_pem: None, ..good.clone() }).await;
    assert!(why.is_server() && why.to_string().to_lowercase().contains("certificate"), "{why}");
    let debug = format!("{good:?}");
    assert!(!debug.contains(&read(server.field("password_file"))) && !debug.contains("BEGIN"), "{debug}");
}

#[tokio::test]
async fn the_documented_rights_are_enough_and_needed() {
    let server = RedisServer::start(&[]);
    let rules = LEAST.lines().find(|line| line.starts_with("user ")).expect("a rule");
    let rules = rules.trim_start_matches("user dualtrack ").replace("PASSWORD", "pw");
    server.run::<()>(&format!("ACL SETUSER dualtrack {rules}"));
    let mut config = RedisConfig::new(server.field("url"));
    (config.user, config.password) = (Some("dualtrack".to_owned()), Some(SecretString::from("pw".to_owned())));
    let locks = RedisLock::connect(&config).expect("settings");
    locks.server().await.expect("allowed");
    locks.take(vec![lock(1)]).await.expect("allowed");
    locks.renew(vec![lock(1)]).await.expect("allowed");
    locks.release(vec![(task(1), holder("w1", 1))]).await.expect("allowed");

    let (owns, ready) = Default::default();
    let entry = Entry { instance: "c-1".into(), url: "http://h".into(), owns, ready };
    locks.put_up(entry.clone(), TTL_MS).await.expect("allowed");
    assert_eq!(locks.entries().await, Ok(vec![entry]));
    locks.take_down("c-1".into()).await.expect("allowed");

    server.run::<()>("ACL SETUSER dualtrack -evalsha");
    let why = locks.renew(vec![lock(1)]).await.expect_err("not allowed");
    assert!(matches!(&why, LockUnavailable::Refused(text) if text.contains("NOPERM")), "{why}");
}
