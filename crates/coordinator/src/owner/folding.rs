//! What was read back: fold it, then draw the consequences.

use event_log::RawRecord;
use task_core::timers::Timers as _;
use task_core::{Admission, Change, ControlChange, HistoryEntry, LastRecord, Reason, Record, Verdict};
use task_events::{Body, Offset, RecordKey, RecordParts, SUPPORTED_RULES, TaskId, decode};

use super::work::Origin;
use super::{Alarm, Effect, Now, Owner, Phase, Rejections, Stop, Timer};

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
                return self.stop(Stop::Gap { expected: self.fold.next_offset, found: raw.offset });
            }
        }
        let headers = raw.headers.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
        let decoded = decode(RecordParts { headers, value: raw.value.as_deref() });
        let crc32c = crc32c::crc32c(raw.value.as_deref().unwrap_or_default());
        let event_id = decoded.as_ref().ok().map(|event| event.event_id);
        match decoded {
            Err(reason) => {
                self.fold.quarantine(raw.broker_ms);
                self.alarm(Alarm::Quarantined(raw.offset, reason));
            }
            Ok(event) => {
                let key = RecordKey::parse(raw.key.as_deref());
                let record = Record { offset: raw.offset, broker_ms: raw.broker_ms, key, event };
                let verdict = self.fold.apply(&record);
                self.consequences(now, &record, verdict);
            }
        }
        self.fold.last = Some(LastRecord { offset: raw.offset, event_id, crc32c });
        self.checkpoint_due();
    }

    fn consequences(&mut self, now: Now, record: &Record, verdict: Verdict) {
        let rejected = verdict.rejected();
        self.owe(now, record, &verdict);
        match verdict {
            Verdict::Rejected(reason) => self.note_rejection(now, record, reason),
            Verdict::Accepted(change) => self.changed(now, record, change),
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
                if let Some(creator) = self.creator(id) {
                    *self.creators.entry(creator).or_default() += 1;
                }
                self.task_changed(now, id, record);
            }
            Change::Moved(id) | Change::Annotated(id) => self.task_changed(now, id, record),
            Change::Closed(closed) => {
                if let Some(n) = self.creators.get_mut(&closed.row.created.creator) {
                    *n = n.saturating_sub(1);
                }
                self.task_closed(now, &closed, record);
            }
            Change::Reviewed(_) | Change::Reported(_) | Change::Forgotten(_) | Change::Sealed => {}
            Change::Control(ControlChange::Claimed) => self.claimed(now, &record.event),
            Change::Control(ControlChange::RulesActivated { version, known: false }) => {
                self.stop(Stop::UnknownRules { version, offset: record.offset, known: SUPPORTED_RULES });
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

    // An own record counts: it proves currency, and every earlier own record that was not accepted
    // is dead from here on.
    fn own_accepted(&mut self, now: Now, record: &Record, at: super::flight::At) {
        let dead = self.flight.take_before(at);
        let Some(own) = self.flight.remove(at) else { return };
        self.prove(own.appended_ms);
        self.clock.observe(now, record.broker_ms);
        if let Some(off) = self.clock.unsettled() {
            self.alarm(Alarm::ClockUnsettled(off));
        }
        if let Some(task) = own.task {
            self.closing.remove(&task);
            self.rejections.remove(&task);
        }
        match own.origin {
            Origin::Job(job, answer) => {
                self.reported(now, &job, record);
                self.reply(job.token, answer);
            }
            Origin::Create(job, id) => self.created(now, job, id, record.event.event_time),
            Origin::Assign(task) => self.assigned(now, task),
            Origin::Rider | Origin::Internal => {}
        }
        dead.into_iter().for_each(|record| self.dead(now, record));
        if let Some(task) = own.task {
            self.freed(now, task);
        }
    }

    // Not an answer yet: a copy of it may still land and be accepted.
    fn own_rejected(&mut self, now: Now, at: super::flight::At, reason: Reason) {
        if let Some(own) = self.flight.get_mut(at) {
            own.rejected = Some(reason);
        }
        if !self.rules.rejection_final
            && let Some(own) = self.flight.remove(at)
        {
            self.dead(now, own);
        }
    }

    // Three equal rejections of one task's own records: something is not as this owner thinks.
    fn note_rejection(&mut self, now: Now, record: &Record, reason: Reason) {
        let Some(task) = record.event.task_id.filter(|_| self.flight.at(record.event.event_id).is_some()) else {
            return;
        };
        let entry = self.rejections.entry(task).or_insert(Rejections { reason, count: 0, until_ms: 0 });
        entry.count = if entry.reason == reason { entry.count + 1 } else { 1 };
        entry.reason = reason;
        if entry.count >= 3 {
            let doubled = self.cfg.reject_backoff_ms << (entry.count - 3).min(16);
            entry.until_ms = now.boot_ms + doubled.min(self.cfg.reject_backoff_max_ms);
            let until = entry.until_ms;
            self.timers.arm((task, Timer::Backoff), until);
            self.alarm(Alarm::RejectedRepeatedly(task, reason));
        }
    }

    // Derives what the record makes the store owe: also while folding, since a successor owes what
    // its predecessor did not get acknowledged.
    fn owe(&mut self, now: Now, record: &Record, verdict: &Verdict) {
        let again = self.rules.owed_again || self.phase == Phase::Owning;
        if record.offset < self.acked || !again {
            return;
        }
        let clock = self.fold.row_clock_us;
        let entry = HistoryEntry { offset: record.offset, rejected: verdict.rejected() };
        let soon = now.boot_ms + self.cfg.row_lag_ms;
        match verdict {
            Verdict::Accepted(Change::Closed(closed) | Change::Reviewed(closed)) => {
                let bytes = self.row_bytes(&closed.row);
                self.owed.close((**closed).clone(), record.offset, now.boot_ms + self.cfg.pen_lag_ms, bytes);
            }
            Verdict::Accepted(
                Change::Opened(id) | Change::Moved(id) | Change::Annotated(id) | Change::Reported(id),
            ) if self.fold.tasks.get(*id).is_some() => {
                let due = if record.event.kind.class() == task_events::KindClass::TaskEvent {
                    now.boot_ms + self.cfg.pen_lag_ms
                } else {
                    soon
                };
                self.owed.open(*id, record.offset, due, 256);
            }
            Verdict::Accepted(_) | Verdict::Rejected(_) => match record.key {
                RecordKey::Task(id) if self.fold.tasks.get(id).is_some() => {
                    self.owed.open(id, record.offset, soon, 256);
                }
                // Written without reading: whether there is such a task is not known here.
                RecordKey::Task(id) => self.owed.add_overflow(id, clock, entry, soon),
                RecordKey::Control(_) | RecordKey::Other => {}
            },
        }
        if let (Body::TaskCreated(created), Verdict::Accepted(_), Some(task_id)) =
            (&record.event.body, verdict, record.event.task_id)
            && let Some(key_hash) = created.key_hash
        {
            let row = snapshot_store::KeyRow {
                key_hash,
                request_hash: created.request_hash,
                task_id,
                created_at: record.event.event_time,
            };
            self.owed.add_key(clock, row, record.offset, soon);
        }
    }

    /// This reader must not go on; the shell leaves the group.
    pub(super) fn stop(&mut self, stop: Stop) {
        if self.phase != Phase::Done {
            self.phase = Phase::Done;
            self.out.push(Effect::Stop(stop));
        }
    }

    fn creator(&self, id: TaskId) -> Option<task_events::Text> {
        Some(self.fold.tasks.get(id)?.row.as_ref()?.created.creator.clone())
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
