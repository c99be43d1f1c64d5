//! The invariants of design.md §5 that a fold can check by itself, one definition each; debug
//! assertions, simulator, searches and audit all call these. Predicates get the state before and
//! after a record; they know nothing of the rules that led from one to the other.

mod task;

use task_events::{Event, Kind, KindClass, PartitionEpoch, Service, writer_of};

use crate::{Change, CoreState, PartitionState, Record, Verdict};

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Number in design.md §5.
    pub invariant: u8,
    /// What was seen.
    pub what: String,
}

fn violation(invariant: u8, what: impl Into<String>) -> Result<(), Violation> {
    Err(Violation { invariant, what: what.into() })
}

/// What is known of the task of a record before it: the open state, or, once closed, the last
/// state a watcher remembers (the fold forgets it; an auditor does not).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Never created.
    Unborn,
    /// Open.
    Open(CoreState),
    /// Closed, with its last state.
    Closed(CoreState),
}

/// Checks one accepted record against the task's state before and after. Rejected records are
/// checked by [`unchanged`].
pub fn accepted_step(
    before: Before,
    event: &Event,
    after: Option<&CoreState>,
    partition: &PartitionState,
) -> Result<(), Violation> {
    let kind = event.kind;
    if event.producer.service != writer_of(kind) {
        return violation(5, format!("{kind} written by {}", event.producer.service));
    }
    let Some(id) = event.task_id else { return Ok(()) };
    if id.partition() != partition.partition {
        return violation(1, format!("task {id} in partition {}", partition.partition));
    }
    match kind.class() {
        KindClass::Annotation => task::annotation(before, event),
        KindClass::Report | KindClass::Seal | KindClass::Control => Ok(()),
        KindClass::TaskEvent => task::task_event(before, event, after),
    }
}

/// A rejected record changes nothing but the row clock, the offset and the counters (invariant 11).
pub fn unchanged(before: &PartitionState, after: &PartitionState, record: &Record) -> Result<(), Violation> {
    let own = |s: &PartitionState| (s.epoch, s.owner_seq, s.highest, s.active_rules, s.tasks.hash_sum());
    if own(before) == own(after) {
        Ok(())
    } else {
        violation(11, format!("rejected {} at {} changed the state", record.event.kind, record.offset))
    }
}

/// Ownership: epochs rise by one, no former owner is heard, ids rise (invariants 2, 4, 5).
pub fn ownership(before: &PartitionState, event: &Event, verdict: &Verdict) -> Result<(), Violation> {
    if matches!(verdict, Verdict::Rejected(_)) || writer_of(event.kind) != Service::Coordinator {
        return Ok(());
    }
    if event.kind == Kind::OwnershipClaimed {
        return if event.partition_epoch == before.epoch.next() {
            Ok(())
        } else {
            violation(4, format!("claim of epoch {:?} after {}", event.partition_epoch, before.epoch))
        };
    }
    if before.epoch == PartitionEpoch(0) {
        return violation(5, format!("{} before the first claim", event.kind));
    }
    if event.partition_epoch != Some(before.epoch) {
        return violation(5, format!("{} of epoch {:?} in epoch {}", event.kind, event.partition_epoch, before.epoch));
    }
    if event.owner_seq <= Some(before.owner_seq) {
        return violation(11, format!("owner_seq {:?} after {}", event.owner_seq, before.owner_seq));
    }
    match (event.kind, event.task_id) {
        (Kind::TaskCreated, Some(id)) if id <= before.highest => {
            violation(2, format!("id {id} is not above {}", before.highest))
        }
        _ => Ok(()),
    }
}

/// Nothing is silently lost: every offset was applied, rejected or quarantined (invariant 19).
pub fn adds_up(state: &PartitionState) -> Result<(), Violation> {
    if state.counters.total() == state.next_offset.0 {
        Ok(())
    } else {
        violation(19, format!("{} records counted before offset {}", state.counters.total(), state.next_offset))
    }
}

/// Whether a change closed the task with this final state.
pub fn closed_state(verdict: &Verdict) -> Option<CoreState> {
    match verdict {
        Verdict::Accepted(Change::Closed(closed) | Change::Reviewed(closed)) => Some(closed.core),
        Verdict::Accepted(Change::Forgotten(core)) => Some(*core),
        Verdict::Accepted(_) | Verdict::Rejected(_) => None,
    }
}
