//! The log: what was sent lands when the test says so, as often and in the order it says.

use coordinator::owner::{Input, Ticket};
use event_log::{AppendOutcome, OutRecord, RawRecord};
use task_core::invariants::{self, Before};
use task_core::{Change, CoreState, Record, Verdict};
use task_events::{Body, Offset, TaskId};

use super::{P, World};

/// An append on its way.
#[derive(Clone, Debug)]
pub struct Sent {
    pub ticket: Ticket,
    pub records: Vec<OutRecord>,
}

/// Last states of closed tasks, which the fold forgets and an auditor does not.
#[derive(Default)]
pub struct Watch {
    closed: std::collections::BTreeMap<TaskId, CoreState>,
}

impl World {
    /// Lands the member's oldest append and acknowledges it.
    pub fn land_one(&mut self, name: &'static str) -> bool {
        let Some(sent) = self.members.get_mut(name).and_then(|m| m.sent.pop_front()) else { return false };
        self.land_copy(&sent);
        self.feed(name, Input::Appended(sent.ticket, AppendOutcome::Acknowledged));
        true
    }

    /// Lands everything that is held, and lets it be read.
    pub fn land(&mut self) {
        (self.hold_log, self.hold_read) = (false, false);
        self.settle();
    }

    /// A copy of an append lands; nobody is told.
    pub fn land_copy(&mut self, sent: &Sent) {
        sent.records.iter().for_each(|record| self.land_record(record));
    }

    pub fn land_record(&mut self, record: &OutRecord) {
        let headers = record.headers.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
        self.land_raw(Some(record.key.clone()), headers, Some(record.value.clone()));
    }

    pub fn land_raw(
        &mut self,
        key: Option<bytes::Bytes>,
        headers: Vec<(String, bytes::Bytes)>,
        value: Option<bytes::Bytes>,
    ) {
        let offset = Offset(self.log.len() as u64);
        let broker_ms = self.now.wall_ms + self.skew_ms;
        let raw = RawRecord { partition: P, offset, broker_ms, key, headers, value };
        self.judge(&raw);
        self.log.push(raw);
    }

    /// The oldest append gets this outcome without landing.
    pub fn settle_append(&mut self, outcome: AppendOutcome) -> Sent {
        let on = self.on;
        let sent = self.me().sent.pop_front().expect("an append under way");
        self.feed(on, Input::Appended(sent.ticket, outcome));
        sent
    }

    pub fn unknown(&mut self) -> Sent {
        self.settle_append(AppendOutcome::Unknown("timed out".to_owned()))
    }

    pub fn not_sent(&mut self) -> Sent {
        self.settle_append(AppendOutcome::NotSent("queue full".to_owned()))
    }

    /// The member reads what has landed.
    pub fn read_on(&mut self, name: &'static str) -> bool {
        let member = self.members.get_mut(name).expect("a member");
        if member.read >= self.log.len() {
            return false;
        }
        let records = self.log[member.read..].to_vec();
        member.read = self.log.len();
        self.feed(name, Input::Records(records));
        true
    }

    // The kit's own fold, with the invariants a fold can check by itself.
    fn judge(&mut self, raw: &RawRecord) {
        self.hashes.push(self.fold.hash());
        let Ok(event) = raw.event() else {
            self.fold.quarantine(raw.broker_ms);
            return self.lines.push("malformed".to_owned());
        };
        let record = Record { offset: raw.offset, broker_ms: raw.broker_ms, key: raw.record_key(), event };
        if let (Body::TaskCreated(b), Some(id)) = (&record.event.body, record.event.task_id)
            && let Some(name) = &b.business_key
        {
            self.named.entry(id).or_insert_with(|| name.to_string());
        }
        let before = self.fold.clone();
        let verdict = self.fold.apply(&record);
        if let Verdict::Accepted(Change::Opened(id)) = &verdict {
            self.fold.note_trace(*id, raw.trace_parent());
        }
        // Of two owners one may have minted an id that the other one gave away: the accepted name counts.
        if let (Verdict::Accepted(Change::Opened(id)), Body::TaskCreated(b)) = (&verdict, &record.event.body)
            && let Some(name) = &b.business_key
        {
            self.named.insert(*id, name.to_string());
            self.names.insert(name.to_string(), *id);
        }
        let line = self.line(&record, &verdict);
        let broken = match &verdict {
            Verdict::Rejected(_) => invariants::unchanged(&before, &self.fold, &record),
            Verdict::Accepted(change) => {
                let was = record.event.task_id.map_or(Before::Unborn, |id| {
                    let open = before.tasks.get(id).map(|s| Before::Open(s.core));
                    open.or(self.watch.closed.get(&id).map(|c| Before::Closed(*c))).unwrap_or(Before::Unborn)
                });
                if let Change::Closed(closed) | Change::Reviewed(closed) = change {
                    self.watch.closed.insert(closed.core.id, closed.core);
                }
                let after = record.event.task_id.and_then(|id| self.fold.tasks.get(id)).map(|s| s.core);
                invariants::accepted_step(was, &record.event, after.as_ref(), &self.fold)
            }
        };
        if let (Body::TaskAssigned(_), Verdict::Accepted(_), Some(id)) =
            (&record.event.body, &verdict, record.event.task_id)
            && !self.hostile
        {
            self.alone(id);
        }
        let broken = broken.and_then(|()| invariants::ownership(&before, &record.event, &verdict));
        self.lines.push(line);
        if let (Err(violation), false) = (broken, self.hostile) {
            panic!("{violation:?} after {}", self.tail(20));
        }
    }

    // No other attempt of its concurrency key is on record.
    fn alone(&self, id: TaskId) {
        let created = |id| self.fold.tasks.get(id).and_then(|slot| slot.row.as_ref()).map(|row| row.created.clone());
        let Some(key) = created(id).filter(|created| created.concurrency_key.is_some()) else { return };
        for other in self.fold.tasks.iter().filter(|slot| slot.core.id != id && slot.core.state.is_live()) {
            let same = created(other.core.id)
                .is_some_and(|other| (&other.creator, &other.concurrency_key) == (&key.creator, &key.concurrency_key));
            assert!(!same, "{} runs beside {}: {}", self.name(id), self.name(other.core.id), self.tail(20));
        }
    }

    /// The last lines of the log.
    pub fn tail(&self, n: usize) -> String {
        self.lines[self.lines.len().saturating_sub(n)..].join(" | ")
    }

    /// The whole log without claims and renewals.
    pub fn history(&self) -> String {
        let keep = |l: &&String| !l.starts_with("claim") && !l.starts_with("renew");
        self.lines.iter().filter(keep).cloned().collect::<Vec<_>>().join(" | ")
    }

    /// How many lines start so.
    pub fn count(&self, start: &str) -> usize {
        self.lines.iter().filter(|l| l.starts_with(start)).count()
    }
}
