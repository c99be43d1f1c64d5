//! Appending: order, content, limits, and outcomes that nobody knows.

use bytes::Bytes;
use task_events::{Offset, PartitionId};

use super::{Harness, append_texts, read, record, texts, within};
use crate::{AppendOutcome, EventLog, OutRecord, RawRecord};

const P: PartitionId = PartitionId(1);

/// What was acknowledged is read back, with partition, offset and a stamp of the broker.
pub async fn reads_back_what_was_appended<H: Harness>() {
    let harness = H::start(3).await;
    let log = harness.log();
    assert_eq!(log.partition_count(), 3);
    append_texts(&log, P, 0..3).await;
    let records = read(&log, P, Offset(0), 3).await;
    assert_eq!(texts(&records), ["r0", "r1", "r2"]);
    assert!(records.iter().all(|r| r.partition == P && r.broker_ms > 0));
    assert_eq!(within("a range", log.range(PartitionId(0))).await.expect("range").end, Offset(0));
}

/// Batches are in the log in the order in which append was called, whoever is awaited first.
pub async fn keeps_the_order_of_calls<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    let waits: Vec<_> = (0..200)
        .map(|i| log.append(P, vec![record(format!("r{}", 2 * i)), record(format!("r{}", 2 * i + 1))]))
        .collect();
    for wait in waits.into_iter().rev() {
        assert_eq!(within("an acknowledgement", wait).await, AppendOutcome::Acknowledged);
    }
    let expected: Vec<String> = (0..400).map(|i| format!("r{i}")).collect();
    assert_eq!(texts(&read(&log, P, Offset(0), 400).await), expected);
}

/// Each partition counts for itself, without gaps, also while all are written at once.
pub async fn offsets_are_contiguous<H: Harness>() {
    let harness = H::start(4).await;
    let log = harness.log();
    let waits: Vec<_> = (0..400).map(|i| log.append(PartitionId(i % 4), vec![record(format!("r{i}"))])).collect();
    for wait in waits {
        assert_eq!(within("an acknowledgement", wait).await, AppendOutcome::Acknowledged);
    }
    for p in 0..4 {
        // `read` checks the offsets.
        let expected: Vec<String> = (0..100).map(|i| format!("r{}", i * 4 + p)).collect();
        assert_eq!(texts(&read(&log, PartitionId(p), Offset(0), 100).await), expected);
    }
}

/// Headers in order, repeated and empty ones too; empty values; tombstones; missing keys.
pub async fn keeps_every_part_of_a_record<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    let headers = vec![
        ("kind", Bytes::from_static(b"A")),
        ("kind", Bytes::from_static(b"B")),
        ("empty", Bytes::new()),
        ("raw", Bytes::from_static(&[0, 255, 10])),
    ];
    let full =
        OutRecord { key: Bytes::from_static(b"#partition"), headers, value: Bytes::from_static(&[0, 1, 2, 255]) };
    let bare = OutRecord { key: Bytes::new(), headers: Vec::new(), value: Bytes::new() };
    let outcome = within("an acknowledgement", log.append(P, vec![full.clone(), bare])).await;
    assert_eq!(outcome, AppendOutcome::Acknowledged);
    let foreign =
        RawRecord { partition: P, offset: Offset(0), broker_ms: 0, key: None, headers: Vec::new(), value: None };
    harness.append_foreign(foreign.clone()).await;
    harness.append_foreign(RawRecord { key: Some(Bytes::from_static(b"7")), ..foreign }).await;

    let records = read(&log, P, Offset(0), 4).await;
    assert_eq!(records[0].key, Some(full.key));
    assert_eq!(records[0].value, Some(full.value));
    let expected: Vec<(String, Bytes)> =
        full.headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(records[0].headers, expected);
    assert_eq!(records[1].value, Some(Bytes::new()), "an empty value is not a tombstone");
    assert_eq!(records[1].headers, []);
    assert_eq!((records[2].key.clone(), records[2].value.clone()), (None, None));
    assert_eq!((records[3].key.clone(), records[3].value.clone()), (Some(Bytes::from_static(b"7")), None));
}

/// 2 MiB values arrive whole, between small ones.
pub async fn keeps_big_records<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    let big: Bytes = (0..2 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<u8>>().into();
    let out = |value: &Bytes| OutRecord { value: value.clone(), ..record("") };
    let batch = vec![record("before"), out(&big), record("after")];
    assert_eq!(within("an acknowledgement", log.append(P, batch)).await, AppendOutcome::Acknowledged);
    assert_eq!(
        within("an acknowledgement", log.append(P, vec![out(&big), out(&big)])).await,
        AppendOutcome::Acknowledged
    );
    let records = read(&log, P, Offset(0), 5).await;
    for at in [1, 3, 4] {
        assert!(records[at].value == Some(big.clone()), "value {at} differs");
    }
    assert_eq!(texts(&[records[0].clone(), records[2].clone()]), ["before", "after"]);
}

/// Too large, or no such partition: certainly not sent, and nothing is in the log.
pub async fn refuses_what_can_not_be_sent<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    let huge = OutRecord { value: Bytes::from(vec![1; 3 << 20]), ..record("") };
    let outcome = within("an answer", log.append(P, vec![record("x"), huge])).await;
    assert!(matches!(outcome, AppendOutcome::NotSent(_)), "{outcome:?}");
    let outcome = within("an answer", log.append(PartitionId(2), vec![record("x")])).await;
    assert!(matches!(outcome, AppendOutcome::NotSent(_)), "{outcome:?}");
    assert_eq!(within("an answer", log.append(P, Vec::new())).await, AppendOutcome::Acknowledged);
    append_texts(&log, P, 0..1).await;
    assert_eq!(texts(&read(&log, P, Offset(0), 1).await), ["r0"]);
}

/// The answer is lost after the write: the caller is told `Unknown`, the record is there once,
/// and appending goes on behind it.
pub async fn unknown_outcome_is_never_sent_again<H: Harness>() {
    let harness = H::start(2).await;
    append_texts(&harness.log(), P, 0..1).await;
    let log = harness.losing_answers().await;
    let outcome = within("an answer", log.append(P, vec![record("lost")])).await;
    assert!(matches!(outcome, AppendOutcome::Unknown(_)), "{outcome:?}");
    harness.heal().await;
    // What a caller does next: a record of its own, read back.
    let mut outcome = within("an answer", log.append(P, vec![record("claim")])).await;
    while let AppendOutcome::NotSent(_) | AppendOutcome::Unknown(_) = outcome {
        // The connection may still be on its way back; each try is a new record.
        outcome = within("an answer", log.append(P, vec![record("claim again")])).await;
    }
    let end = within("a range", harness.log().range(P)).await.expect("range").end;
    let records = read(&harness.log(), P, Offset(0), end.0 as usize).await;
    let found = texts(&records);
    assert_eq!(found[0], "r0");
    assert_eq!(found.iter().filter(|text| *text == "lost").count(), 1, "{found:?}");
    assert_eq!(found[1], "lost");
    assert!(found.len() >= 3, "{found:?}");
}

/// Batches of two processes interleave as wholes or in parts, but each keeps its own order.
pub async fn two_processes_interleave<H: Harness>() {
    let harness = H::start(2).await;
    let (a, b) = (harness.log(), harness.other().await);
    let mut waits = Vec::new();
    for i in 0..100 {
        waits.push(a.append(P, vec![record(format!("a{i}"))]));
        waits.push(b.append(P, vec![record(format!("b{i}"))]));
    }
    for wait in waits {
        assert_eq!(within("an acknowledgement", wait).await, AppendOutcome::Acknowledged);
    }
    let found = texts(&read(&b, P, Offset(0), 200).await);
    for name in ["a", "b"] {
        let own: Vec<&String> = found.iter().filter(|text| text.starts_with(name)).collect();
        let expected: Vec<String> = (0..100).map(|i| format!("{name}{i}")).collect();
        assert!(own.iter().copied().eq(expected.iter()), "{own:?}");
    }
}
