//! The manifest of a checkpoint: partition fields, owner, counters, and the chunks by name.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use task_events::{EventId, Incarnation, Offset, OwnerSeq, PartitionEpoch, RuleVersion, Sha256Hash, TaskId, Text};

use super::CheckpointError;
use crate::{Counters, LastRecord, Owner, PartitionState, Reason};

pub(super) const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) version: u32,
    pub(super) partition: u16,
    pub(super) offset: u64,
    pub(super) epoch: u32,
    pub(super) owner_seq: u64,
    pub(super) highest: i64,
    pub(super) row_clock_us: i64,
    pub(super) active_rules: u32,
    pub(super) paused_queues: BTreeSet<Text>,
    pub(super) owner: Option<OwnerEntry>,
    pub(super) counters: CountersEntry,
    pub(super) last: Option<LastEntry>,
    pub(super) state_hash: String,
    pub(super) core_chunks: Vec<String>,
    pub(super) row_chunks: Vec<String>,
    /// Ids of the noted reports, 16 bytes each; absent in manifests without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) noted_chunks: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct OwnerEntry {
    pub(super) instance: Text,
    pub(super) incarnation: i64,
    pub(super) url: Text,
    pub(super) claim: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CountersEntry {
    pub(super) applied: u64,
    pub(super) control: u64,
    pub(super) quarantined: u64,
    pub(super) rejected: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct LastEntry {
    pub(super) offset: u64,
    pub(super) event_id: Option<String>,
    pub(super) crc32c: u32,
}

pub(super) fn fill(state: &mut PartitionState, m: &Manifest) -> Result<(), CheckpointError> {
    state.next_offset = Offset(m.offset);
    state.epoch = PartitionEpoch(m.epoch);
    state.owner_seq = OwnerSeq(m.owner_seq);
    state.highest = TaskId::from_raw(m.highest).unwrap_or(TaskId::ZERO);
    state.row_clock_us = m.row_clock_us;
    state.active_rules = RuleVersion(m.active_rules);
    state.paused_queues = m.paused_queues.clone();
    let mut rejected = [0; Reason::ALL.len()];
    rejected.iter_mut().zip(&m.counters.rejected).for_each(|(to, from)| *to = *from);
    state.counters = Counters {
        applied: m.counters.applied,
        control: m.counters.control,
        quarantined: m.counters.quarantined,
        rejected,
    };
    state.owner = match &m.owner {
        None => None,
        Some(o) => Some(Owner {
            instance: o.instance.clone(),
            incarnation: Incarnation(o.incarnation),
            url: o.url.clone(),
            claim: event_id(&o.claim)?,
        }),
    };
    state.last = match &m.last {
        None => None,
        Some(l) => Some(LastRecord {
            offset: Offset(l.offset),
            event_id: l.event_id.as_deref().map(event_id).transpose()?,
            crc32c: l.crc32c,
        }),
    };
    Ok(())
}

pub(super) fn parse(manifest: &[u8]) -> Result<Manifest, CheckpointError> {
    let m: Manifest = serde_json::from_slice(manifest).map_err(|e| CheckpointError::Manifest(e.to_string()))?;
    if m.version == VERSION {
        Ok(m)
    } else {
        Err(CheckpointError::Manifest(format!("version {} is not known", m.version)))
    }
}

pub(super) fn hash(text: &str) -> Result<Sha256Hash, CheckpointError> {
    let mut out = [0; 32];
    hex::decode_to_slice(text, &mut out).map_err(|e| CheckpointError::Manifest(e.to_string()))?;
    Ok(Sha256Hash(out))
}

pub(super) fn event_id(text: &str) -> Result<EventId, CheckpointError> {
    let mut out = [0; 16];
    hex::decode_to_slice(text, &mut out).map_err(|e| CheckpointError::Manifest(e.to_string()))?;
    Ok(EventId(out))
}
