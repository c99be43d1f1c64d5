//! How open tasks move on: numbers, attempt, matrix, cancel, limits, in this order.

use std::sync::Arc;

use task_events::{Event, ExecEpoch, Kind, KindClass, TaskId, TaskState};

use crate::core_state::MAX_LOST;
use crate::meaning::{Meant, attempt_of};
use crate::transition::transition;
use crate::{Cell, Change, Closed, Column, CoreState, PartitionState, Reason, Record, Slot};

impl PartitionState {
    pub(super) fn move_on(&mut self, record: &Record, id: TaskId) -> Result<Change, Reason> {
        let event = &record.event;
        let core = self.tasks.get(id).ok_or(Reason::UnknownTask)?.core;
        self.check_numbers(event, &core)?;
        self.check_state(event, &core)?;
        let annotation = event.kind.class() == KindClass::Annotation;
        let (clock, rules, keep) = (self.row_clock_us, self.active_rules, self.keep_rows);
        self.tasks.update(id, |slot| {
            if !annotation {
                transition(&mut slot.core, event);
            }
            if keep && let Some(row) = &mut slot.row {
                let row = Arc::make_mut(row);
                (row.applied_offset, row.changed_broker_ms) = (record.offset, record.broker_ms);
                (row.row_clock_us, row.rule_version) = (clock, rules);
                row.note(record.offset, None);
                row.take(&event.body, event.event_time, slot.core.version, slot.core.state);
            }
        });
        if annotation {
            return Ok(Change::Annotated(id));
        }
        match self.tasks.get(id) {
            Some(slot) if slot.core.state.is_terminal() => Ok(self.forget(id, record)),
            Some(_) | None => Ok(Change::Moved(id)),
        }
    }

    pub(super) fn forget(&mut self, id: TaskId, record: &Record) -> Change {
        match self.tasks.remove(id) {
            Some(Slot { core, row: Some(row) }) => {
                Change::Closed(Box::new(Closed { core, row, closed_at_offset: record.offset }))
            }
            Some(Slot { core, row: None }) => Change::Forgotten(core),
            None => Change::Moved(id),
        }
    }

    pub(super) fn check_numbers(&self, event: &Event, core: &CoreState) -> Result<(), Reason> {
        // TaskOverdue stands on the current version; other annotations ride before their event.
        let expected = if event.kind == Kind::TaskOverdue { Some(core.version) } else { core.version.next() };
        if self.rules.sequence && Some(event.event_sequence) != expected {
            return Err(Reason::StaleSequence);
        }
        if self.rules.run && event.run_no != core.run_no {
            return Err(Reason::WrongRun);
        }
        let (epoch, execution) = match attempt_of(event, core) {
            Meant::None => return Ok(()),
            Meant::Next => (core.exec_epoch.next(), None),
            Meant::Last(execution) => (Some(core.exec_epoch).filter(|e| *e != ExecEpoch(0)), Some(execution)),
        };
        if self.rules.exec_epoch && Some(event.exec_epoch) != epoch {
            return Err(Reason::WrongAttempt);
        }
        if self.rules.execution_id && execution.is_some_and(|e| e != core.execution_id) {
            return Err(Reason::WrongAttempt);
        }
        Ok(())
    }

    pub(super) fn check_state(&self, event: &Event, core: &CoreState) -> Result<(), Reason> {
        match self.cell(event.kind, core.state) {
            Cell::Yes => {}
            Cell::Late if core.closed_by_lost => {}
            Cell::Late | Cell::No => return Err(Reason::NotAllowed),
        }
        if self.rules.cancel && !self.rules.cancel_by_kind[event.kind as usize].allows(core.cancel_requested) {
            return Err(Reason::CancelRequested);
        }
        if self.rules.counters && event.kind == Kind::TaskRetryApproved {
            let exhausted = if core.state == TaskState::Lost {
                core.lost_count >= MAX_LOST
            } else {
                core.retry_count >= core.max_retries
            };
            if exhausted {
                return Err(Reason::RetriesExhausted);
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn cell(&self, kind: Kind, state: TaskState) -> Cell {
        self.rules.matrix.cell(kind, Column::of(state))
    }
}
