//! What a lock server does when it fails, and what the adapter says and does then.

use std::time::Duration;

use assignment_lock::conformance::server::RedisServer;
use assignment_lock::conformance::{TTL_MS, holder, task};
use assignment_lock::{AssignmentLock as _, Lock, LockUnavailable, RedisConfig, RedisLock, Taken};
use event_log::fault_proxy::{Fault, FaultProxy};

fn lock(n: u16, worker: &str, epoch: u32) -> Lock {
    Lock { task: task(n), holder: holder(worker, epoch), ttl_ms: TTL_MS }
}

fn connect(config: &RedisConfig) -> RedisLock {
    RedisLock::connect(config).expect("settings")
}

// Asks until the server is back; the test runner's patience is the limit.
async fn until_back(locks: &RedisLock) -> assignment_lock::ServerState {
    loop {
        match locks.server().await {
            Ok(state) => return state,
            Err(why) => assert!(why.is_server(), "{why}"),
        }
    }
}

#[tokio::test]
async fn everybody_hears_of_a_server_that_forgot_everything() {
    let server = RedisServer::start(&[]);
    let config = server.config();
    let (a, b) = (connect(&config), connect(&config));
    let before = (a.server().await.expect("answered"), b.server().await.expect("answered"));
    assert_eq!(before.0.run_id, before.1.run_id);
    a.take(vec![lock(1, "w1", 1)]).await.expect("taken");
    server.run::<()>("FLUSHALL");
    let first = a.server().await.expect("answered");
    assert!(!first.sentinel, "the sentinel was gone");
    // The first one has set the sentinel again by now.
    let second = b.server().await.expect("answered");
    assert_ne!(second.run_id, before.1.run_id);
    assert_eq!(a.renew(vec![lock(1, "w1", 1)]).await.expect("renewed"), 1, "told that it was lost");
    assert_eq!(a.renew(vec![lock(1, "w1", 1)]).await.expect("renewed"), 0);
}

#[tokio::test]
async fn scripts_are_told_again_to_a_server_that_flushed_them() {
    let server = RedisServer::start(&[]);
    let config = server.config();
    let locks = connect(&config);
    let three = || (1..=3).map(|n| lock(n, "w1", 1)).collect::<Vec<_>>();
    assert_eq!(locks.renew(three()).await.expect("a server that never saw the script"), 3);
    server.run::<()>("SCRIPT FLUSH");
    assert_eq!(locks.renew(three()).await.expect("renewed"), 0);
    server.run::<()>("SCRIPT FLUSH");
    locks.release(three().into_iter().map(|lock| (lock.task, lock.holder)).collect()).await.expect("released");
    assert_eq!(server.run::<u64>("EXISTS p0:task:1:assignee"), 0);
    assert_eq!(locks.renew(three()).await.expect("renewed"), 3, "all were released");
}

#[tokio::test]
async fn a_server_that_was_killed_is_away_and_another_one_when_it_is_back() {
    let mut server = RedisServer::start(&[]);
    let locks = connect(&server.config());
    let before = locks.server().await.expect("answered");
    locks.take(vec![lock(1, "w1", 1)]).await.expect("taken");
    server.kill();
    let why = locks.take(vec![lock(2, "w1", 1)]).await.expect_err("nobody is there");
    assert!(matches!(&why, LockUnavailable::Away(text) if text.contains(&server.address())), "{why}");
    assert!(locks.renew(vec![lock(1, "w1", 1)]).await.is_err());
    server.restart();
    let after = until_back(&locks).await;
    assert!(!after.sentinel && after.run_id != before.run_id, "{after:?}");
    assert_eq!(locks.renew(vec![lock(1, "w1", 1)]).await.expect("renewed"), 1);
}

// Nobody asked anything while it was away, so nobody need hear of a failure.
#[tokio::test]
async fn a_restart_between_two_requests_costs_no_request() {
    let mut server = RedisServer::start(&[]);
    let locks = connect(&server.config());
    locks.take(vec![lock(1, "w1", 1)]).await.expect("taken");
    server.kill();
    server.restart();
    assert_eq!(locks.take(vec![lock(1, "w2", 2)]).await, Ok(vec![Taken::Yes]));
}

#[tokio::test]
async fn a_server_that_answers_nothing_leaves_the_outcome_unknown() {
    let server = RedisServer::start(&[]);
    let mut config = server.config();
    config.response_timeout = Duration::from_millis(100);
    let locks = connect(&config);
    locks.server().await.expect("answered");
    server.run::<()>("CLIENT PAUSE 600000 WRITE");
    let why = locks.take(vec![lock(1, "w1", 1)]).await.expect_err("writes wait");
    assert!(
        matches!(&why, LockUnavailable::Away(text) if text.contains("100 ms") && text.contains("unknown")),
        "{why}"
    );
    let why = locks.renew(vec![lock(1, "w1", 1)]).await.expect_err("writes wait");
    assert!(why.is_server(), "{why}");
    server.run::<()>("CLIENT UNPAUSE");
    until_back(&locks).await;
    // Whether the first request came through in the end or not, the lock is this attempt's.
    assert_eq!(locks.take(vec![lock(1, "w1", 1)]).await, Ok(vec![Taken::Yes]));
}

fn proxied(server: &RedisServer) -> (FaultProxy, RedisConfig) {
    let proxy = FaultProxy::start().expect("a port");
    proxy.forward_to(server.address().parse().expect("an address"));
    let mut config = server.config();
    config.url = format!("redis://127.0.0.1:{}", proxy.port());
    (proxy, config)
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again() {
    let server = RedisServer::start(&[]);
    let (proxy, config) = proxied(&server);
    let locks = connect(&config);
    locks.server().await.expect("answered");
    proxy.set(Fault::DropResponses);
    let taking = tokio::spawn(locks.take(vec![lock(1, "w1", 1)]));
    let key = format!("{}task:{}:assignee", config.key_prefix, task(1));
    while server.run::<Option<String>>(&format!("GET {key}")).is_none() {
        tokio::task::yield_now().await;
    }
    // The lock is set and its answer swallowed; from here on the network is well.
    while proxy.swallowed() == 0 {
        tokio::task::yield_now().await;
    }
    proxy.set(Fault::None);
    assert_eq!(taking.await.expect("no panic"), Ok(vec![Taken::Yes]), "it was looked at again, and is ours");
}

#[tokio::test]
async fn a_network_that_swallows_everything_is_left_for_a_new_connection() {
    let server = RedisServer::start(&[]);
    let (proxy, mut config) = proxied(&server);
    config.response_timeout = Duration::from_millis(100);
    config.connect_timeout = Duration::from_millis(200);
    let locks = connect(&config);
    locks.take(vec![lock(1, "w1", 1)]).await.expect("taken");
    proxy.set(Fault::DropResponses);
    let why = locks.take(vec![lock(1, "w2", 2), lock(2, "w2", 1)]).await.expect_err("no answer");
    assert!(matches!(&why, LockUnavailable::Away(text) if text.contains("2 locks")), "{why}");
    assert!(proxy.swallowed() > 0, "the fault was never met");
    proxy.set(Fault::None);
    until_back(&locks).await;
    let again = locks.take(vec![lock(1, "w2", 2), lock(2, "w2", 1)]).await.expect("answered");
    assert!(matches!(again[..], [Taken::Yes | Taken::Replaced, Taken::Yes]), "{again:?}");
}

#[tokio::test]
async fn thousands_of_locks_are_one_request() {
    let locks = connect(&RedisServer::shared().config());
    let many = || (0..3_000).map(|n| lock(n, "w1", 1)).collect::<Vec<_>>();
    assert_eq!(locks.take(many()).await.expect("taken"), vec![Taken::Yes; 3_000]);
    assert_eq!(locks.renew(many()).await.expect("renewed"), 0);
    locks.release(many().into_iter().map(|lock| (lock.task, lock.holder)).collect()).await.expect("released");
    assert_eq!(locks.renew(many()).await.expect("renewed"), 3_000, "all were released");
}
