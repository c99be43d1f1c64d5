//! How tasks open: by their creation, or by a replay that carries what was forgotten.

use std::sync::Arc;

use task_events::{
    Body, ClosedTask, Event, EventSequence, RunNo, TaskId, TaskReplayRequested, TaskReviewed, TaskState, TraceId,
    TraceParent,
};

use crate::{Cell, Change, Closed, Column, CoreState, PartitionState, Reason, Record, Review, Row, Slot};

impl PartitionState {
    /// Keeps what the record that opened a task says of its trace (`traceparent`, read by whoever reads
    /// headers): for the headers of later records, never for a verdict. Of another trace it says nothing.
    pub fn note_trace(&mut self, id: TaskId, parent: Option<TraceParent>) {
        let Some(parent) = parent.filter(|parent| !parent.sampling.is_recorded()) else { return };
        self.tasks.update(id, |slot| {
            if let Some(row) = &mut slot.row
                && TraceId::parse(row.trace_id.as_bytes()) == Some(parent.trace_id)
            {
                Arc::make_mut(row).sampling = parent.sampling;
            }
        });
    }

    pub(super) fn create(&mut self, record: &Record, id: TaskId) -> Result<Change, Reason> {
        let event = &record.event;
        let Body::TaskCreated(body) = &event.body else { return Err(Reason::UnknownTask) };
        if self.rules.id_order && id <= self.highest {
            return Err(Reason::IdOrder);
        }
        if self.tasks.get(id).is_some_and(|slot| self.cell(event.kind, slot.core.state) == Cell::No) {
            return Err(Reason::TaskOpen);
        }
        if self.rules.sequence && event.event_sequence != EventSequence(1) {
            return Err(Reason::StaleSequence);
        }
        if self.rules.run && event.run_no != RunNo(1) {
            return Err(Reason::WrongRun);
        }
        if self.rules.matrix.cell(event.kind, Column::Unknown) == Cell::No {
            return Err(Reason::NotAllowed);
        }
        self.highest = self.highest.max(id);
        let row = self.keep_rows.then(|| Row::created(body, event.event_time, event.trace_id.clone()));
        self.open(record, CoreState::created(id, body.max_retries), row);
        Ok(Change::Opened(id))
    }

    pub(super) fn check_carried(
        &self,
        event: &Event,
        id: TaskId,
        carried: &ClosedTask,
        opens: bool,
    ) -> Result<(), Reason> {
        if self.rules.id_order && id > self.highest {
            return Err(Reason::UnknownTask);
        }
        match self.tasks.get(id) {
            Some(slot) if self.cell(event.kind, slot.core.state) == Cell::No => return Err(Reason::TaskOpen),
            None if self.rules.matrix.cell(event.kind, Column::Unknown) == Cell::No => return Err(Reason::NotAllowed),
            Some(_) | None => {}
        }
        let run = if opens { carried.run_no.next() } else { Some(carried.run_no) };
        let continued = carried.event_sequence.next() == Some(event.event_sequence) && run == Some(event.run_no);
        if self.rules.carried && !(carried.state.is_terminal() && continued) {
            return Err(Reason::CarriedState);
        }
        Ok(())
    }

    pub(super) fn reopen(&mut self, record: &Record, id: TaskId, body: &TaskReplayRequested) -> Result<Change, Reason> {
        let carried = &body.carried;
        self.check_carried(&record.event, id, carried, true)?;
        let core = CoreState {
            state: TaskState::RetryApproved,
            version: record.event.event_sequence,
            run_no: record.event.run_no,
            exec_epoch: carried.exec_epoch,
            execution_id: carried.execution_id,
            ..CoreState::created(id, carried.created.max_retries)
        };
        let row = self.keep_rows.then(|| Row::replayed(body, record));
        self.open(record, core, row);
        Ok(Change::Opened(id))
    }

    pub(super) fn review(&mut self, record: &Record, id: TaskId, body: &TaskReviewed) -> Result<Change, Reason> {
        let carried = &body.carried;
        self.check_carried(&record.event, id, carried, false)?;
        let mut row = Row::reopened(carried, record);
        row.review = Some(Review::Decided(body.outcome));
        self.stamp(&mut row, record);
        row.note(record.offset, None);
        let core = CoreState {
            state: carried.state,
            version: record.event.event_sequence,
            run_no: carried.run_no,
            exec_epoch: carried.exec_epoch,
            execution_id: carried.execution_id,
            retry_count: carried.retry_count,
            lost_count: carried.lost_count,
            ..CoreState::created(id, carried.created.max_retries)
        };
        Ok(Change::Reviewed(Box::new(Closed { core, row: Arc::new(row), closed_at_offset: record.offset })))
    }

    pub(super) fn open(&mut self, record: &Record, core: CoreState, row: Option<Row>) {
        let row = row.map(|mut row| {
            self.stamp(&mut row, record);
            row.note(record.offset, None);
            Arc::new(row)
        });
        self.tasks.insert(Slot { core, row });
    }
}
