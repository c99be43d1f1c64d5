//! The outbox file's format. Reports are written by mirrors of the protocol's types, because what
//! lies in a file must stay readable whatever the transport's form becomes.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use task_events::{ErrorCategory, ExecEpoch, ExecutionId, RunNo, Sha256Hash, StepDone, TaskId, Text};
use worker_protocol::{Attempt, Report, ReportBody};

use crate::machine::{EntryKey, OutboxEntry};

/// First bytes of the file; the digit is the version of the format.
pub(super) const HEADER: &[u8] = b"dualtrack outbox 1\n";
const PREFIX: usize = 8;

#[derive(Serialize, Deserialize)]
enum Frame {
    Keep {
        task_id: TaskId,
        number: u32,
        attempt_token: Text,
        run_no: RunNo,
        exec_epoch: ExecEpoch,
        execution_id: ExecutionId,
        worker_id: Text,
        #[serde(with = "Body")]
        body: ReportBody,
    },
    Forget {
        execution_id: ExecutionId,
        number: u32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ReportBody")]
enum Body {
    Starting {
        start_time: i64,
        memory_usage_percent: u32,
    },
    Declined {
        draining: bool,
    },
    Step(StepDone),
    Success {
        result_data_hash: Sha256Hash,
        execution_time_ms: u64,
        steps_done: Vec<StepDone>,
        memory_usage_percent: u32,
    },
    Failure {
        error_code: Text,
        error_message: Text,
        category: ErrorCategory,
        failed_step: Option<Text>,
        is_idempotent: Option<bool>,
        execution_time_ms: u64,
        steps_done: Vec<StepDone>,
        memory_usage_percent: u32,
    },
}

/// The frame that keeps a report.
pub(super) fn keep(entry: &OutboxEntry) -> io::Result<Vec<u8>> {
    let Attempt { run_no, exec_epoch, execution_id } = entry.report.attempt;
    framed(&Frame::Keep {
        task_id: entry.task_id,
        number: entry.key.number,
        attempt_token: entry.attempt_token.clone(),
        run_no,
        exec_epoch,
        execution_id,
        worker_id: entry.report.worker_id.clone(),
        body: entry.report.body.clone(),
    })
}

/// The frame that forgets one.
pub(super) fn forget(key: EntryKey) -> io::Result<Vec<u8>> {
    framed(&Frame::Forget { execution_id: key.execution_id, number: key.number })
}

fn framed(frame: &Frame) -> io::Result<Vec<u8>> {
    let content = rmp_serde::to_vec(frame).map_err(io::Error::other)?;
    let len = u32::try_from(content.len()).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(PREFIX + content.len());
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&content).to_le_bytes());
    bytes.extend_from_slice(&content);
    Ok(bytes)
}

/// What a file keeps, in the order of keeping, and how many of its bytes make sense.
pub(super) fn read_all(content: &[u8]) -> (Vec<OutboxEntry>, usize) {
    let mut kept = BTreeMap::new();
    let mut numbers = BTreeMap::new();
    let Some(mut rest) = content.strip_prefix(HEADER) else { return (Vec::new(), 0) };
    let mut next = 0u64;
    while let Some((frame, after)) = read_one(rest) {
        rest = after;
        match frame {
            Frame::Keep { task_id, number, attempt_token, run_no, exec_epoch, execution_id, worker_id, body } => {
                let key = EntryKey { execution_id, number };
                let report = Report { attempt: Attempt { run_no, exec_epoch, execution_id }, worker_id, body };
                numbers.insert(key, next);
                kept.insert(next, OutboxEntry { key, task_id, attempt_token, report });
                next += 1;
            }
            Frame::Forget { execution_id, number } => {
                let key = EntryKey { execution_id, number };
                numbers.remove(&key).and_then(|at| kept.remove(&at));
            }
        }
    }
    (kept.into_values().collect(), content.len() - rest.len())
}

fn read_one(bytes: &[u8]) -> Option<(Frame, &[u8])> {
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX>()?;
    let [a, b, c, d, crc @ ..] = *prefix;
    let (content, rest) = rest.split_at_checked(u32::from_le_bytes([a, b, c, d]) as usize)?;
    if crc32c::crc32c(content) != u32::from_le_bytes(crc) {
        return None;
    }
    Some((rmp_serde::from_slice(content).ok()?, rest))
}
