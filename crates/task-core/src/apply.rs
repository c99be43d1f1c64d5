//! The fold: `apply(state, record) -> Verdict`. Total, deterministic, without a clock.
//!
//! Every reader of the log comes to the same verdict here. The order of the checks is the order of
//! [`Reason`]; the text of the rules is `docs/acceptance.md`, from which the independent checker
//! was written.

use std::sync::Arc;

use task_events::{
    Body, ClosedTask, Event, EventSequence, ExecEpoch, Kind, KindClass, OwnerSeq, PartitionEpoch, RecordKey, RunNo,
    SUPPORTED_RULES, Service, TaskId, TaskReplayRequested, TaskState, writer_of,
};

use crate::core_state::MAX_LOST;
use crate::meaning::{Meant, attempt_of};
use crate::transition::transition;
use crate::{
    Cell, Change, Closed, Column, ControlChange, CoreState, Owner, PartitionState, Reason, Record, Row, Slot, Verdict,
};

impl PartitionState {
    /// Folds the next record. The caller has made sure by [`PartitionState::admit`] that it is.
    pub fn apply(&mut self, record: &Record) -> Verdict {
        self.step(record.broker_ms);
        let verdict = match self.judge(record) {
            Ok(change) => Verdict::Accepted(change),
            Err(reason) => {
                self.note_rejection(record, reason);
                Verdict::Rejected(reason)
            }
        };
        match &verdict {
            Verdict::Accepted(Change::Control(_)) => self.counters.control += 1,
            Verdict::Accepted(_) => self.counters.applied += 1,
            Verdict::Rejected(reason) => self.counters.rejected[*reason as usize] += 1,
        }
        verdict
    }

    // A rejected record shows in the history of the open task whose key it bears.
    fn note_rejection(&mut self, record: &Record, reason: Reason) {
        if let (true, RecordKey::Task(id)) = (self.keep_rows, record.key) {
            let clock = self.row_clock_us;
            self.tasks.update(id, |slot| {
                if let Some(row) = &mut slot.row {
                    let row = Arc::make_mut(row);
                    row.note(record.offset, Some(reason));
                    row.row_clock_us = clock;
                }
            });
        }
    }

    fn judge(&mut self, record: &Record) -> Result<Change, Reason> {
        let event = &record.event;
        let kind = event.kind;
        let class = kind.class();
        self.check_key(record, class)?;
        if kind == Kind::OwnershipClaimed {
            return self.claim(event);
        }
        let owner_seq = self.check_fence(event)?;
        let change = match class {
            KindClass::Seal => Change::Sealed,
            KindClass::Control => Change::Control(self.control(event)?),
            KindClass::Report => self.report(record)?,
            KindClass::TaskEvent | KindClass::Annotation => match (&event.body, event.task_id) {
                (_, None) => return Err(Reason::WrongKey),
                (Body::TaskCreated(_), Some(id)) => self.create(record, id)?,
                (Body::TaskReplayRequested(b), Some(id)) => self.reopen(record, id, b)?,
                (Body::TaskReviewed(b), Some(id)) => self.review(record, id, &b.carried)?,
                (_, Some(id)) => self.move_on(record, id)?,
            },
        };
        if let Some(seq) = owner_seq {
            self.owner_seq = seq;
        }
        Ok(change)
    }

    fn check_key(&self, record: &Record, class: KindClass) -> Result<(), Reason> {
        if !self.rules.key {
            return Ok(());
        }
        let expected = match (class, record.event.task_id) {
            (KindClass::Control | KindClass::Seal, None) => RecordKey::Control(self.partition),
            (KindClass::TaskEvent | KindClass::Annotation | KindClass::Report, Some(id)) => RecordKey::Task(id),
            (KindClass::Control | KindClass::Seal, Some(_))
            | (KindClass::TaskEvent | KindClass::Annotation | KindClass::Report, None) => return Err(Reason::WrongKey),
        };
        if let (RecordKey::Control(p), RecordKey::Control(_)) = (record.key, expected)
            && p != self.partition
        {
            return Err(Reason::WrongPartition);
        }
        if record.key != expected {
            return Err(Reason::WrongKey);
        }
        match record.event.task_id {
            Some(id) if id.partition() != self.partition => Err(Reason::WrongPartition),
            _ => Ok(()),
        }
    }

    fn claim(&mut self, event: &Event) -> Result<Change, Reason> {
        let Body::OwnershipClaimed(body) = &event.body else { return Err(Reason::WrongKey) };
        let next = self.epoch.next();
        if self.rules.claim_order && (event.partition_epoch != next || next.is_none()) {
            return Err(Reason::ClaimConflict);
        }
        self.epoch = event.partition_epoch.ok_or(Reason::ClaimConflict)?;
        self.owner_seq = OwnerSeq(0);
        self.owner = Some(Owner {
            instance: event.producer.instance.clone(),
            incarnation: event.producer.incarnation,
            url: body.url.clone(),
            claim: event.event_id,
        });
        Ok(Change::Control(ControlChange::Claimed))
    }

    // The owner_seq to remember, for owner kinds.
    fn check_fence(&self, event: &Event) -> Result<Option<OwnerSeq>, Reason> {
        if writer_of(event.kind) != Service::Coordinator {
            return Ok(None);
        }
        // Epoch 0 is nobody's: before the first claim there is no owner to hear.
        if self.rules.fence && (self.epoch == PartitionEpoch(0) || event.partition_epoch != Some(self.epoch)) {
            return Err(Reason::StaleEpoch);
        }
        let seq = event.owner_seq.unwrap_or_default();
        if self.rules.owner_seq && seq <= self.owner_seq {
            return Err(Reason::StaleOwnerSeq);
        }
        Ok(Some(seq.max(self.owner_seq)))
    }

    fn control(&mut self, event: &Event) -> Result<ControlChange, Reason> {
        match &event.body {
            Body::OwnershipRenewed(_) => Ok(ControlChange::Renewed),
            Body::RulesActivated(b) => {
                if b.activated <= self.active_rules {
                    return Err(Reason::RulesNotForward);
                }
                self.active_rules = b.activated;
                Ok(ControlChange::RulesActivated { version: b.activated, known: b.activated <= SUPPORTED_RULES })
            }
            Body::QueuePaused(b) => {
                self.paused_queues.insert(b.queue.clone());
                Ok(ControlChange::Queue)
            }
            Body::QueueResumed(b) => {
                self.paused_queues.remove(&b.queue);
                Ok(ControlChange::Queue)
            }
            _ => Ok(ControlChange::Advice),
        }
    }

    fn report(&mut self, record: &Record) -> Result<Change, Reason> {
        let id = record.event.task_id.ok_or(Reason::WrongKey)?;
        if self.rules.sequence && record.event.event_sequence != EventSequence(0) {
            return Err(Reason::StaleSequence);
        }
        self.touch_row(record, id);
        Ok(Change::Reported(id))
    }

    fn create(&mut self, record: &Record, id: TaskId) -> Result<Change, Reason> {
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

    fn check_carried(&self, event: &Event, id: TaskId, carried: &ClosedTask, opens: bool) -> Result<(), Reason> {
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

    fn reopen(&mut self, record: &Record, id: TaskId, body: &TaskReplayRequested) -> Result<Change, Reason> {
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

    fn review(&mut self, record: &Record, id: TaskId, carried: &ClosedTask) -> Result<Change, Reason> {
        self.check_carried(&record.event, id, carried, false)?;
        let mut row = Row::reopened(carried, record);
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

    fn open(&mut self, record: &Record, core: CoreState, row: Option<Row>) {
        let row = row.map(|mut row| {
            self.stamp(&mut row, record);
            row.note(record.offset, None);
            Arc::new(row)
        });
        self.tasks.insert(Slot { core, row });
    }

    fn move_on(&mut self, record: &Record, id: TaskId) -> Result<Change, Reason> {
        let event = &record.event;
        let core = self.tasks.get(id).ok_or(Reason::UnknownTask)?.core;
        self.check_numbers(event, &core)?;
        self.check_state(event, &core)?;
        let annotation = event.kind.class() == KindClass::Annotation;
        let (clock, keep) = (self.row_clock_us, self.keep_rows);
        self.tasks.update(id, |slot| {
            if !annotation {
                transition(&mut slot.core, event);
            }
            if keep && let Some(row) = &mut slot.row {
                let row = Arc::make_mut(row);
                (row.applied_offset, row.changed_broker_ms, row.row_clock_us) =
                    (record.offset, record.broker_ms, clock);
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

    fn forget(&mut self, id: TaskId, record: &Record) -> Change {
        match self.tasks.remove(id) {
            Some(Slot { core, row: Some(row) }) => {
                Change::Closed(Box::new(Closed { core, row, closed_at_offset: record.offset }))
            }
            Some(Slot { core, row: None }) => Change::Forgotten(core),
            None => Change::Moved(id),
        }
    }

    fn check_numbers(&self, event: &Event, core: &CoreState) -> Result<(), Reason> {
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

    fn check_state(&self, event: &Event, core: &CoreState) -> Result<(), Reason> {
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
    fn cell(&self, kind: Kind, state: TaskState) -> Cell {
        self.rules.matrix.cell(kind, Column::of(state))
    }

    fn stamp(&self, row: &mut Row, record: &Record) {
        row.applied_offset = record.offset;
        row.changed_broker_ms = record.broker_ms;
        row.row_clock_us = self.row_clock_us;
    }

    fn touch_row(&mut self, record: &Record, id: TaskId) {
        if self.keep_rows {
            let clock = self.row_clock_us;
            self.tasks.update(id, |slot| {
                if let Some(row) = &mut slot.row {
                    let row = Arc::make_mut(row);
                    row.row_clock_us = clock;
                    row.applied_offset = record.offset;
                    row.note(record.offset, None);
                }
            });
        }
    }
}
