//! What was read back: fold it, then draw the consequences.

use std::sync::Arc;

use event_log::RawRecord;
use task_core::{Admission, Change, ControlChange, LastRecord, Record, Verdict};
use task_events::{Body, Offset, SUPPORTED_RULES, Service, TaskCreated, TaskId, writer_of};

use super::looking::Changing;
use super::{Alarm, Now, Owner, Phase, Stop};

impl Owner {
    /// Folds one record.
    pub(super) fn read_back(&mut self, now: Now, raw: &RawRecord) {
        if self.phase == Phase::Done {
            return;
        }
        match self.fold.admit(raw.offset) {
            Admission::Next => {}
            Admission::Seen => return,
            Admission::Gap => {
                return self.stop(now, Stop::Gap { expected: self.fold.next_offset, found: raw.offset });
            }
        }
        let decoded = raw.event();
        let event_id = decoded.as_ref().ok().map(|event| event.event_id);
        match decoded {
            Err(reason) => {
                self.fold.quarantine(raw.broker_ms);
                self.verdicts.quarantined(raw.offset);
                self.alarm(Alarm::Quarantined(raw.offset, reason));
            }
            Ok(event) => {
                let key = raw.record_key();
                let record = Record { offset: raw.offset, broker_ms: raw.broker_ms, key, event };
                let before = record.event.task_id.and_then(|id| self.changing(id));
                let verdict = self.fold.apply(&record);
                if let Verdict::Accepted(Change::Opened(id)) = &verdict {
                    self.fold.note_trace(*id, raw.trace_parent());
                }
                self.consequences(now, &record, before, verdict);
            }
        }
        self.fold.last = Some(LastRecord { offset: raw.offset, event_id, crc32c: raw.value_crc32c() });
        self.checkpoint_due(now);
    }

    fn consequences(&mut self, now: Now, record: &Record, before: Option<Changing>, verdict: Verdict) {
        let rejected = verdict.rejected();
        self.verdicts.note(record.offset, rejected);
        self.owe(now, record, &verdict);
        if let Verdict::Accepted(change) = verdict {
            if writer_of(record.event.kind) == Service::Coordinator {
                self.heard_owner(now);
            }
            self.list_change(before, &change);
            self.changed(now, record, change);
        }
        if let Some(at) = self.flight.at(record.event.event_id) {
            match rejected {
                None => self.own_accepted(now, record, at),
                Some(reason) => self.own_rejected(now, at, reason),
            }
        }
    }

    fn changed(&mut self, now: Now, record: &Record, change: Change) {
        match change {
            Change::Opened(id) => {
                self.moved(id);
                self.dispatch.keys.forget_closed(id);
                if let Some(created) = self.creation(id) {
                    *self.creators.entry(created.creator.clone()).or_default() += 1;
                }
                self.task_changed(now, id, record);
            }
            Change::Moved(id) | Change::Annotated(id) => self.task_changed(now, id, record),
            Change::Closed(closed) => {
                self.moved(closed.core.id);
                let creator = &closed.row.created.creator;
                if let Some(n) = self.creators.get_mut(creator) {
                    *n = n.saturating_sub(1);
                    if *n == 0 {
                        self.creators.remove(creator);
                    }
                }
                self.task_closed(now, &closed, record);
            }
            Change::Reviewed(closed) => self.moved(closed.core.id),
            Change::Reported(_) | Change::Forgotten(_) | Change::Sealed => {}
            Change::Control(ControlChange::Claimed) => self.claimed(now, &record.event, record.broker_ms),
            Change::Control(ControlChange::RulesActivated { version, known: false }) => {
                self.stop(now, Stop::UnknownRules { version, offset: record.offset, known: SUPPORTED_RULES });
            }
            Change::Control(ControlChange::Queue) => {
                if let Body::QueuePaused(_) | Body::QueueResumed(_) = &record.event.body {
                    self.dispatch.requeue(&self.fold);
                }
            }
            Change::Control(
                ControlChange::Renewed | ControlChange::RulesActivated { known: true, .. } | ControlChange::Advice,
            ) => {}
        }
    }

    // What lists ask for of an open task, as it stands.
    fn changing(&self, id: TaskId) -> Option<Changing> {
        let slot = self.fold.tasks.get(id)?;
        Some(Changing::of(slot.core.state, slot.row.as_deref()?))
    }

    // Lists know of it, before anybody is told.
    fn list_change(&mut self, before: Option<Changing>, change: &Change) {
        match change {
            Change::Opened(id) => {
                if let (Some(created), Some(now)) = (self.creation(*id), self.changing(*id)) {
                    self.open.opened(*id, &created, now);
                }
            }
            Change::Moved(id) => {
                if let (Some(before), Some(now)) = (before, self.changing(*id)) {
                    self.open.changed(*id, before, now);
                }
            }
            Change::Closed(closed) => {
                self.open.closed(closed.core.id, &closed.row.created, before.unwrap_or_default());
            }
            // An annotation changes nothing that a list asks for; all else is of no open task.
            Change::Annotated(_)
            | Change::Reviewed(_)
            | Change::Reported(_)
            | Change::Forgotten(_)
            | Change::Sealed
            | Change::Control(_) => {}
        }
    }

    fn creation(&self, id: TaskId) -> Option<Arc<TaskCreated>> {
        Some(self.fold.tasks.get(id)?.row.as_ref()?.created.clone())
    }

    /// Counts open tasks by creator anew.
    pub(super) fn count_creators(&mut self) {
        self.creators.clear();
        for slot in self.fold.tasks.iter() {
            if let Some(row) = &slot.row {
                *self.creators.entry(row.created.creator.clone()).or_default() += 1;
            }
        }
    }

    /// Offset up to which the record at hand has been folded.
    pub(super) const fn as_of(&self) -> Offset {
        self.fold.next_offset
    }
}
