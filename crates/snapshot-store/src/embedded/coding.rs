//! Bytes of keys and values. Keys are big-endian, so that a range of bytes is a range of numbers;
//! a value is a fixed head and a body:
//!
//! ```text
//! version u8 | timestamp µs i64 | expiry Unix ms i64 (i64::MAX: never) | body
//! ```
//!
//! Bodies of rows are MessagePack with named fields: a newer binary reads an older row, and fields
//! it does not know it skips. Payloads, chunks and manifests are their own bytes.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use task_core::{CoreState, HistoryEntry, Reason, Row};
use task_events::{Offset, PartitionEpoch, PartitionId, RuleVersion, Sha256Hash, TaskId, TaskState};

use super::tables::Table;
use crate::ended::Entry;
use crate::listing::Listing;
use crate::{CheckpointName, EndedList, KeyRow, PayloadItem, RowKind, SnapshotRow, StoreError, TaskSummary};

/// Version of head and bodies.
const VERSION: u8 = 1;
const HEAD: usize = 17;

/// A value as it is stored.
#[derive(Debug)]
pub(super) struct Stored {
    /// Row clock for rows, the store's clock for everything else, µs.
    pub at_us: i64,
    /// From here on it is not there any more, Unix ms.
    pub expires_ms: i64,
    pub body: Bytes,
}

impl Stored {
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(HEAD + self.body.len());
        out.push(VERSION);
        out.extend_from_slice(&self.at_us.to_be_bytes());
        out.extend_from_slice(&self.expires_ms.to_be_bytes());
        out.extend_from_slice(&self.body);
        out.into()
    }

    /// Takes a value apart; the error says what is wrong with it.
    pub fn from_bytes(value: &Bytes) -> Result<Self, String> {
        let number = |at: usize| Some(i64::from_be_bytes(value.get(at..at + 8)?.try_into().ok()?));
        match (value.first(), number(1), number(9)) {
            (Some(&VERSION), Some(at_us), Some(expires_ms)) => {
                Ok(Self { at_us, expires_ms, body: value.slice(HEAD..) })
            }
            (Some(&VERSION), _, _) => Err(format!("cut off after {} bytes", value.len())),
            (Some(version), _, _) => Err(format!("version {version} is not known")),
            (None, _, _) => Err("empty".to_owned()),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct SnapshotBody {
    /// Canonical bytes (`schemas/state.md`).
    core: Bytes,
    row: Arc<Row>,
    closed_at: Option<Offset>,
}

#[derive(Serialize, Deserialize)]
struct KeyBody {
    request_hash: Option<Sha256Hash>,
    task_id: TaskId,
    created_at: i64,
}

#[derive(Serialize, Deserialize)]
struct OverflowBody {
    rejected: Option<Reason>,
}

/// Table, key and body of a row.
pub(super) fn row(row: RowKind) -> Result<(Table, Vec<u8>, Bytes), StoreError> {
    match row {
        RowKind::Snapshot(row) => {
            let key = task_key(row.core.id);
            let core = Bytes::copy_from_slice(&row.core.canonical());
            let body = SnapshotBody { core, row: row.row, closed_at: row.closed_at };
            Ok((Table::Snapshots, key.clone(), named(Table::Snapshots, &key, &body)?))
        }
        RowKind::Key(row) => {
            let key = row.key_hash.0.to_vec();
            let body = KeyBody { request_hash: row.request_hash, task_id: row.task_id, created_at: row.created_at };
            Ok((Table::Keys, key.clone(), named(Table::Keys, &key, &body)?))
        }
        RowKind::HistoryOverflow { task_id, entry } => {
            let mut key = task_key(task_id);
            key.extend_from_slice(&entry.offset.0.to_be_bytes());
            let body = OverflowBody { rejected: entry.rejected };
            Ok((Table::Overflow, key.clone(), named(Table::Overflow, &key, &body)?))
        }
    }
}

fn named(table: Table, key: &[u8], body: &impl Serialize) -> Result<Bytes, StoreError> {
    rmp_serde::to_vec_named(body).map(Bytes::from).map_err(|e| table.damaged(key, &format!("cannot be coded: {e}")))
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    rmp_serde::from_slice(body).map_err(|e| e.to_string())
}

pub(super) fn snapshot(task: TaskId, body: &[u8]) -> Result<SnapshotRow, String> {
    let body: SnapshotBody = parse(body)?;
    let core = core(&body.core).filter(|core| core.id == task).ok_or("judged state is not the task's")?;
    Ok(SnapshotRow { core, row: body.row, closed_at: body.closed_at })
}

// Canonical bytes read back only as those of an open task, since the fold knows no other; a row may
// be that of a closed one.
fn core(canonical: &[u8]) -> Option<CoreState> {
    const STATE: usize = 9;
    let mut canonical: [u8; 51] = canonical.try_into().ok()?;
    let state = *TaskState::ALL.get(usize::from(canonical[STATE]))?;
    canonical[STATE] = TaskState::Created as u8;
    CoreState::from_canonical(&canonical).map(|core| CoreState { state, ..core })
}

pub(super) fn key_row(key_hash: Sha256Hash, body: &[u8]) -> Result<KeyRow, String> {
    let KeyBody { request_hash, task_id, created_at } = parse(body)?;
    Ok(KeyRow { key_hash, request_hash, task_id, created_at })
}

pub(super) fn overflow_entry(key: &[u8], body: &[u8]) -> Result<HistoryEntry, String> {
    let offset = key.get(8..16).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    let OverflowBody { rejected } = parse(body)?;
    Ok(HistoryEntry { offset: Offset(offset.ok_or("a key of the wrong length")?), rejected })
}

/// Ids are positive, so their bytes are ordered as they are.
pub(super) fn task_key(task: TaskId) -> Vec<u8> {
    task.raw().to_be_bytes().to_vec()
}

pub(super) fn payload_key(task: TaskId, item: &PayloadItem) -> Vec<u8> {
    let mut key = task_key(task);
    match item {
        PayloadItem::Parameters { payload_hash } => {
            key.push(1);
            key.extend_from_slice(&payload_hash.0);
        }
        PayloadItem::StepOutput { step, output_hash } => {
            key.push(2);
            key.extend_from_slice(&output_hash.0);
            key.extend_from_slice(step.as_bytes());
        }
        PayloadItem::Result { result_data_hash } => {
            key.push(3);
            key.extend_from_slice(&result_data_hash.0);
        }
        PayloadItem::ErrorText => key.push(4),
    }
    key
}

/// Table of a list, and how the keys of its entries start. A name may be of any length, which a key
/// of the tree may not: its hash stands for it.
pub(super) fn listing(listing: &Listing) -> (Table, Sha256Hash) {
    match listing {
        Listing::Trace(trace_id) => (Table::TasksByTrace, Sha256Hash::of(trace_id.as_bytes())),
        Listing::BusinessKey { creator, key } => {
            // With its length in front, so that no other creator and key are the same bytes.
            let mut name = (creator.len() as u64).to_be_bytes().to_vec();
            name.extend_from_slice(creator.as_bytes());
            name.extend_from_slice(key.as_bytes());
            (Table::TasksByBusinessKey, Sha256Hash::of(&name))
        }
    }
}

/// Key of a task in a list: the inverted id, so that the newest comes first.
pub(super) fn listing_key(name: Sha256Hash, task: TaskId) -> Vec<u8> {
    let mut key = name.0.to_vec();
    key.extend_from_slice(&(!task.raw()).to_be_bytes());
    key
}

pub(super) fn listed_task(key: &[u8]) -> Option<TaskId> {
    let id: &[u8; 8] = key.get(32..)?.try_into().ok()?;
    TaskId::from_raw(!i64::from_be_bytes(*id))
}

/// How the keys of a list of ended tasks start, and in which table they are.
pub(super) fn ended_list(list: &EndedList, partition: PartitionId) -> (Table, Vec<u8>) {
    match list {
        EndedList::All => (Table::TasksByTime, partition_key(partition)),
        EndedList::Code(code) => {
            let mut name = Sha256Hash::of(code.as_bytes()).0.to_vec();
            name.extend(partition_key(partition));
            (Table::FailuresByCode, name)
        }
        EndedList::Review => (Table::ReviewQueue, partition_key(partition)),
    }
}

/// Key of a task in such a list.
pub(super) fn ended_key(mut name: Vec<u8>, task: TaskId) -> Vec<u8> {
    name.extend_from_slice(&(!task.raw()).to_be_bytes());
    name
}

pub(super) fn ended_task(key: &[u8]) -> Option<TaskId> {
    let (_, id) = key.split_last_chunk::<8>()?;
    TaskId::from_raw(!i64::from_be_bytes(*id))
}

/// Table, key and body of an entry.
pub(super) fn ended_entry(entry: Entry, task: TaskId) -> Result<(Table, Vec<u8>, Bytes), StoreError> {
    let placed = |list| {
        let (table, name) = ended_list(&list, task.partition());
        (table, ended_key(name, task))
    };
    match entry {
        Entry::ByTime(summary) => {
            let (table, key) = placed(EndedList::All);
            let body = named(table, &key, &summary)?;
            Ok((table, key, body))
        }
        Entry::Code(code) => {
            let (table, key) = placed(EndedList::Code(code));
            Ok((table, key, Bytes::new()))
        }
        Entry::Review(waits) => {
            let (table, key) = placed(EndedList::Review);
            Ok((table, key, Bytes::from_static(if waits { WAITS } else { &[] })))
        }
    }
}

/// Body of an entry of the review queue that still waits.
pub(super) const WAITS: &[u8] = &[1];

pub(super) fn summary(task: TaskId, body: &[u8]) -> Result<TaskSummary, String> {
    let summary: TaskSummary = parse(body)?;
    if summary.id == task { Ok(summary) } else { Err("it is another task's".to_owned()) }
}

pub(super) fn partition_key(partition: PartitionId) -> Vec<u8> {
    partition.0.to_be_bytes().to_vec()
}

pub(super) fn offset(body: &[u8]) -> Result<Offset, String> {
    let bytes = body.try_into().map_err(|_| format!("{} bytes instead of 8", body.len()))?;
    Ok(Offset(u64::from_be_bytes(bytes)))
}

pub(super) fn checkpoint_key(name: &CheckpointName) -> Vec<u8> {
    let mut key = partition_key(name.partition);
    key.extend_from_slice(&name.offset.0.to_be_bytes());
    key.extend_from_slice(&name.epoch.0.to_be_bytes());
    key.extend_from_slice(&name.rule_version.0.to_be_bytes());
    key.extend_from_slice(&name.state_hash.to_be_bytes());
    key
}

pub(super) fn checkpoint_name(key: &[u8]) -> Option<CheckpointName> {
    let (partition, rest) = key.split_first_chunk()?;
    let (offset, rest) = rest.split_first_chunk()?;
    let (epoch, rest) = rest.split_first_chunk()?;
    let (rule_version, rest) = rest.split_first_chunk()?;
    Some(CheckpointName {
        partition: PartitionId(u16::from_be_bytes(*partition)),
        offset: Offset(u64::from_be_bytes(*offset)),
        epoch: PartitionEpoch(u32::from_be_bytes(*epoch)),
        rule_version: RuleVersion(u32::from_be_bytes(*rule_version)),
        state_hash: u128::from_be_bytes(rest.try_into().ok()?),
    })
}

/// Key of the entry by which the sweep finds what has expired: when, where.
pub(super) fn expiry_key(at_ms: i64, table: Table, key: &[u8]) -> Vec<u8> {
    // Times before 1970 are due as soon as 1970 is: their bytes would sort last.
    let mut out = at_ms.max(0).to_be_bytes().to_vec();
    out.push(table as u8);
    out.extend_from_slice(key);
    out
}

pub(super) fn expiry(key: &[u8]) -> Option<(i64, Table, &[u8])> {
    let (at_ms, rest) = key.split_first_chunk()?;
    let (table, key) = rest.split_first()?;
    let table = *Table::ALL.iter().find(|t| **t as u8 == *table)?;
    Some((i64::from_be_bytes(*at_ms), table, key))
}
