//! Undecodable records between good ones (every reader quarantines the same ones and goes on), and
//! rules that nobody here knows (every reader stops and says what to do).

use assignment_lock::MemoryLock;
use bytes::Bytes;
use coordinator::owner::{Answer, CreateTask, Identity, OwnerConfig, OwnerRules, Ports};
use coordinator::service::Service;
use coordinator::surface::{Placement, Surface};
use event_log::{AppendOutcome, Durability, EmbeddedConfig, EmbeddedLog, EventLog, OutRecord, RawRecord, Tail as _};
use service_kit::{Clock as _, Metrics, Shutdown, SystemClock, SystemEntropy};
use snapshot_store::MemoryStore;
use task_core::decide::{Draft, NewTask, Stamp};
use task_core::{PartitionState, Record};
use task_events::{
    Body, HashForm, Incarnation, Offset, OwnerSeq, PartitionId, Producer, RuleVersion, RulesActivated,
    Service as ServiceName, Sha256Hash, TaskCreated, Timeouts, encode, owner_event_id,
};

const PARTITION: PartitionId = PartitionId(0);

fn junk(value: &[u8]) -> OutRecord {
    let crc = format!("{:08x}", crc32c::crc32c(value));
    let headers = vec![
        ("kind", Bytes::from_static(b"TaskCreated")),
        ("rule-version", Bytes::from_static(b"1")),
        ("crc32c", Bytes::from(crc)),
    ];
    OutRecord { key: Bytes::from_static(b"1"), headers, value: Bytes::copy_from_slice(value) }
}

fn framed(schema: u32, datum: &[u8]) -> OutRecord {
    junk(&[&[0], &schema.to_be_bytes()[..], datum].concat())
}

// What the field has seen, with good checksums, so that nothing but the content is wrong.
fn undecodable(good: &[u8]) -> Vec<OutRecord> {
    let datum = &good[5..];
    vec![
        junk(&[]),
        junk(&[0, 0, 0, 0, 0x2a, b'j', b'u', b'n', b'k']),
        framed(77, datum),
        framed(1, &datum[..datum.len() - 3]),
        framed(1, &[datum, &[0]].concat()),
        // The fixed event id and the kind, then a text of 2 GiB.
        framed(1, &[&datum[..17], &[0xfe, 0xff, 0xff, 0xff, 0x0f]].concat()),
        OutRecord { headers: Vec::new(), ..framed(1, datum) },
    ]
}

fn create(n: u8) -> CreateTask {
    let created = TaskCreated {
        task_type: "t".into(),
        queue: "q".into(),
        creator: "c".into(),
        priority: 4,
        deadline: None,
        not_before: None,
        payload_hash: Sha256Hash([n; 32]),
        hash_form: HashForm::PlainSha256,
        payload_ref: Some("ref".into()),
        business_key: None,
        labels: Default::default(),
        concurrency_key: None,
        timeouts: Timeouts { start_to_close_ms: 60_000, schedule_to_start_ms: None },
        max_retries: 3,
        trace_given: false,
        key_hash: None,
        request_hash: None,
    };
    CreateTask {
        task: NewTask { created, trace_id: Default::default(), sampling: Default::default() },
        key: None,
        payload: None,
        parent: None,
    }
}

async fn all(log: &EmbeddedLog) -> Vec<RawRecord> {
    let end = log.range(PARTITION).await.expect("a range").end;
    let mut tail = log.tail(PARTITION, Offset(0)).await.expect("a tail");
    let mut records = Vec::new();
    while (records.len() as u64) < end.0 {
        records.extend(tail.next().await.expect("records"));
    }
    records
}

// The reference reader: state, and the offsets it quarantined.
fn fold(records: &[RawRecord]) -> (PartitionState, Vec<Offset>) {
    let (mut state, mut bad) = (PartitionState::new(PARTITION, false), Vec::new());
    for raw in records {
        match raw.event() {
            Err(_) => {
                state.quarantine(raw.broker_ms);
                bad.push(raw.offset);
            }
            Ok(event) => {
                let key = raw.record_key();
                state.apply(&Record { offset: raw.offset, broker_ms: raw.broker_ms, key, event });
            }
        }
    }
    (state, bad)
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let limit = SystemClock.boot_ms() + 60_000;
    while !holds() {
        assert!(SystemClock.boot_ms() < limit, "never came: {what}");
        SystemClock.sleep_until(SystemClock.boot_ms() + 5).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reader_quarantines_alike_and_stops_at_rules_it_does_not_know() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut config = EmbeddedConfig::new(dir.path(), 1);
    config.durability = Durability::Volatile;
    let log = EmbeddedLog::open(config).expect("a log");
    let store = MemoryStore::default();
    let surface = Surface::new(1, SystemClock);
    let [owner_sees, engine_sees, replayer_sees] = [(); 3].map(|()| Metrics::default());
    let incarnation = Incarnation(7);
    let service = Service {
        spans: Default::default(),
        ports: Ports {
            log: log.clone(),
            store: store.clone(),
            lock: MemoryLock::new(|| SystemClock.boot_ms()),
            clock: SystemClock,
        },
        cfg: OwnerConfig::default(),
        rules: OwnerRules::STANDARD,
        fold_rules: &task_core::STANDARD,
        identity: Identity { instance: "c".into(), incarnation, url: "c".into() },
        entropy: SystemEntropy::default(),
        metrics: owner_sees.clone(),
        freeze: Default::default(),
        surface: surface.clone(),
    };
    let never = Shutdown::default();
    let owner = tokio::spawn(service.run(never.clone()));
    let deps = task_engine::Deps {
        log: log.clone(),
        clock: SystemClock,
        metrics: engine_sees.clone(),
        standings: Default::default(),
        entropy: Box::new(SystemEntropy::default()),
        source: verdict_writer::FoldSource::from_the_start(),
    };
    let engine =
        tokio::spawn(task_engine::run(deps, task_engine::EngineConfig::new("e".into(), incarnation), never.clone()));
    let deps = auto_replay::Deps {
        log: log.clone(),
        store,
        clock: SystemClock,
        metrics: replayer_sees.clone(),
        standings: Default::default(),
        source: verdict_writer::FoldSource::from_the_start(),
    };
    let replayer = tokio::spawn(auto_replay::run(deps, auto_replay::ReplayConfig::new("r".into(), incarnation), never));

    let first = surface.create(create(1), Placement::default()).await;
    assert!(matches!(first, Answer::Created { .. }), "{first:?}");
    let good = all(&log).await.last().and_then(|r| r.value.clone()).expect("the good record");
    let bad = undecodable(&good);
    assert_eq!(log.append(PARTITION, bad.clone()).await, AppendOutcome::Acknowledged);
    let second = surface.create(create(2), Placement::default()).await;
    assert!(matches!(second, Answer::Created { .. }), "good ones behind them are applied: {second:?}");

    let (state, quarantined) = fold(&all(&log).await);
    assert_eq!((quarantined.len(), state.tasks.len()), (bad.len(), 2));
    let count = |metrics: &Metrics, name: &str| metrics.alarms().get(name).map_or(0, |a| a.count);
    let wanted = bad.len() as u64;
    until("every reader quarantined them", || {
        count(&owner_sees, "quarantined") == wanted
            && count(&engine_sees, "record_quarantined") == wanted
            && count(&replayer_sees, "record_quarantined") == wanted
    })
    .await;

    let (state, _) = fold(&all(&log).await);
    let seq = OwnerSeq(state.owner_seq.0 + 1_000);
    let event = Draft::control(Body::RulesActivated(RulesActivated { activated: RuleVersion(99) })).stamped(Stamp {
        event_id: owner_event_id(PARTITION, state.epoch, seq, "c", incarnation, 1),
        partition_epoch: Some(state.epoch),
        owner_seq: Some(seq),
        event_time: 0,
        causation_id: None,
        producer: Producer { service: ServiceName::Coordinator, instance: "c".into(), incarnation },
        rule_version: RuleVersion(1),
    });
    let record = encode(&event, PARTITION).expect("it fits");
    let record = OutRecord { key: record.key, headers: record.headers, value: record.value };
    assert_eq!(log.append(PARTITION, vec![record]).await, AppendOutcome::Acknowledged);

    let says = [
        owner.await.expect("no panic").expect_err("it stops").to_string(),
        engine.await.expect("no panic").expect_err("it stops").to_string(),
        replayer.await.expect("no panic").expect_err("it stops").to_string(),
    ];
    for said in says {
        assert!(said.contains("99") && said.contains("install"), "it says what to do: {said}");
    }
    let limit = SystemClock.boot_ms() + 30_000;
    while !log.members().await.expect("members").is_empty() {
        assert!(SystemClock.boot_ms() < limit, "a reader that stopped is still a member");
        SystemClock.sleep_until(SystemClock.boot_ms() + 5).await;
    }
    log.close();
}
