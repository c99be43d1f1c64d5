//! Cases 5 and 7 from the field on real engines; 2, 3 and 6 are in `workers`, 9 in `kafka`, 10 in `redis`,
//! 11 in `coordinators`.

use std::time::Duration;

use bytes::Bytes;
use event_log::OutRecord;
use serde_json::{Value, json};
use stack_control::Member;
use stack_tests::{Drill, TYPE, Way, sample, until};
use task_core::decide::{Draft, Stamp};
use task_events::{
    Body, Incarnation, Kind, OwnerSeq, PartitionId, Producer, RuleVersion, RulesActivated, Service, Sha256Hash,
    TaskState, owner_event_id,
};

use crate::PARTITIONS;

const MEMBERS: [Member; 4] = [Member::Coordinator(1), Member::Coordinator(2), Member::TaskEngine, Member::AutoReplay];

async fn post(url: &str, path: &str, body: &Value) -> (u16, Value) {
    let answer = reqwest::Client::new()
        .post(format!("{url}{path}"))
        .header("content-type", "application/json")
        .body(body.to_string())
        .send()
        .await
        .expect("an answer");
    let status = answer.status().as_u16();
    (status, serde_json::from_str(&answer.text().await.expect("a body")).unwrap_or(Value::Null))
}

async fn assignment(url: &str, worker: &str) -> Value {
    let poll = json!({
        "incarnation": "7", "handler_version": "1", "queues": [TYPE], "free_slots": 1, "wait_ms": 2_000,
    });
    until("an assignment", || async {
        let (status, answer) = post(url, &format!("/coordinator/v1/workers/{worker}/poll"), &poll).await;
        assert!(status == 200 || status == 503, "{status}: {answer}");
        answer["assignments"].get(0).cloned()
    })
    .await
}

fn beat(worker: &str, of: &Value) -> Value {
    json!({
        "execution_id": of["execution_id"], "exec_epoch": of["exec_epoch"], "attempt_token": of["attempt_token"],
        "worker_id": worker, "incarnation": "7", "memory_usage_percent": 10,
    })
}

fn success(worker: &str, task: &str, of: &Value) -> Value {
    json!({
        "task_id": task, "execution_id": of["execution_id"], "exec_epoch": of["exec_epoch"],
        "attempt_token": of["attempt_token"], "worker_id": worker, "status": "SUCCESS", "result": {"by": worker},
        "execution_time_ms": 5, "memory_usage_percent": 10,
    })
}

/// Case 5: a worker goes on with an attempt that is over, across the death of a coordinator. Both workers
/// are raw HTTP: the SDK would have stopped by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_worker_is_fenced_its_report_is_on_record_and_the_other_ones_result_counts() {
    let mut drill = Drill::without_workers(PARTITIONS, Way::Direct, &[]).await;
    let task = drill.create_long(1, 0).await.into_iter().next().expect("a task");
    let url = drill.urls[1].clone();
    let first = assignment(&url, "a").await;
    let report = |kind: &str| format!("/coordinator/v1/task/{task}/{kind}");
    let (starting, running) = (report("heartbeat?status=STARTING"), report("heartbeat?status=RUNNING"));
    let (status, said) = post(&url, &starting, &beat("a", &first)).await;
    assert_eq!((status, &said["answer"]), (200, &json!("accepted")), "{said}");
    let again = drill.cluster.take(Member::Coordinator(1)).expect("it runs").kill().expect("it dies");
    drill.cluster.start_again(Member::Coordinator(1), again).await.expect("it is back");

    // A says nothing until its lease is over and B has the task.
    let second = assignment(&url, "b").await;
    assert_eq!((&first["exec_epoch"], &second["exec_epoch"]), (&json!(1), &json!(2)));
    let (status, said) = post(&url, &starting, &beat("b", &second)).await;
    assert_eq!((status, &said["answer"]), (200, &json!("accepted")), "{said}");
    for _ in 0..3 {
        let (status, said) = post(&url, &running, &beat("a", &first)).await;
        assert_eq!((status, &said["code"]), (409, &json!("fenced")), "{said}");
    }
    let (status, said) = post(&url, &report("result"), &success("a", &task.to_string(), &first)).await;
    assert_eq!((status, &said["code"]), (409, &json!("fenced")), "{said}");
    let (status, said) = post(&url, &report("result"), &success("b", &task.to_string(), &second)).await;
    assert_eq!((status, &said["answer"]), (200, &json!("accepted")), "{said}");

    let client = drill.client(1);
    let view = client.get(task, Some(Duration::from_secs(10))).await.expect("a task");
    assert_eq!((view.status, view.exec_epoch), (TaskState::Success, 2));
    let result = client.result(task).await.expect("a result");
    assert_eq!(result.result_data_hash, Sha256Hash::of(br#"{"by":"b"}"#));
    drill.all_finished(30_000).await;
    let rejected: Vec<_> = drill.journal.accepted(Kind::RejectedReport).map(|event| event.exec_epoch.get()).collect();
    assert_eq!(rejected, [1], "the stale report is on record, once");
    drill.end().await;
}

// What the field has seen, with good checksums, so that nothing but the content is wrong.
fn undecodable(good: &[u8]) -> Vec<OutRecord> {
    let junk = |value: &[u8]| {
        let crc = format!("{:08x}", crc32c::crc32c(value));
        let headers = vec![
            ("kind", Bytes::from_static(b"TaskCreated")),
            ("rule-version", Bytes::from_static(b"1")),
            ("crc32c", Bytes::from(crc)),
        ];
        OutRecord { key: Bytes::from_static(b"1"), headers, value: Bytes::copy_from_slice(value) }
    };
    let framed = |schema: u32, datum: &[u8]| junk(&[&[0], &schema.to_be_bytes()[..], datum].concat());
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

/// Case 7: records that nobody can decode, between good ones; and at last rules that nobody knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_program_quarantines_alike_and_stops_at_rules_it_does_not_know() {
    // One for each coordinator: who has none is not ready.
    let mut drill = Drill::start(2, Way::Direct, &[]).await;
    let partition = PartitionId(0);
    drill.create_long(1, 0).await;
    drill.all_finished(30_000).await;
    let good = drill.journal.records(partition).last().and_then(|raw| raw.value.clone()).expect("a good record");
    let bad = undecodable(&good);
    let wanted = bad.len() as u64;
    drill.journal.append(partition, bad).await;
    // Good ones behind them are applied, by everybody who must: it fails once.
    let load = drill.load();
    drill.answered(20).await;
    drill.finish(load).await;
    assert_eq!(drill.journal.quarantined, wanted);
    let owner = [drill.urls[0].as_str(), drill.urls[1].as_str()];
    let mut quarantined = 0;
    for url in owner {
        quarantined += sample(url, "alarms_total", Some("alarm=\"quarantined\"")).await.expect("an answer");
    }
    assert_eq!(quarantined, wanted, "by the owner");
    for member in [Member::TaskEngine, Member::AutoReplay] {
        let url = drill.cluster.member(member).expect("it runs").url.clone();
        let seen = sample(&url, "alarms_total", Some("alarm=\"record_quarantined\"")).await;
        assert_eq!(seen, Some(wanted), "by {member:?}");
        assert_eq!(sample(&url, "partition_lag_records", None).await, Some(0), "{member:?}");
    }

    let incarnation = Incarnation(7);
    let (epoch, seq) = drill.journal.ownership(partition);
    let seq = OwnerSeq(seq.0 + 1_000);
    let event = Draft::control(Body::RulesActivated(RulesActivated { activated: RuleVersion(99) })).stamped(Stamp {
        event_id: owner_event_id(partition, epoch, seq, "c", incarnation, 1),
        partition_epoch: Some(epoch),
        owner_seq: Some(seq),
        event_time: 0,
        causation_id: None,
        producer: Producer { service: Service::Coordinator, instance: "c".into(), incarnation },
        rule_version: RuleVersion(1),
    });
    let record = task_events::encode(&event, partition).expect("it fits");
    let record = OutRecord { key: record.key, headers: record.headers, value: record.value };
    drill.journal.append(partition, vec![record]).await;
    for member in MEMBERS {
        let log = drill.scene.plan.dir.join(format!("{}.log", member.instance()));
        let cluster = std::sync::Mutex::new(&mut drill.cluster);
        until(&format!("{member:?} stops"), || async {
            let mut cluster = cluster.lock().expect("one at a time");
            cluster.member(member).expect("it was there").is_running().err()
        })
        .await;
        let said = std::fs::read_to_string(&log).expect("what it said");
        assert!(said.contains("99") && said.contains("install"), "{member:?} says what to do: {said}");
    }
}
