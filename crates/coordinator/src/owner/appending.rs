//! Own records on their way out (design.md §4.3, §4.5): numbers, batches, outcomes.

use event_log::{AppendOutcome, OutRecord};
use task_core::decide::{Draft, Stamp};
use task_events::{Event, Kind, OwnerSeq, PartitionEpoch, Producer, Service, owner_event_id};

use super::asking::Call;
use super::flight::InFlight;
use super::settling::Ended;
use super::work::{Batch, Origin};
use super::{Alarm, Effect, Now, Owner, Phase, Ticket, Why};

/// Pause after the log took nothing, ms: whatever is due is still due then.
const PAUSE_MS: u64 = 100;

/// What this turn appends.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    ticket: Option<Ticket>,
    records: Vec<OutRecord>,
}

impl Owner {
    /// How many more records may be in flight.
    pub(super) fn room(&self) -> usize {
        self.cfg.max_in_flight.saturating_sub(self.flight.len())
    }

    /// Whether the owner may write on its own account now.
    pub(super) const fn may_write(&self, now: Now) -> bool {
        matches!(self.phase, Phase::Owning) && now.boot_ms >= self.log_pause_until_ms
    }

    /// Appends batches; each record gets the next owner_seq of the epoch. They leave together with
    /// whatever else is appended in this turn.
    pub(super) fn append(&mut self, now: Now, batches: Vec<Batch>) {
        if batches.is_empty() || self.phase != Phase::Owning {
            return;
        }
        let ticket = self.outgoing.ticket.unwrap_or_else(|| self.ticket(Call::Append));
        self.outgoing.ticket = Some(ticket);
        for batch in batches {
            self.append_batch(now, ticket, batch);
        }
    }

    /// Sends what this turn appended: one batch, one write, one sync, whatever brought it about.
    pub(super) fn send_out(&mut self, now: Now) {
        let Outgoing { ticket: Some(ticket), records } = std::mem::take(&mut self.outgoing) else { return };
        // Of a turn that lost the partition or claims it anew: never sent, so it cannot count.
        if records.is_empty() || self.phase != Phase::Owning {
            self.calls.remove(&ticket);
            return;
        }
        self.renewed_ms = now.boot_ms;
        if !self.rules.claim_again {
            self.resend.insert(ticket, records.clone());
        }
        self.out.push(Effect::Append(ticket, records));
    }

    fn append_batch(&mut self, now: Now, ticket: Ticket, batch: Batch) {
        let epoch = self.epoch;
        let last = batch.drafts.len().saturating_sub(1);
        let mut own = Vec::with_capacity(batch.drafts.len());
        for draft in batch.drafts {
            let seq = self.next_seq;
            self.next_seq = OwnerSeq(seq.0 + 1);
            let (task, kind, sampling) = (draft.task_id, draft.body.kind(), draft.sampling);
            let event = self.stamp(now, epoch, seq, draft);
            match self.encoder.encode(&event, self.partition(), sampling) {
                Ok(encoded) => own.push((seq, task, kind, encoded)),
                Err(why) => {
                    // Limits at the edge keep this from happening; a defect there must neither take
                    // the partition down nor leave anybody without an answer.
                    self.alarm(Alarm::Unwritable(kind, why.to_string()));
                    return self.end(now, batch.origin, None, Ended::NotWritten(Why::Unwritable));
                }
            }
        }
        let mut origin = Some(batch.origin);
        for (i, (seq, task, kind, encoded)) in own.into_iter().enumerate() {
            let origin = if i == last { origin.take().unwrap_or(Origin::Rider) } else { Origin::Rider };
            let closes = matches!(kind, Kind::TaskLost | Kind::TaskReleased | Kind::TaskTimedOut | Kind::TaskCancelled);
            let event_id = encoded.event_id;
            let record = InFlight {
                event_id,
                ticket,
                task,
                origin,
                appended_ms: now.boot_ms,
                appended_us: now.fine.boot_us,
                closes,
                rejected: None,
            };
            self.flight.insert((epoch, seq), record);
            self.outgoing.records.push(OutRecord { key: encoded.key, headers: encoded.headers, value: encoded.value });
        }
    }

    pub(super) fn stamp(&self, now: Now, epoch: PartitionEpoch, seq: OwnerSeq, draft: Draft) -> Event {
        let id = &self.id;
        draft.stamped(Stamp {
            event_id: owner_event_id(self.partition(), epoch, seq, &id.instance, id.incarnation, self.claim_attempt),
            partition_epoch: Some(epoch),
            owner_seq: Some(seq),
            event_time: self.clock.broker_ms(now),
            causation_id: None,
            producer: Producer {
                service: Service::Coordinator,
                instance: id.instance.clone(),
                incarnation: id.incarnation,
            },
            rule_version: self.fold.active_rules,
        })
    }

    /// The settled outcome of an append.
    pub(super) fn appended(&mut self, now: Now, ticket: Ticket, outcome: AppendOutcome) {
        let Some(call) = self.calls.remove(&ticket) else { return };
        let is_claim = matches!(call, Call::Claim);
        match outcome {
            AppendOutcome::Acknowledged => {
                self.resend.remove(&ticket);
            }
            AppendOutcome::NotSent(_) | AppendOutcome::Unknown(_) if is_claim => {
                if matches!(self.phase, Phase::Claiming { .. }) {
                    if matches!(outcome, AppendOutcome::NotSent(_)) {
                        // One claim is under way at a time: this is the last one, and no record.
                        self.claims.pop();
                    }
                    self.phase = Phase::Claiming { retry_ms: Some(now.boot_ms + PAUSE_MS) };
                }
            }
            AppendOutcome::NotSent(_) => {
                // Certainly not in the log, now or later: the one error that makes a record dead by
                // itself. What brought it about is still due, and must not hammer a log that is away.
                self.log_pause_until_ms = now.boot_ms + PAUSE_MS;
                for record in self.flight.take_ticket(ticket) {
                    self.abandon(now, record, Ended::NotWritten(Why::LogUnavailable));
                }
            }
            AppendOutcome::Unknown(_) => self.unknown(now, ticket),
        }
    }

    // Nothing is ever re-sent: after the own claim is read back, each outstanding record is
    // accepted or dead.
    fn unknown(&mut self, now: Now, ticket: Ticket) {
        if !self.rules.claim_again {
            if let Some(records) = self.resend.get(&ticket).cloned() {
                self.calls.insert(ticket, Call::Append);
                self.out.push(Effect::Append(ticket, records));
            }
            return;
        }
        if self.phase == Phase::Owning && self.flight.of_ticket(ticket).next().is_some() {
            self.alarm(Alarm::OutcomeUnknown);
            self.claim(now);
        }
    }
}
