use task_events::{ErrorCategory, ExecEpoch, ExecutionId, PartitionId, RunNo, Sha256Hash, StepDone, TaskId};
use worker_protocol::{Attempt, Report, ReportBody};

use super::*;

fn entry(task: u16, number: u32, body: ReportBody) -> OutboxEntry {
    let task_id = TaskId::from_parts(1, PartitionId(3), task).unwrap();
    let execution_id = ExecutionId::new(task_id, ExecEpoch(2));
    OutboxEntry {
        key: EntryKey { execution_id, number },
        task_id,
        attempt_token: "token".into(),
        report: Report {
            attempt: Attempt { run_no: RunNo(1), exec_epoch: ExecEpoch(2), execution_id },
            worker_id: "w1".into(),
            body,
        },
    }
}

fn step(index: u32) -> ReportBody {
    ReportBody::Step(StepDone {
        step: "s".into(),
        index,
        output_hash: Sha256Hash([index as u8; 32]),
        is_idempotent: true,
    })
}

fn failure() -> ReportBody {
    ReportBody::Failure {
        error_code: "X".into(),
        error_message: "ä".repeat(300).into(),
        category: ErrorCategory::Resource,
        failed_step: Some("s".into()),
        is_idempotent: Some(false),
        execution_time_ms: u64::MAX,
        steps_done: Vec::new(),
        memory_usage_percent: 7,
    }
}

#[test]
fn what_is_kept_comes_back_in_order_and_what_is_forgotten_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("outbox");
    let entries = [entry(2, 0, step(0)), entry(1, 0, step(1)), entry(2, 1, failure())];
    {
        let (mut outbox, found) = FileOutbox::open(&path).unwrap();
        assert_eq!((found.len(), outbox.is_empty()), (0, true));
        outbox.apply(entries.to_vec(), &[]).unwrap();
        outbox.apply(Vec::new(), &[entries[1].key]).unwrap();
        assert!(FileOutbox::open(&path).unwrap_err().to_string().contains("in use"));
    }
    let (mut outbox, found) = FileOutbox::open(&path).unwrap();
    assert_eq!(found, [entries[0].clone(), entries[2].clone()]);
    outbox.apply(Vec::new(), &[entries[0].key, entries[2].key]).unwrap();
    drop(outbox);
    assert_eq!(FileOutbox::open(&path).unwrap().1, []);
}

#[test]
fn a_torn_tail_loses_nothing_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("outbox");
    let entries = [entry(1, 0, step(0)), entry(1, 1, failure())];
    let (mut outbox, _) = FileOutbox::open(&path).unwrap();
    outbox.apply(vec![entries[0].clone()], &[]).unwrap();
    let whole = std::fs::metadata(&path).unwrap().len();
    outbox.apply(vec![entries[1].clone()], &[]).unwrap();
    drop(outbox);
    let content = std::fs::read(&path).unwrap();
    for len in (whole as usize..content.len()).step_by(23) {
        std::fs::write(&path, &content[..len]).unwrap();
        assert_eq!(FileOutbox::open(&path).unwrap().1, entries[..1], "cut at {len}");
    }
    for at in (whole as usize..content.len()).step_by(29) {
        let mut flipped = content.clone();
        flipped[at] ^= 0x10;
        std::fs::write(&path, &flipped).unwrap();
        assert_eq!(FileOutbox::open(&path).unwrap().1, entries[..1], "flipped at {at}");
    }
}

#[test]
fn any_bytes_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("outbox");
    for content in [&b""[..], b"garbage", frame::HEADER, &[frame::HEADER, &[0xff; 64]].concat()] {
        std::fs::write(&path, content).unwrap();
        assert_eq!(FileOutbox::open(&path).unwrap().1, []);
    }
}

#[test]
fn the_file_does_not_grow_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("outbox");
    let (mut outbox, _) = FileOutbox::open(&path).unwrap();
    let big = ReportBody::Success {
        result_data_hash: Sha256Hash::default(),
        execution_time_ms: 1,
        steps_done: (0..20_000)
            .map(|index| StepDone {
                step: "step".into(),
                index,
                output_hash: Sha256Hash::default(),
                is_idempotent: true,
            })
            .collect(),
        memory_usage_percent: 0,
    };
    for number in 0..20 {
        let entry = entry(1, number, big.clone());
        let key = entry.key;
        outbox.apply(vec![entry], &[]).unwrap();
        outbox.apply(Vec::new(), &[key]).unwrap();
    }
    assert!(std::fs::metadata(&path).unwrap().len() < 2 * REWRITE_ABOVE_BYTES);
    assert_eq!(outbox.len(), 0);
}
