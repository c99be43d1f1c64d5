//! Injected faults and frozen members of the embedded log.

use std::time::Duration;

use event_log::conformance::groups::Holder;
use event_log::conformance::{append_texts, poll_once, read, record, texts, within};
use event_log::{
    AppendFault, AppendOutcome, EmbeddedConfig, EmbeddedLog, EventLog, GroupMember, LogError, MemberSpec,
    MembershipEvent, Tail,
};
use task_events::{Offset, PartitionId};

const P: PartitionId = PartitionId(0);

fn open() -> (EmbeddedLog, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("dir");
    let mut config = EmbeddedConfig::new(dir.path(), 4);
    config.session_timeout = Duration::from_secs(1);
    config.revoke_deadline = Duration::from_millis(300);
    (EmbeddedLog::open(config).expect("log"), dir)
}

#[tokio::test]
async fn each_append_fault_does_what_it_says() {
    let (log, _dir) = open();
    let faults = log.faults();
    faults.next_append(Some(P), AppendFault::NotSent);
    faults.next_append(Some(P), AppendFault::UnknownNotWritten);
    faults.next_append(Some(P), AppendFault::UnknownWrittenLater);
    faults.next_append(Some(P), AppendFault::UnknownWritten);
    let other = log.append(PartitionId(1), vec![record("other")]).await;
    assert_eq!(other, AppendOutcome::Acknowledged, "another partition's faults");
    assert!(matches!(log.append(P, vec![record("a")]).await, AppendOutcome::NotSent(_)));
    for text in ["b", "c", "d"] {
        assert!(matches!(log.append(P, vec![record(text)]).await, AppendOutcome::Unknown(_)));
    }
    append_texts(&log, P, 0..1).await;
    assert_eq!(texts(&read(&log, P, Offset(0), 2).await), ["d", "r0"]);
    assert_eq!(faults.write_parked(), 1);
    assert_eq!(texts(&read(&log, P, Offset(0), 3).await), ["d", "r0", "c"]);
    assert_eq!(faults.write_parked(), 0);
}

#[tokio::test]
async fn an_acknowledgement_can_come_before_the_record_is_seen() {
    let (log, _dir) = open();
    let faults = log.faults();
    let mut tail = log.tail(P, Offset(0)).await.expect("tail");
    faults.hold_visibility(true);
    append_texts(&log, P, 0..3).await;
    assert!(poll_once(tail.next()).await.is_none(), "seen although held back");
    assert_eq!(log.range(P).await.expect("range").end, Offset(0));
    assert!(matches!(log.read_at(P, vec![Offset(0)]).await, Err(LogError::OutOfRange { .. })));
    faults.hold_visibility(false);
    assert_eq!(texts(&within("records", tail.next()).await.expect("records")), ["r0", "r1", "r2"]);
    faults.delay_visibility(Duration::from_millis(20));
    append_texts(&log, P, 3..4).await;
    assert_eq!(texts(&within("records", tail.next()).await.expect("records")), ["r3"]);
    faults.delay_visibility(Duration::ZERO);
    append_texts(&log, P, 4..5).await;
    assert_eq!(texts(&within("records", tail.next()).await.expect("records")), ["r4"]);
}

#[tokio::test]
async fn revocation_and_loss_can_be_forced() {
    let (log, _dir) = open();
    let mut a = Holder::join(&log, "g", "a").await;
    a.until(4).await;
    assert_eq!(log.faults().revoke("g", "a", &[PartitionId(1), PartitionId(9)]), 1);
    let revoked = within("a revocation", a.member.next()).await.expect("event");
    assert!(matches!(&revoked, MembershipEvent::Revoked { partitions, .. } if *partitions == [PartitionId(1)]));
    a.member.release(PartitionId(1), Offset(7));
    let back = within("an assignment", a.member.next()).await.expect("event");
    assert_eq!(back, MembershipEvent::Assigned(vec![PartitionId(1)]), "nobody else is there");
    assert_eq!(log.applied("g", PartitionId(1)), Some(Offset(7)));
    assert_eq!(log.faults().expel("g", "a"), 1);
    let lost = within("the loss", a.member.next()).await.expect("event");
    assert!(matches!(&lost, MembershipEvent::Lost(partitions) if partitions.len() == 4));
    assert_eq!(within("the end", a.member.next()).await, Err(LogError::NotMember("g".into())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_on_a_frozen_runtime_is_dropped_and_told_when_it_thaws() {
    let (log, _dir) = open();
    let (thaw, frozen) = std::sync::mpsc::channel::<()>();
    let (joined, wait_joined) = tokio::sync::oneshot::channel();
    let theirs = log.clone();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        runtime.block_on(async {
            let mut member =
                theirs.join(MemberSpec { group: "g".into(), client_id: "frozen".into() }).await.expect("member");
            let first = member.next().await.expect("event");
            assert!(matches!(&first, MembershipEvent::Assigned(partitions) if partitions.len() == 4));
            joined.send(()).expect("test");
            // Blocks the only thread of the runtime: no heartbeat gets through.
            frozen.recv().expect("thaw");
            let mut events = Vec::new();
            loop {
                match member.next().await {
                    Ok(event) => events.push(event),
                    Err(error) => return (events, error),
                }
            }
        })
    });
    wait_joined.await.expect("joined");
    let mut b = Holder::join(&log, "g", "b").await;
    b.until(4).await;
    thaw.send(()).expect("thread");
    let (events, error) = thread.join().expect("thread");
    assert_eq!(error, LogError::NotMember("g".into()));
    let lost: usize = events.iter().map(|e| if let MembershipEvent::Lost(p) = e { p.len() } else { 0 }).sum();
    assert_eq!(lost, 4, "{events:?}");
}

#[tokio::test]
async fn a_failed_log_refuses_appends_and_goes_on_reading() {
    let (log, dir) = open();
    append_texts(&log, P, 0..3).await;
    // A directory where the next segment should be: rolling can't go on.
    drop(log);
    let mut config = EmbeddedConfig::new(dir.path(), 4);
    config.segment_bytes = 4096;
    let log = EmbeddedLog::open(config.clone()).expect("log");
    std::fs::create_dir(dir.path().join("segments/00000000000000000002.seg")).expect("directory");
    let big = vec![record("x".repeat(4000))];
    assert!(matches!(log.append(P, big.clone()).await, AppendOutcome::Unknown(_)));
    let AppendOutcome::NotSent(reason) = log.append(P, big).await else { panic!("not refused") };
    assert!(reason.contains("must be reopened"), "{reason}");
    assert_eq!(log.failure(), Some(reason));
    assert_eq!(texts(&read(&log, P, Offset(0), 3).await), ["r0", "r1", "r2"]);
    drop(log);
    std::fs::remove_dir(dir.path().join("segments/00000000000000000002.seg")).expect("remove");
    let log = EmbeddedLog::open(config).expect("log");
    append_texts(&log, P, 3..4).await;
    assert_eq!(read(&log, P, Offset(0), 4).await.len(), 4);
}
