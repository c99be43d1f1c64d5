//! Own records between append and read-back.
//!
//! A record leaves the table in one of three ways: it is read back as accepted; it is dead,
//! because a later own record (or a newer claim) was accepted and no copy of it can be accepted
//! any more; or the owner itself is gone. A rejection alone does not make it dead: a copy that a
//! producer wrote twice may still land and be accepted (design.md §4.4).

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use task_core::Reason;
use task_events::{EventId, OwnerSeq, PartitionEpoch, TaskId};

use super::Ticket;
use super::work::Origin;

/// Position of an own record.
pub(super) type At = (PartitionEpoch, OwnerSeq);

/// One own record.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) event_id: EventId,
    pub(super) ticket: Ticket,
    /// Task that must not be decided about meanwhile.
    pub(super) task: Option<TaskId>,
    /// What it was written for; the last record of a batch bears it.
    pub(super) origin: Origin,
    /// Boot time of the append, for the proof of being current.
    pub(super) appended_ms: u64,
    /// The same in µs, for people.
    pub(super) appended_us: u64,
    /// It ends the attempt on the owner's own account: what signs of life are worth meanwhile is
    /// known only when it is read back.
    pub(super) closes: bool,
    /// Read back as rejected, but not dead yet.
    pub(super) rejected: Option<Reason>,
}

#[derive(Debug, Default)]
pub(super) struct Flight {
    records: BTreeMap<At, InFlight>,
    by_id: HashMap<EventId, At, FixedState>,
    busy: HashMap<TaskId, u32, FixedState>,
    closing: HashMap<TaskId, u32, FixedState>,
}

fn count(of: &mut HashMap<TaskId, u32, FixedState>, task: TaskId) {
    *of.entry(task).or_default() += 1;
}

fn discount(of: &mut HashMap<TaskId, u32, FixedState>, task: TaskId) {
    if let Some(n) = of.get_mut(&task) {
        *n -= 1;
        if *n == 0 {
            of.remove(&task);
        }
    }
}

impl Flight {
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn is_busy(&self, task: TaskId) -> bool {
        self.busy.contains_key(&task)
    }

    /// Whether a record is in flight that ends the task's attempt.
    pub(super) fn is_closing(&self, task: TaskId) -> bool {
        self.closing.contains_key(&task)
    }

    pub(super) fn insert(&mut self, at: At, record: InFlight) {
        if let Some(task) = record.task {
            count(&mut self.busy, task);
            if record.closes {
                count(&mut self.closing, task);
            }
        }
        self.by_id.insert(record.event_id, at);
        self.records.insert(at, record);
    }

    pub(super) fn at(&self, id: EventId) -> Option<At> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn get_mut(&mut self, at: At) -> Option<&mut InFlight> {
        self.records.get_mut(&at)
    }

    pub(super) fn remove(&mut self, at: At) -> Option<InFlight> {
        let record = self.records.remove(&at)?;
        self.by_id.remove(&record.event_id);
        if let Some(task) = record.task {
            discount(&mut self.busy, task);
            if record.closes {
                discount(&mut self.closing, task);
            }
        }
        Some(record)
    }

    /// Takes every record before `at`, in order: a later own record was accepted, they are dead.
    pub(super) fn take_before(&mut self, at: At) -> Vec<InFlight> {
        let dead: Vec<At> = self.records.range(..at).map(|(at, _)| *at).collect();
        dead.into_iter().filter_map(|at| self.remove(at)).collect()
    }

    /// Takes everything.
    pub(super) fn take_all(&mut self) -> Vec<InFlight> {
        let all: Vec<At> = self.records.keys().copied().collect();
        all.into_iter().filter_map(|at| self.remove(at)).collect()
    }

    /// The task of the first create.
    pub(super) fn first_create(&self) -> Option<TaskId> {
        self.records.values().find_map(|record| match record.origin {
            Origin::Create(_, id) => Some(id),
            Origin::Rider | Origin::Job(..) | Origin::Assign(_) | Origin::Internal => None,
        })
    }

    /// Whether a rejected record waits for a later own record to make its rejection final, and
    /// none is under way.
    pub(super) fn needs_follower(&self) -> bool {
        self.records.last_key_value().is_some_and(|(_, r)| r.rejected.is_some())
    }

    /// The records of one append.
    pub(super) fn of_ticket(&self, ticket: Ticket) -> impl Iterator<Item = &InFlight> {
        self.records.values().filter(move |r| r.ticket == ticket)
    }

    /// Takes the records of one append.
    pub(super) fn take_ticket(&mut self, ticket: Ticket) -> Vec<InFlight> {
        let of: Vec<At> = self.records.iter().filter(|(_, r)| r.ticket == ticket).map(|(at, _)| *at).collect();
        of.into_iter().filter_map(|at| self.remove(at)).collect()
    }
}
