//! Servers that answer, and will not: each refusal says what to do, and none of them is a panic.

use assignment_lock::conformance::server::RedisServer;
use assignment_lock::conformance::{TTL_MS, holder, task};
use assignment_lock::{AssignmentLock as _, Board as _, Entry, Lock, LockUnavailable, RedisLock, Taken};

fn lock(n: u16) -> Lock {
    Lock { task: task(n), holder: holder("w1", 1), ttl_ms: TTL_MS }
}

fn refused(why: &LockUnavailable, parts: &[&str]) {
    let LockUnavailable::Refused(text) = why else { panic!("{why:?}") };
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in {text:?}"));
}

#[tokio::test]
async fn a_full_server_says_which_setting_to_raise() {
    let server = RedisServer::start(&[]);
    let locks = RedisLock::connect(&server.config()).expect("settings");
    locks.take(vec![lock(1)]).await.expect("taken");
    server.run::<()>("CONFIG SET maxmemory 1");
    refused(&locks.take(vec![lock(2)]).await.expect_err("full"), &["OOM", "maxmemory", "noeviction"]);
    refused(&locks.renew(vec![lock(1), lock(2)]).await.expect_err("full"), &["OOM", "maxmemory"]);
    assert_eq!(locks.renew(vec![lock(1)]).await, Ok(0), "what needs no more memory is done");
    refused(&locks.server().await.expect_err("full"), &["OOM"]);
    locks.release(vec![(task(1), holder("w1", 1))]).await.expect("what gives memory back is done");
    server.run::<()>("CONFIG SET maxmemory 0");
    locks.server().await.expect("answered");
    assert_eq!(locks.take(vec![lock(2)]).await, Ok(vec![Taken::Yes]));
}

#[tokio::test]
async fn a_replica_says_where_to_point_the_address() {
    let server = RedisServer::start(&[]);
    let locks = RedisLock::connect(&server.config()).expect("settings");
    let before = locks.server().await.expect("answered");
    locks.take(vec![lock(1)]).await.expect("taken");
    // Of a primary that is not there; what was held stays readable.
    server.run::<()>("REPLICAOF 127.0.0.1 1");
    refused(&locks.take(vec![lock(2)]).await.expect_err("read-only"), &["READONLY", "primary"]);
    refused(&locks.renew(vec![lock(1)]).await.expect_err("read-only"), &["READONLY"]);
    refused(&locks.release(vec![(task(1), holder("w1", 1))]).await.expect_err("read-only"), &["READONLY"]);
    refused(&locks.server().await.expect_err("read-only"), &["READONLY"]);
    server.run::<()>("REPLICAOF NO ONE");
    let after = locks.server().await.expect("answered");
    assert_eq!(after, assignment_lock::ServerState { run_id: before.run_id, sentinel: true }, "nothing was lost");
    assert_eq!(locks.take(vec![lock(1)]).await, Ok(vec![Taken::Yes]));
}

#[tokio::test]
async fn what_nobody_can_read_is_left_out_of_the_board() {
    let server = RedisServer::shared();
    let config = server.config();
    let board = RedisLock::connect(&config).expect("settings");
    let entry = |instance: &str| {
        let (owns, ready) = Default::default();
        Entry { instance: instance.into(), url: "http://h".into(), owns, ready }
    };
    for instance in ["a", "b", "c"] {
        board.put_up(entry(instance), TTL_MS).await.expect("put up");
    }
    server.run::<()>(&format!("SET {}task:board:b from-another-release", config.key_prefix));
    assert_eq!(board.entries().await, Ok(vec![entry("a"), entry("c")]));
    server.run::<u64>(&format!("DEL {}task:board", config.key_prefix));
    server.run::<()>(&format!("SET {}task:board text", config.key_prefix));
    assert!(matches!(board.entries().await, Err(LockUnavailable::Key(text)) if text.contains("task:board")));
    assert!(matches!(board.put_up(entry("a"), TTL_MS).await, Err(LockUnavailable::Key(_))));
}

#[tokio::test]
async fn a_key_of_another_type_is_named_and_stops_no_other_lock() {
    let server = RedisServer::shared();
    let config = server.config();
    let locks = RedisLock::connect(&config).expect("settings");
    let key = format!("{}task:{}:assignee", config.key_prefix, task(1));
    server.run::<u64>(&format!("LPUSH {key} x"));
    let named = |why: LockUnavailable| {
        assert!(!why.is_server(), "{why:?} is no reason to start leases anew");
        let LockUnavailable::Key(text) = why else { panic!("{why:?}") };
        assert!(text.contains(&format!("DEL {key}")), "{text}");
    };
    named(locks.take(vec![lock(1), lock(2)]).await.expect_err("a list"));
    named(locks.renew(vec![lock(1), lock(2)]).await.expect_err("a list"));
    named(locks.release(vec![(task(1), holder("w1", 1))]).await.expect_err("a list"));
    locks.server().await.expect("the server is well");
    assert_eq!(super::conformance::holder(&config, task(2)), Some(holder("w1", 1)));
    server.run::<u64>(&format!("DEL {key}"));
    assert_eq!(locks.take(vec![lock(1)]).await, Ok(vec![Taken::Yes]));
}
