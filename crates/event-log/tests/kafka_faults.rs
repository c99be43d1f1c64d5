//! The Kafka adapter when the broker is frozen, the network cuts, or a member's process stops.
//! A broker of its own: what is done to it here must not disturb the conformance suite.
#![cfg(feature = "kafka")]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "child processes get their part by the environment and answer on stdout"
)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use event_log::conformance::broker::Broker;
use event_log::conformance::groups::Holder;
use event_log::conformance::{append_texts, read, read_on, record, texts, within};
use event_log::fault_proxy::Fault;
use event_log::{
    AppendOutcome, EventLog, GroupMember, KafkaConfig, KafkaLog, LogError, MemberSpec, MembershipEvent, Tail, TopicSpec,
};
use rustix::process::{Pid, Signal, kill_process};
use task_events::{Offset, PartitionId};
use tokio::sync::{Mutex, MutexGuard};

const P: PartitionId = PartitionId(0);

/// One test at a time has the broker and its proxy.
async fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::const_new(());
    ONE.lock().await
}

async fn open(config: &KafkaConfig) -> KafkaLog {
    KafkaLog::open(config.clone(), &TopicSpec::single_node()).await.expect("log")
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("pid")).expect("pid");
    kill_process(pid, signal).expect("signal");
}

/// Appends until it is acknowledged; returns how many records may be in the log for it.
async fn append_again(log: &KafkaLog, text: &str) -> usize {
    for tries in 1.. {
        if within("an answer", log.append(P, vec![record(text)])).await == AppendOutcome::Acknowledged {
            return tries;
        }
    }
    unreachable!("acknowledged at last")
}

/// Asks for the end until the client has found its broker again; anything but "away" fails.
async fn end_again(log: &KafkaLog) -> Offset {
    let asking = async {
        loop {
            match log.range(P).await {
                Ok(range) => return range.end,
                Err(LogError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(other) => panic!("{other}"),
            }
        }
    };
    within("the end of the partition", asking).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_broker_makes_appends_unknown_and_readers_go_on_afterwards() {
    let _alone = alone().await;
    let broker = Broker::shared();
    let mut config = broker.topic(2).await;
    config.delivery_timeout = Duration::from_secs(2);
    config.request_timeout = Duration::from_secs(5);
    let log = open(&config).await;
    append_texts(&log, P, 0..10).await;
    let mut tail = log.tail(P, Offset(0)).await.expect("tail");
    read_on(&mut tail, Offset(0), 10).await;

    signal(broker.pid, Signal::STOP);
    let waits: Vec<_> = (0..20).map(|i| log.append(P, vec![record(format!("frozen{i}"))])).collect();
    let mut unknown = 0;
    for wait in waits {
        match within("an answer", wait).await {
            AppendOutcome::Unknown(_) => unknown += 1,
            other @ (AppendOutcome::Acknowledged | AppendOutcome::NotSent(_)) => panic!("{other:?} of a frozen broker"),
        }
    }
    let range = log.range(P).await;
    signal(broker.pid, Signal::CONT);
    assert_eq!(unknown, 20);
    assert!(matches!(range, Err(LogError::Unavailable(_))), "{range:?}");

    append_again(&log, "claim").await;
    // Whatever of it arrived did so at most once; the claim is there; the tail sees no gap.
    let end = end_again(&log).await;
    let found = texts(&read_on(&mut tail, Offset(10), (end.0 - 10) as usize).await);
    for i in 0..20 {
        assert!(found.iter().filter(|text| **text == format!("frozen{i}")).count() <= 1, "{found:?}");
    }
    assert!(found.iter().any(|text| text == "claim"), "{found:?}");
    assert!(log.close(Duration::from_secs(10)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_cost_readers_nothing() {
    let _alone = alone().await;
    let broker = Broker::shared();
    let mut config = broker.topic(2).await;
    config.compression = "none".into();
    append_big(&open(&config).await).await;
    config.bootstrap = broker.proxied_bootstrap();
    let log = open(&config).await;
    let mut tail = log.tail(P, Offset(0)).await.expect("tail");
    let (mut next, mut cuts) = (0, 0);
    let mut swallowed = broker.proxy.swallowed();
    // In the middle of a response, again and again.
    broker.proxy.set(Fault::CutResponsesAfter(300_000));
    while next < 400 {
        for record in within("records", tail.next()).await.expect("records") {
            assert_eq!(record.offset, Offset(next));
            assert_eq!(record.value.as_ref().map(bytes::Bytes::len), Some(10_000));
            next += 1;
        }
        if broker.proxy.swallowed() > swallowed {
            swallowed = broker.proxy.swallowed();
            cuts += 1;
            broker.proxy.set(Fault::CutResponsesAfter(300_000));
        }
    }
    broker.proxy.set(Fault::None);
    assert!(cuts >= 2, "responses were cut {cuts} times only");
}

async fn append_big(log: &KafkaLog) {
    for _ in 0..8 {
        let batch = (0..50).map(|i| record(format!("{i:0>10000}"))).collect();
        assert_eq!(within("an acknowledgement", log.append(P, batch)).await, AppendOutcome::Acknowledged);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_may_be_on_its_way_is_not_sent_and_room_comes_back() {
    let _alone = alone().await;
    let broker = Broker::shared();
    let mut config = broker.topic(2).await;
    config.bootstrap = broker.proxied_bootstrap();
    config.max_in_flight = 10;
    config.delivery_timeout = Duration::from_secs(2);
    let log = open(&config).await;
    append_texts(&log, P, 0..1).await;
    broker.proxy.set(Fault::Blackhole);
    let waits: Vec<_> = (0..10).map(|i| log.append(P, vec![record(format!("b{i}"))])).collect();
    // Answered at once, without waiting for anything to time out.
    let refused = futures_now(log.append(P, vec![record("one too many")]));
    assert!(
        matches!(&refused, Some(AppendOutcome::NotSent(reason)) if reason.contains("the limit is 10")),
        "{refused:?}"
    );
    for wait in waits {
        assert!(matches!(within("an answer", wait).await, AppendOutcome::Unknown(_)));
    }
    broker.proxy.set(Fault::None);
    append_again(&log, "after").await;
    let other = open(&KafkaConfig { bootstrap: broker.bootstrap.clone(), ..config }).await;
    let end = other.range(P).await.expect("range").end;
    let found = texts(&read(&other, P, Offset(0), end.0 as usize).await);
    assert!(!found.iter().any(|text| text == "one too many"), "{found:?}");
    assert_eq!(found.last().map(String::as_str), Some("after"));
}

/// What a future says when it is asked once.
fn futures_now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

/// Not a test of its own: a member in another process, which says what happens to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(part) = std::env::var("EVENT_LOG_MEMBER") else { return };
    let (bootstrap, topic) = part.split_once(' ').expect("bootstrap and topic");
    let mut config = KafkaConfig::new(bootstrap, topic, 4);
    config.session_timeout = Duration::from_secs(2);
    let log = open(&config).await;
    let spec = MemberSpec { group: "zombies".into(), client_id: "svc|zombie|rules=1-1|-".into() };
    let mut member = log.join(spec).await.expect("member");
    while let Ok(event) = member.next().await {
        match event {
            MembershipEvent::Assigned(partitions) => println!("assigned {}", partitions.len()),
            MembershipEvent::Lost(partitions) => println!("lost {}", partitions.len()),
            MembershipEvent::Revoked { partitions, .. } => {
                println!("revoked {}", partitions.len());
                partitions.into_iter().for_each(|partition| member.release(partition, Offset(0)));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_process_loses_its_partitions_and_is_told_when_it_goes_on() {
    let _alone = alone().await;
    let config = Broker::shared().topic(4).await;
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .args(["child", "--exact", "--nocapture"])
        .env("EVENT_LOG_MEMBER", format!("{} {}", config.bootstrap, config.topic))
        .stdout(Stdio::piped())
        .spawn()
        .expect("child");
    let (say, mut said) = tokio::sync::mpsc::unbounded_channel();
    let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let listener = std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| say.send(line)));
    let mut heard = Vec::new();
    let mut wait_for = async |wanted: &str| {
        within(wanted, async {
            while !heard.iter().any(|line: &String| line.contains(wanted)) {
                heard.extend(said.recv().await);
            }
        })
        .await;
    };
    wait_for("assigned 4").await;
    signal(child.id(), Signal::STOP);
    let mut b = Holder::join(&open(&config).await, "zombies", "svc|b|rules=1-1|-").await;
    b.until(4).await;
    signal(child.id(), Signal::CONT);
    wait_for("lost 4").await;
    child.kill().expect("kill");
    child.wait().expect("end");
    listener.join().expect("listener").ok();
    b.member.leave(Duration::from_secs(10)).await;
}
