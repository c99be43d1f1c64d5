//! Checkpoints (design.md §4.10): the state at an offset, frozen without stopping the fold, cut
//! into chunks under their SHA-256, and a manifest that names them.
//!
//! Judged state and row fields go into chunks of their own, and so do the noted reports; readers
//! that keep no rows skip the last two.
//! Whoever loads a checkpoint recomputes the state hash; a difference is an error, never repaired.

mod manifest;

use std::sync::Arc;

use bytes::Bytes;
use task_events::{ExecutionId, Offset, PartitionId, Sha256Hash, TaskId};

use self::manifest::{CountersEntry, LastEntry, Manifest, OwnerEntry, VERSION, fill, hash, parse};
use crate::core_state::CANONICAL_LEN;
use crate::table::Frozen;
use crate::{CoreState, MAX_NOTED, NotedReports, PartitionState, Row, Rules, Slot, TaskTable};

/// Checkpoints stand at offsets divisible by this (design.md §4.10).
pub const EVERY: u64 = 65_536;

/// Tasks in one chunk: keeps a chunk near 1 MiB with rows.
pub const TASKS_PER_CHUNK: usize = 1024;

/// The state at one offset, shared with the fold that goes on.
#[derive(Clone, Debug)]
pub struct FrozenState {
    head: PartitionState,
    noted: Vec<ExecutionId>,
    tasks: Frozen,
}

/// What a checkpoint is stored as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Chunks, each to be stored under its hash before the manifest.
    pub chunks: Vec<(Sha256Hash, Bytes)>,
    /// Manifest (JSON).
    pub manifest: Bytes,
}

/// Why a checkpoint cannot be used; the reader takes an older one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Not a manifest of this format.
    #[error("manifest: {0}")]
    Manifest(String),
    /// A chunk is not there.
    #[error("chunk {0} is missing")]
    Missing(Sha256Hash),
    /// A chunk's content does not have its hash, or is not one.
    #[error("chunk {0} is damaged")]
    Chunk(Sha256Hash),
    /// The loaded state does not have the hash it was named by.
    #[error("state hash {found:032x} instead of {named:032x}")]
    StateHash {
        /// In the manifest.
        named: u128,
        /// Recomputed.
        found: u128,
    },
}

impl PartitionState {
    /// The state as it is now, for a checkpoint; costs one pointer per 64 open tasks and 16 bytes
    /// per noted report.
    pub fn freeze(&self) -> FrozenState {
        FrozenState { head: self.clone_head(), noted: self.noted.iter().collect(), tasks: self.tasks.freeze() }
    }

    fn clone_head(&self) -> Self {
        Self {
            paused_queues: self.paused_queues.clone(),
            owner: self.owner.clone(),
            noted: NotedReports::default(),
            tasks: TaskTable::default(),
            ..*self
        }
    }
}

impl FrozenState {
    /// Offset of the next record to fold.
    pub const fn offset(&self) -> Offset {
        self.head.next_offset
    }

    /// Chunks and manifest. Takes time with many tasks: not on the owner's loop.
    pub fn parts(&self) -> Parts {
        let tasks = self.tasks.sorted();
        let mut chunks = Vec::new();
        let (mut core_chunks, mut row_chunks) = (Vec::new(), Vec::new());
        let mut sum = 0u128;
        for group in tasks.chunks(TASKS_PER_CHUNK) {
            let mut core = Vec::with_capacity(group.len() * CANONICAL_LEN);
            for slot in group {
                let bytes = slot.core.canonical();
                sum = sum.wrapping_add(xxhash_rust::xxh3::xxh3_128(&bytes));
                core.extend_from_slice(&bytes);
            }
            core_chunks.push(add(&mut chunks, core));
            let rows: Vec<(TaskId, &Row)> =
                group.iter().filter_map(|s| s.row.as_deref().map(|row| (s.core.id, row))).collect();
            // Writing to memory fails only for types MessagePack cannot express, which the unit test excludes.
            if let (false, Ok(coded)) = (rows.is_empty(), rmp_serde::to_vec_named(&rows)) {
                row_chunks.push(add(&mut chunks, coded));
            }
        }
        let ids = |group: &[ExecutionId]| group.iter().flat_map(|id| id.0).collect();
        let noted_chunks = self.noted.chunks(MAX_NOTED).map(|group| add(&mut chunks, ids(group))).collect();
        let h = &self.head;
        let state_hash = sum.wrapping_add(xxhash_rust::xxh3::xxh3_128(&h.canonical()));
        let manifest = Manifest {
            version: VERSION,
            partition: h.partition.0,
            offset: h.next_offset.0,
            epoch: h.epoch.0,
            owner_seq: h.owner_seq.0,
            highest: h.highest.raw(),
            row_clock_us: h.row_clock_us,
            active_rules: h.active_rules.0,
            paused_queues: h.paused_queues.clone(),
            owner: h.owner.as_ref().map(|o| OwnerEntry {
                instance: o.instance.clone(),
                incarnation: o.incarnation.0,
                url: o.url.clone(),
                claim: hex::encode(o.claim.0),
            }),
            counters: CountersEntry {
                applied: h.counters.applied,
                control: h.counters.control,
                quarantined: h.counters.quarantined,
                rejected: h.counters.rejected.to_vec(),
            },
            last: h.last.map(|l| LastEntry {
                offset: l.offset.0,
                event_id: l.event_id.map(|e| hex::encode(e.0)),
                crc32c: l.crc32c,
            }),
            state_hash: format!("{state_hash:032x}"),
            core_chunks,
            row_chunks,
            noted_chunks,
        };
        let manifest = serde_json::to_vec(&manifest).unwrap_or_default().into();
        Parts { chunks, manifest }
    }
}

fn add(chunks: &mut Vec<(Sha256Hash, Bytes)>, bytes: Vec<u8>) -> String {
    let hash = Sha256Hash::of(&bytes);
    chunks.push((hash, bytes.into()));
    hash.to_string()
}

/// Chunks a manifest names, to be fetched before [`load`].
pub fn chunks_of(manifest: &[u8], with_rows: bool) -> Result<Vec<Sha256Hash>, CheckpointError> {
    let m = parse(manifest)?;
    let rows = m.row_chunks.iter().chain(&m.noted_chunks).filter(|_| with_rows);
    m.core_chunks.iter().chain(rows).map(|text| hash(text)).collect()
}

/// Rebuilds the state; recomputes every hash on the way. `rules`: the standard ones
/// ([`crate::STANDARD`]) outside of mutation searches.
pub fn load(
    manifest: &[u8],
    with_rows: bool,
    rules: &'static Rules,
    chunk: impl Fn(Sha256Hash) -> Option<Bytes>,
) -> Result<PartitionState, CheckpointError> {
    let m = parse(manifest)?;
    let fetch = |text: &String| {
        let hash = hash(text)?;
        let bytes = chunk(hash).ok_or(CheckpointError::Missing(hash))?;
        if Sha256Hash::of(&bytes) == hash { Ok((hash, bytes)) } else { Err(CheckpointError::Chunk(hash)) }
    };
    let mut state = PartitionState::with_rules(PartitionId(m.partition), with_rows, rules);
    for text in &m.core_chunks {
        let (hash, bytes) = fetch(text)?;
        let (tasks, rest) = bytes.as_chunks::<CANONICAL_LEN>();
        if !rest.is_empty() {
            return Err(CheckpointError::Chunk(hash));
        }
        for task in tasks {
            let core = CoreState::from_canonical(task).ok_or(CheckpointError::Chunk(hash))?;
            state.tasks.insert(Slot { core, row: None });
        }
    }
    if with_rows {
        for text in &m.row_chunks {
            let (hash, bytes) = fetch(text)?;
            let rows: Vec<(TaskId, Row)> = rmp_serde::from_slice(&bytes).map_err(|_| CheckpointError::Chunk(hash))?;
            for (id, row) in rows {
                state.tasks.update(id, |slot| slot.row = Some(Arc::new(row))).ok_or(CheckpointError::Chunk(hash))?;
            }
        }
        for text in &m.noted_chunks {
            let (hash, bytes) = fetch(text)?;
            let (ids, rest) = bytes.as_chunks::<16>();
            if !rest.is_empty() {
                return Err(CheckpointError::Chunk(hash));
            }
            ids.iter().for_each(|id| state.noted.insert(ExecutionId(*id)));
        }
        if let Some(slot) = state.tasks.iter().find(|slot| slot.row.is_none()) {
            return Err(CheckpointError::Manifest(format!("task {} has no row", slot.core.id)));
        }
    }
    fill(&mut state, &m)?;
    let named = u128::from_str_radix(&m.state_hash, 16).map_err(|e| CheckpointError::Manifest(e.to_string()))?;
    let found = state.hash();
    if named == found { Ok(state) } else { Err(CheckpointError::StateHash { named, found }) }
}
