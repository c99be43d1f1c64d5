//! From a lane's poll thread to one tail: a buffer that is bounded by pausing the partition.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use task_events::{Offset, PartitionId};
use tokio::sync::Notify;

use crate::{LogError, RawRecord};

/// Bytes that one call of the reader gets, unless its first record is larger.
const READ_BYTES: usize = 1 << 20;

/// Buffer of one tail.
pub(super) struct Route {
    pub partition: PartitionId,
    most_bytes: usize,
    state: Mutex<State>,
    arrived: Notify,
    closed: AtomicBool,
}

struct State {
    records: VecDeque<RawRecord>,
    bytes: usize,
    next: Offset,
    paused: bool,
    /// A gap at this offset was read again once already: it is real.
    gap_at: Option<Offset>,
    failed: Option<LogError>,
}

/// What became of a record that arrived.
pub(super) enum Arrival {
    Taken,
    /// Taken, and the partition is to be paused.
    Full,
    /// An offset that was delivered before.
    Again,
    /// Records before it are missing: read from `expected` again.
    Gap {
        expected: Offset,
    },
}

/// What the reader gets.
pub(super) enum Taken {
    Records { records: Vec<RawRecord>, resume: bool },
    Failed(LogError),
    Nothing,
}

impl Route {
    pub fn new(partition: PartitionId, from: Offset, most_bytes: usize) -> Self {
        let state = State { records: VecDeque::new(), bytes: 0, next: from, paused: false, gap_at: None, failed: None };
        Self { partition, most_bytes, state: Mutex::new(state), arrived: Notify::new(), closed: AtomicBool::new(false) }
    }

    /// Called by the poll thread only.
    pub fn push(&self, record: RawRecord) -> Arrival {
        let mut state = self.state.lock();
        if record.offset < state.next || state.failed.is_some() {
            return Arrival::Again;
        }
        if record.offset > state.next && state.gap_at != Some(state.next) {
            // Nothing in this topic leaves offsets out (no compaction, no transactions), so the
            // client must have; if it is the log after all, the second look goes through.
            state.gap_at = Some(state.next);
            return Arrival::Gap { expected: state.next };
        }
        state.next = Offset(record.offset.0 + 1);
        state.bytes += size(&record);
        state.records.push_back(record);
        let full = !state.paused && state.bytes > self.most_bytes;
        state.paused |= full;
        drop(state);
        self.arrived.notify_one();
        if full { Arrival::Full } else { Arrival::Taken }
    }

    /// Called by the reader only.
    pub fn take(&self) -> Taken {
        let mut state = self.state.lock();
        let mut records = Vec::new();
        let mut bytes = 0;
        while let Some(record) = state.records.front() {
            let size = size(record);
            if !records.is_empty() && bytes + size > READ_BYTES {
                break;
            }
            bytes += size;
            records.extend(state.records.pop_front());
        }
        if records.is_empty() {
            return state.failed.clone().map_or(Taken::Nothing, Taken::Failed);
        }
        state.bytes -= bytes;
        let resume = state.paused && state.bytes <= self.most_bytes / 2;
        state.paused &= !resume;
        Taken::Records { records, resume }
    }

    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Offset expected next, if the route waits for records and isn't held up by its reader.
    pub fn waits_for(&self) -> Option<Offset> {
        let state = self.state.lock();
        (state.failed.is_none() && !state.paused && !self.is_closed()).then_some(state.next)
    }

    pub fn fail(&self, error: LogError) {
        self.state.lock().failed.get_or_insert(error);
        self.arrived.notify_one();
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

fn size(record: &RawRecord) -> usize {
    let headers: usize = record.headers.iter().map(|(name, value)| name.len() + value.len() + 56).sum();
    let of = |bytes: &Option<bytes::Bytes>| bytes.as_ref().map_or(0, bytes::Bytes::len);
    of(&record.key) + of(&record.value) + headers + 128
}
