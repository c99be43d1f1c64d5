//! The fold: `apply(state, record) -> Verdict`. Total, deterministic, without a clock.
//!
//! Every reader of the log comes to the same verdict here. The order of the checks is the order of
//! [`Reason`]; the text of the rules is `docs/acceptance.md`, from which the independent checker
//! was written.

mod control;
mod moving;
mod opening;

use std::sync::Arc;

use task_events::{Body, Kind, KindClass, RecordKey, TaskId};

use crate::{Change, PartitionState, Reason, Record, Row, Verdict};

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
            let (clock, rules) = (self.row_clock_us, self.active_rules);
            self.tasks.update(id, |slot| {
                if let Some(row) = &mut slot.row {
                    let row = Arc::make_mut(row);
                    row.note(record.offset, Some(reason));
                    (row.row_clock_us, row.rule_version) = (clock, rules);
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
                (Body::TaskReviewed(b), Some(id)) => self.review(record, id, b)?,
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

    fn stamp(&self, row: &mut Row, record: &Record) {
        row.applied_offset = record.offset;
        row.changed_broker_ms = record.broker_ms;
        (row.row_clock_us, row.rule_version) = (self.row_clock_us, self.active_rules);
    }

    fn touch_row(&mut self, record: &Record, id: TaskId) {
        if self.keep_rows {
            let (clock, rules) = (self.row_clock_us, self.active_rules);
            self.tasks.update(id, |slot| {
                if let Some(row) = &mut slot.row {
                    let row = Arc::make_mut(row);
                    (row.row_clock_us, row.rule_version) = (clock, rules);
                    row.applied_offset = record.offset;
                    row.note(record.offset, None);
                }
            });
        }
    }
}
