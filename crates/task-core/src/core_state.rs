//! What the fold must know about an open task to judge the next record: hashed, at most 200 bytes.
//! Everything people want to see stands beside it in [`crate::Row`].

use serde::{Deserialize, Serialize};
use task_events::{EventSequence, ExecEpoch, ExecutionId, RunNo, TaskId, TaskState};
use worker_protocol::Attempt;

/// Entity tag of a task in canonical bytes and checkpoint chunks; chains and schedules get others.
pub const ENTITY_TASK: u8 = 1;

/// Judged state of one open task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreState {
    /// Which task.
    pub id: TaskId,
    /// State; never a terminal one, since closed tasks are forgotten.
    pub state: TaskState,
    /// A cancel request was accepted in this run.
    pub cancel_requested: bool,
    /// The last attempt was closed by TaskLost, so its completion may still come in late.
    pub closed_by_lost: bool,
    /// The live attempt was assigned from RETRYING (else from CREATED): where a release leads back to.
    pub assigned_from_retrying: bool,
    /// Highest event_sequence accepted.
    pub version: EventSequence,
    /// Current run.
    pub run_no: RunNo,
    /// Fencing token of the last assignment, 0 = never assigned.
    pub exec_epoch: ExecEpoch,
    /// Its execution id.
    pub execution_id: ExecutionId,
    /// Approved retries after failures in this run.
    pub retry_count: u32,
    /// Approved retries after losses in this run.
    pub lost_count: u32,
    /// Limit of `retry_count`.
    pub max_retries: u32,
}

/// Losses after which the engine must give a run up (design.md §5).
pub const MAX_LOST: u32 = 5;

/// Length of the canonical bytes.
pub const CANONICAL_LEN: usize = 51;

impl CoreState {
    /// A task as TaskCreated leaves it.
    pub fn created(id: TaskId, max_retries: u32) -> Self {
        Self {
            id,
            state: TaskState::Created,
            cancel_requested: false,
            closed_by_lost: false,
            assigned_from_retrying: false,
            version: EventSequence(1),
            run_no: RunNo(1),
            exec_epoch: ExecEpoch(0),
            execution_id: ExecutionId::NONE,
            retry_count: 0,
            lost_count: 0,
            max_retries,
        }
    }

    /// The last attempt, live or not.
    pub fn attempt(&self) -> Attempt {
        Attempt { run_no: self.run_no, exec_epoch: self.exec_epoch, execution_id: self.execution_id }
    }

    /// *live* of design.md §5: the attempt is this task's and may be running.
    pub fn is_live(&self, attempt: Attempt) -> bool {
        self.state.is_live() && self.attempt() == attempt
    }

    /// *late* of design.md §5: the attempt is this task's last one and was closed by TaskLost.
    pub fn is_late(&self, attempt: Attempt) -> bool {
        self.closed_by_lost && !self.state.is_live() && self.attempt() == attempt
    }

    /// Canonical bytes (`schemas/state.md`): fixed length, big-endian, entity tag first.
    pub fn canonical(&self) -> [u8; CANONICAL_LEN] {
        let mut out = [0; CANONICAL_LEN];
        let flags = u8::from(self.cancel_requested)
            | u8::from(self.closed_by_lost) << 1
            | u8::from(self.assigned_from_retrying) << 2;
        out[0] = ENTITY_TASK;
        out[1..9].copy_from_slice(&self.id.raw().to_be_bytes());
        out[9] = self.state as u8;
        out[10] = flags;
        out[11..15].copy_from_slice(&self.version.0.to_be_bytes());
        out[15..19].copy_from_slice(&self.run_no.0.to_be_bytes());
        out[19..23].copy_from_slice(&self.exec_epoch.0.to_be_bytes());
        out[23..39].copy_from_slice(&self.execution_id.0);
        out[39..43].copy_from_slice(&self.retry_count.to_be_bytes());
        out[43..47].copy_from_slice(&self.lost_count.to_be_bytes());
        out[47..51].copy_from_slice(&self.max_retries.to_be_bytes());
        out
    }

    /// Reads canonical bytes back; `None` when they are not those of an open task.
    pub fn from_canonical(bytes: &[u8; CANONICAL_LEN]) -> Option<Self> {
        let u32_at = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let id = TaskId::from_raw(i64::from_be_bytes(bytes[1..9].try_into().ok()?))?;
        let state = *TaskState::ALL.get(usize::from(bytes[9]))?;
        if bytes[0] != ENTITY_TASK || state.is_terminal() || bytes[10] > 7 {
            return None;
        }
        Some(Self {
            id,
            state,
            cancel_requested: bytes[10] & 1 != 0,
            closed_by_lost: bytes[10] & 2 != 0,
            assigned_from_retrying: bytes[10] & 4 != 0,
            version: EventSequence(u32_at(11)),
            run_no: RunNo(u32_at(15)),
            exec_epoch: ExecEpoch(u32_at(19)),
            execution_id: ExecutionId(bytes[23..39].try_into().ok()?),
            retry_count: u32_at(39),
            lost_count: u32_at(43),
            max_retries: u32_at(47),
        })
    }

    /// This task's share of the state hash.
    pub fn hash(&self) -> u128 {
        xxhash_rust::xxh3::xxh3_128(&self.canonical())
    }
}

const _: () = assert!(size_of::<CoreState>() <= 200, "design.md §4.8: at most 200 bytes a task");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_bytes_read_back() {
        let id = TaskId::from_raw(77).unwrap();
        let mut s = CoreState::created(id, 3);
        s.state = TaskState::RetryApproved;
        s.cancel_requested = true;
        s.closed_by_lost = true;
        s.execution_id = ExecutionId::new(id, ExecEpoch(9));
        s.lost_count = 4;
        assert_eq!(CoreState::from_canonical(&s.canonical()), Some(s));
        s.state = TaskState::Success;
        assert_eq!(CoreState::from_canonical(&s.canonical()), None, "closed tasks are forgotten");
    }
}
