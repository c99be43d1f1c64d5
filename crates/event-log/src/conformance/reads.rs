//! Reading: tails, single records, times, ranges, retention.

use bytes::Bytes;
use task_events::{Offset, PartitionId};

use super::{Harness, append_texts, poll_once, read, read_on, record, texts, within};
use crate::{AppendOutcome, EventLog, LogError, OutRecord, Tail};

const P: PartitionId = PartitionId(0);

/// A tail begins at exactly the offset asked for.
pub async fn tail_starts_anywhere<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    append_texts(&log, P, 0..50).await;
    for from in [0, 1, 25, 49] {
        let expected: Vec<String> = (from..50).map(|i| format!("r{i}")).collect();
        assert_eq!(texts(&read(&log, P, Offset(from as u64), 50 - from).await), expected);
    }
}

/// At the end a tail waits, and wakes up for each append.
pub async fn tail_waits_for_records<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    let mut tail = within("a tail", log.tail(P, Offset(0))).await.expect("tail");
    for i in 0..20 {
        let quiet = poll_once(tail.next()).await;
        assert!(quiet.is_none(), "something before it was appended: {quiet:?}");
        append_texts(&log, P, i..i + 1).await;
        let records = read_on(&mut tail, Offset(i as u64), 1).await;
        assert_eq!(texts(&records), [format!("r{i}")]);
    }
}

/// A dropped call of `next` loses no record.
pub async fn tail_survives_a_dropped_wait<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    let mut tail = within("a tail", log.tail(P, Offset(0))).await.expect("tail");
    let mut found = Vec::new();
    let mut waits: Vec<_> = (0..100).map(|i| log.append(P, vec![record(format!("r{i}"))])).collect();
    within("all records in spite of dropped waits", async {
        while found.len() < 100 {
            // Polled once and dropped, again and again, while the records arrive.
            if let Some(records) = poll_once(tail.next()).await {
                found.extend(texts(&records.expect("records")));
            }
            match waits.pop() {
                Some(wait) => assert_eq!(wait.await, AppendOutcome::Acknowledged),
                None => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    let expected: Vec<String> = (0..100).map(|i| format!("r{i}")).collect();
    assert_eq!(found, expected);
}

/// Beyond the end is an error, never a reset; the end itself is a place to wait.
pub async fn tail_refuses_offsets_outside<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    append_texts(&log, P, 0..3).await;
    match within("an answer", log.tail(P, Offset(4))).await.map(|_| ()) {
        Err(LogError::OutOfRange { partition, offset, start, end }) => {
            assert_eq!((partition, offset, start, end), (P, Offset(4), Offset(0), Offset(3)));
        }
        other => panic!("{other:?}"),
    }
    let mut tail = within("a tail", log.tail(P, Offset(3))).await.expect("tail at the end");
    append_texts(&log, P, 3..4).await;
    assert_eq!(texts(&read_on(&mut tail, Offset(3), 1).await), ["r3"]);
    assert!(within("an answer", log.tail(PartitionId(2), Offset(0))).await.is_err(), "no such partition");
}

/// Several tails of one partition, at their own places, opened and dropped while it grows.
pub async fn tails_are_independent<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    append_texts(&log, P, 0..10).await;
    append_texts(&log, PartitionId(1), 0..1).await;
    let mut first = within("a tail", log.tail(P, Offset(0))).await.expect("tail");
    let mut second = within("a tail", log.tail(P, Offset(5))).await.expect("tail");
    let mut other = within("a tail", log.tail(PartitionId(1), Offset(0))).await.expect("tail");
    assert_eq!(read_on(&mut second, Offset(5), 5).await.len(), 5);
    drop(second);
    append_texts(&log, P, 10..20).await;
    assert_eq!(read_on(&mut first, Offset(0), 20).await.len(), 20);
    assert_eq!(read_on(&mut other, Offset(0), 1).await.len(), 1);
    for _ in 0..5 {
        assert_eq!(read(&log, P, Offset(3), 17).await.len(), 17);
    }
}

/// A reader that takes its time gets everything, in order, although more is written than any
/// buffer holds; and the other partitions are not held up by it.
pub async fn slow_reader_loses_nothing<H: Harness>() {
    const BATCHES: usize = 48;
    let harness = H::start(2).await;
    let log = harness.log();
    let mut slow = within("a tail", log.tail(P, Offset(0))).await.expect("tail");
    let mut quick = within("a tail", log.tail(PartitionId(1), Offset(0))).await.expect("tail");
    let value = |i: usize| Bytes::from(vec![i as u8; 512 << 10]);
    for i in 0..BATCHES {
        let out = OutRecord { value: value(i), ..record("") };
        assert_eq!(within("an acknowledgement", log.append(P, vec![out])).await, AppendOutcome::Acknowledged);
        append_texts(&log, PartitionId(1), i..i + 1).await;
        assert_eq!(read_on(&mut quick, Offset(i as u64), 1).await.len(), 1);
    }
    let records = read_on(&mut slow, Offset(0), BATCHES).await;
    for (i, record) in records.iter().enumerate() {
        assert!(record.value == Some(value(i)), "record {i} differs");
    }
}

/// Single records, in the order asked for, also twice.
pub async fn reads_single_records<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    append_texts(&log, P, 0..500).await;
    let offsets = [499, 0, 250, 251, 252, 0, 90].map(Offset).to_vec();
    let records = within("records", log.read_at(P, offsets.clone())).await.expect("records");
    assert_eq!(records.iter().map(|r| r.offset).collect::<Vec<_>>(), offsets);
    assert_eq!(texts(&records), ["r499", "r0", "r250", "r251", "r252", "r0", "r90"]);
    assert_eq!(within("nothing", log.read_at(P, Vec::new())).await, Ok(Vec::new()));
    let outside = within("an answer", log.read_at(P, vec![Offset(1), Offset(500)])).await;
    assert!(matches!(outside, Err(LogError::OutOfRange { offset: Offset(500), .. })), "{outside:?}");
}

/// The first offset at or after a time.
pub async fn finds_offsets_by_time<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    assert_eq!(within("an answer", log.offset_at(P, 0)).await, Ok(None), "an empty log");
    append_texts(&log, P, 0..1).await;
    let first = read(&log, P, Offset(0), 1).await[0].broker_ms;
    // Until the broker's clock has moved on by a millisecond.
    let mut count = 1;
    let second = within("a later stamp", async {
        loop {
            append_texts(&log, P, count..count + 1).await;
            count += 1;
            let last = read(&log, P, Offset(count as u64 - 1), 1).await[0].broker_ms;
            if last > first {
                return last;
            }
        }
    })
    .await;
    let at = |unix_ms| log.offset_at(P, unix_ms);
    assert_eq!(within("an answer", at(0)).await, Ok(Some(Offset(0))));
    assert_eq!(within("an answer", at(first)).await, Ok(Some(Offset(0))));
    assert_eq!(within("an answer", at(second)).await, Ok(Some(Offset(count as u64 - 1))));
    assert_eq!(within("an answer", at(second + 3_600_000)).await, Ok(None));
}

/// Start and end as of now, for every process.
pub async fn range_moves<H: Harness>() {
    let harness = H::start(2).await;
    let (log, other) = (harness.log(), harness.other().await);
    for i in 0..5 {
        let range = within("a range", other.range(P)).await.expect("range");
        assert_eq!((range.start, range.end), (Offset(0), Offset(i as u64)));
        append_texts(&log, P, i..i + 1).await;
        // Visible at the latest when it was read back.
        read(&other, P, Offset(i as u64), 1).await;
    }
    assert!(within("an answer", log.range(PartitionId(9))).await.is_err(), "no such partition");
}

/// What retention deleted is out of range for everyone, and the rest is still there.
pub async fn retention_moves_the_start<H: Harness>() {
    let harness = H::start(2).await;
    let log = harness.log();
    let value = Bytes::from(vec![7; 4 << 10]);
    for _ in 0..10 {
        let batch = (0..50).map(|_| OutRecord { value: value.clone(), ..record("") }).collect();
        assert_eq!(within("an acknowledgement", log.append(P, batch)).await, AppendOutcome::Acknowledged);
    }
    harness.delete_old(P).await;
    let range = within("a range", log.range(P)).await.expect("range");
    assert!(range.start > Offset(0) && range.start < range.end && range.end == Offset(500), "{range:?}");
    let gone = within("an answer", log.tail(P, Offset(0))).await.map(|_| ());
    assert!(matches!(gone, Err(LogError::OutOfRange { start, .. }) if start == range.start), "{gone:?}");
    let gone = within("an answer", log.read_at(P, vec![Offset(0)])).await;
    assert!(matches!(gone, Err(LogError::OutOfRange { .. })), "{gone:?}");
    let left = (range.end.0 - range.start.0) as usize;
    assert_eq!(read(&log, P, range.start, left).await.len(), left);
    append_texts(&log, P, 0..1).await;
    assert_eq!(texts(&read(&log, P, Offset(500), 1).await), ["r0"]);
}
