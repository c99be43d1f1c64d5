//! Claim, proof of being current, supersession, drain (design.md §4.1, §4.5, §4.6).

use std::time::Duration;

use event_log::AppendOutcome;
use task_core::decide::{Draft, Stamp};
use task_events::{
    Body, Event, EventId, OwnerSeq, OwnershipClaimed, OwnershipRenewed, PartitionEpoch, Producer, Service,
    owner_event_id,
};

use super::asking::Call;
use super::flight::InFlight;
use super::work::{Batch, Origin};
use super::{Alarm, Answer, Effect, Now, Owner, Phase, Ticket, Why};

impl Owner {
    /// Phase changes that time or the fold brings about.
    pub(super) fn step_phase(&mut self, now: Now) {
        match self.phase {
            Phase::Folding { until } if self.fold.next_offset >= until && self.draining.is_none() => self.claim(now),
            Phase::Claiming { retry_ms: Some(at) } if now.boot_ms >= at => self.claim(now),
            Phase::Superseded { again_ms } if now.boot_ms >= again_ms && self.draining.is_none() => self.claim(now),
            Phase::Folding { .. } | Phase::Claiming { .. } | Phase::Superseded { .. } | Phase::Owning | Phase::Done => {
            }
        }
    }

    fn claim(&mut self, now: Now) {
        let Some(epoch) = self.fold.epoch.next() else { return };
        self.claim_attempt += 1;
        let body = OwnershipClaimed { url: self.id.url.clone(), claim_attempt: self.claim_attempt };
        let event = self.stamp(now, epoch, OwnerSeq(0), Draft::control(Body::OwnershipClaimed(body)));
        self.claims.push((event.event_id, now.boot_ms));
        self.phase = Phase::Claiming { retry_ms: None };
        let Ok(encoded) = self.encoder.encode(&event, self.partition()) else { return };
        let ticket = self.ticket(Call::Claim);
        let record = event_log::OutRecord { key: encoded.key, headers: encoded.headers, value: encoded.value };
        self.out.push(Effect::Append(ticket, vec![record]));
        if !self.rules.wait_for_claim {
            self.own(now, event.event_id, epoch);
        }
    }

    /// The settled outcome of an append.
    pub(super) fn appended(&mut self, now: Now, ticket: Ticket, outcome: AppendOutcome) {
        let Some(call) = self.calls.remove(&ticket) else { return };
        let is_claim = matches!(call, Call::Claim);
        match outcome {
            AppendOutcome::Acknowledged => {
                self.resend.remove(&ticket);
            }
            AppendOutcome::NotSent(_) if is_claim => {
                if matches!(self.phase, Phase::Claiming { .. }) {
                    self.phase = Phase::Claiming { retry_ms: Some(now.boot_ms + 100) };
                }
            }
            AppendOutcome::NotSent(_) => {
                // Certainly not in the log, now or later: the one error that makes a record dead by itself.
                for record in self.flight.take_ticket(ticket) {
                    self.abandon(now, record, Why::LogUnavailable);
                }
            }
            AppendOutcome::Unknown(_) if is_claim => {
                if matches!(self.phase, Phase::Claiming { .. }) {
                    self.phase = Phase::Claiming { retry_ms: Some(now.boot_ms + 100) };
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

    /// A claim was accepted.
    pub(super) fn claimed(&mut self, now: Now, event: &Event) {
        if self.claims.iter().any(|(id, _)| *id == event.event_id) {
            if self.rules.wait_for_claim || self.phase != Phase::Owning {
                self.own(now, event.event_id, self.fold.epoch);
            }
            return;
        }
        match self.phase {
            Phase::Claiming { .. } | Phase::Owning if self.rules.stop_when_superseded => self.supersede(now),
            Phase::Claiming { .. } | Phase::Owning | Phase::Folding { .. } | Phase::Superseded { .. } | Phase::Done => {
            }
        }
    }

    fn own(&mut self, now: Now, claim: EventId, epoch: PartitionEpoch) {
        let sent = self.claims.iter().find(|(id, _)| *id == claim).map_or(now.boot_ms, |(_, at)| *at);
        if self.rules.wait_for_claim {
            self.claims.clear();
        }
        self.epoch = epoch;
        self.claim_backoff_ms = self.cfg.claim_backoff_ms;
        self.claimed_ms = now.boot_ms;
        self.next_seq = OwnerSeq(1);
        self.proof_until_ms = sent + self.cfg.proof_ms;
        self.renewed_ms = now.boot_ms;
        self.phase = if self.phase == Phase::Done { Phase::Done } else { Phase::Owning };
        // Everything outstanding belongs to an epoch that is over: dead, whatever becomes of it.
        let dead = self.flight.take_all();
        self.closing.clear();
        self.rebuild(now);
        dead.into_iter().for_each(|record| self.dead(now, record));
        std::mem::take(&mut self.parked).into_iter().for_each(|job| self.run(now, job));
    }

    fn supersede(&mut self, now: Now) {
        self.alarm(Alarm::Superseded);
        let jitter = self.next_random() % self.claim_backoff_ms.max(1);
        let again_ms = now.boot_ms + self.cfg.superseded_ms + jitter;
        self.claim_backoff_ms = (self.claim_backoff_ms * 2).min(self.cfg.claim_backoff_max_ms);
        self.phase = Phase::Superseded { again_ms };
        self.claims.clear();
        self.disown(now, Why::NotOwner);
    }

    // Drops whatever only an owner may hold, and tells everybody who waits.
    fn disown(&mut self, now: Now, why: Why) {
        for record in self.flight.take_all() {
            self.abandon(now, record, why);
        }
        self.clear_tasks();
        self.creates.clear();
        self.keys_pending.clear();
        self.polls.clear();
        self.parked.clear();
        self.unproven.clear();
        self.waiting.clear();
        let mut tokens: Vec<_> = self.requests.keys().copied().collect();
        tokens.sort_unstable();
        tokens.into_iter().for_each(|token| self.reply(token, Answer::Unavailable(why)));
        self.calls.retain(|_, call| matches!(call, Call::Append | Call::Claim | Call::Rows(_)));
    }

    /// Whether an own record proves that no other owner could have been read about.
    pub(super) fn is_current(&self, now: Now) -> bool {
        self.phase == Phase::Owning && (!self.rules.proof || now.boot_ms <= self.proof_until_ms)
    }

    /// Writes a renewal while somebody needs the proof and nothing else is written, and also to
    /// give a rejected record the follower that makes its rejection final.
    pub(super) fn renew(&mut self, now: Now) {
        let idle = self.live.is_empty() && self.polls.is_empty() && self.timers.is_empty() && !self.wants_proof;
        let due = now.boot_ms >= self.renewed_ms + self.cfg.renew_ms;
        // With nothing proven at all the first waiting request need not wait for the next second.
        let urgent = self.wants_proof && self.flight.is_empty() && now.boot_ms > self.proof_until_ms;
        if self.flight.needs_follower() || !idle && (due || urgent) && self.draining.is_none() {
            let body = Body::OwnershipRenewed(OwnershipRenewed {});
            self.append(now, vec![Batch { drafts: vec![Draft::control(body)], origin: Origin::Internal }]);
        }
    }

    /// An own record was read back as accepted.
    pub(super) fn prove(&mut self, appended_ms: u64) {
        self.proof_until_ms = self.proof_until_ms.max(appended_ms + self.cfg.proof_ms);
        self.wants_proof &= self.unproven.is_empty();
    }

    /// Appends batches; each record gets the next owner_seq of the epoch.
    pub(super) fn append(&mut self, now: Now, batches: Vec<Batch>) {
        if batches.is_empty() || self.phase != Phase::Owning {
            return;
        }
        let epoch = self.epoch;
        let ticket = self.ticket(Call::Append);
        let mut records = Vec::new();
        for batch in batches {
            let last = batch.drafts.len().saturating_sub(1);
            let mut origin = Some(batch.origin);
            for (i, draft) in batch.drafts.into_iter().enumerate() {
                let seq = self.next_seq;
                self.next_seq = OwnerSeq(seq.0 + 1);
                let task = draft.task_id;
                let event = self.stamp(now, epoch, seq, draft);
                // Limits at the edge keep records far below the size limit; what does not fit is a
                // defect there and must not take the partition down.
                let Ok(encoded) = self.encoder.encode(&event, self.partition()) else { continue };
                let origin = if i == last { origin.take().unwrap_or(Origin::Rider) } else { Origin::Rider };
                let record = InFlight {
                    event_id: event.event_id,
                    ticket,
                    task,
                    origin,
                    appended_ms: now.boot_ms,
                    rejected: None,
                };
                self.flight.insert((epoch, seq), record);
                records.push(event_log::OutRecord { key: encoded.key, headers: encoded.headers, value: encoded.value });
            }
        }
        self.renewed_ms = now.boot_ms;
        if !self.rules.claim_again {
            self.resend.insert(ticket, records.clone());
        }
        self.out.push(Effect::Append(ticket, records));
    }

    fn stamp(&self, now: Now, epoch: PartitionEpoch, seq: OwnerSeq, draft: Draft) -> Event {
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

    /// Starts handing the partition over.
    pub(super) fn drain(&mut self, now: Now, within: Duration) {
        let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        self.draining.get_or_insert(now.boot_ms.saturating_add(within));
        for poll in std::mem::take(&mut self.polls) {
            self.reply(poll.token, Answer::Unavailable(Why::Draining));
        }
        for job in std::mem::take(&mut self.parked) {
            self.reply(job.token, Answer::Unavailable(Why::Draining));
        }
        self.owed.hurry(now.boot_ms);
    }

    /// Ends the hand-over when everything is settled, or when its time is up.
    pub(super) fn finish_drain(&mut self, now: Now) {
        let Some(until) = self.draining else { return };
        if self.phase == Phase::Done {
            return;
        }
        let settled =
            self.flight.is_empty() && self.creates.is_empty() && self.owed.is_empty() && self.rows_writing == 0;
        if settled && self.phase == Phase::Owning {
            self.hand_over();
        }
        if settled || now.boot_ms >= until || self.phase != Phase::Owning {
            self.phase = Phase::Done;
            self.disown(now, Why::Draining);
            self.out.push(Effect::Drained);
        }
    }
}
