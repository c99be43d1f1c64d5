//! Claim, supersession, end (design.md §4.1, §4.5).

use task_core::decide::Draft;
use task_core::{Pen, Slot, pending_work};
use task_events::{Body, Event, EventId, OwnerSeq, OwnershipClaimed, PartitionEpoch, Sampling};

use super::asking::Call;
use super::settling::Ended;
use super::{Alarm, Effect, Now, Owner, Phase, Stop, Why};

/// Silence of a partition's owner while there is work that is an alarm, ms (design.md §4.6: 15 s).
const SILENT_MS: u64 = 15_000;

/// Own claims that are remembered while none is read back.
const CLAIMS: usize = 1_024;

impl Owner {
    /// Phase changes that time or the fold brings about.
    pub(super) fn step_phase(&mut self, now: Now) {
        // Before the fold's end is left behind: until then nobody could be heard.
        self.mind_silence(now);
        match self.phase {
            Phase::Folding { until } if self.fold.next_offset >= until && self.draining.is_none() => self.claim(now),
            Phase::Claiming { retry_ms: Some(at) } if now.boot_ms >= at && self.draining.is_none() => self.claim(now),
            // Neither settled nor read back for as long as a request waits: whatever became of it,
            // another claim of the same epoch does no harm.
            Phase::Claiming { retry_ms: None } if self.claim_is_stale(now) && self.draining.is_none() => {
                self.claim(now);
            }
            Phase::Superseded { again_ms } if now.boot_ms >= again_ms && self.draining.is_none() => self.claim(now),
            Phase::Folding { .. } | Phase::Claiming { .. } | Phase::Superseded { .. } | Phase::Owning | Phase::Done => {
            }
        }
    }

    fn claim_is_stale(&self, now: Now) -> bool {
        let sent = self.claims.last().map_or(0, |(_, sent_ms)| *sent_ms);
        now.boot_ms.saturating_sub(sent) >= self.cfg.request_ms
    }

    pub(super) fn claim(&mut self, now: Now) {
        let Some(epoch) = self.fold.epoch.next() else { return };
        self.claims_made += 1;
        self.claim_attempt = self.claims_made;
        let body = OwnershipClaimed { url: self.id.url.clone(), claim_attempt: self.claim_attempt };
        let event = self.stamp(now, epoch, OwnerSeq(0), Draft::control(Body::OwnershipClaimed(body)));
        self.claims.push((event.event_id, now.boot_ms));
        if self.claims.len() > CLAIMS {
            // One of the forgotten ones that is accepted after all looks like somebody else's.
            self.claims.remove(0);
        }
        self.phase = Phase::Claiming { retry_ms: None };
        let Ok(encoded) = self.encoder.encode(&event, self.partition(), Sampling::default()) else { return };
        let ticket = self.ticket(Call::Claim);
        let record = event_log::OutRecord { key: encoded.key, headers: encoded.headers, value: encoded.value };
        self.out.push(Effect::Append(ticket, vec![record]));
        if !self.rules.wait_for_claim {
            self.own(now, event.event_id, epoch);
        }
    }

    /// A claim was accepted.
    pub(super) fn claimed(&mut self, now: Now, event: &Event, broker_ms: i64) {
        if self.claims.iter().any(|(id, _)| *id == event.event_id) {
            // Timers are derived from now on, so the broker's clock must be known before them.
            self.clock.observe(now, broker_ms);
            if let Body::OwnershipClaimed(claim) = &event.body {
                // An earlier one than the last, if that one's outcome was unknown for long.
                self.claim_attempt = claim.claim_attempt;
            }
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
        self.claimed_ms = now.boot_ms;
        self.next_seq = OwnerSeq(1);
        self.proof_until_ms = sent.saturating_add(self.cfg.proof_ms);
        self.renewed_ms = now.boot_ms;
        self.phase = if self.phase == Phase::Done { Phase::Done } else { Phase::Owning };
        // Everything outstanding belongs to an epoch that is over: dead, whatever becomes of it.
        let dead = self.flight.take_all();
        self.rebuild(now);
        dead.into_iter().for_each(|record| self.dead(now, record));
        // Also behind back-offs, which were derived from the former epoch's rejections.
        let mut waiting: Vec<_> = self.waiting.keys().copied().collect();
        waiting.sort_unstable();
        waiting.into_iter().for_each(|task| self.freed(now, task));
        std::mem::take(&mut self.parked).into_iter().for_each(|job| self.run(now, job));
        // What was closed while nothing was decided.
        self.awaits.take_all().into_iter().for_each(|job| self.run(now, job));
    }

    fn supersede(&mut self, now: Now) {
        self.alarm(Alarm::Superseded);
        // Two that both think it is theirs take it from each other ever more slowly: only an
        // ownership that lasted forgets the back-off.
        let lasted = now.boot_ms.saturating_sub(self.claimed_ms) >= self.cfg.claim_backoff_max_ms.saturating_mul(2);
        if lasted && self.phase == Phase::Owning {
            self.claim_backoff_ms = self.cfg.claim_backoff_ms;
        }
        let jitter = self.next_random() % self.claim_backoff_ms.max(1);
        let again_ms = now.boot_ms.saturating_add(self.cfg.superseded_ms).saturating_add(jitter);
        self.claim_backoff_ms = self.claim_backoff_ms.saturating_mul(2).min(self.cfg.claim_backoff_max_ms);
        self.phase = Phase::Superseded { again_ms };
        self.claims.clear();
        // Behind that claim nothing of ours can be accepted: nothing was written.
        self.disown(now, Ended::NotWritten(Why::NotOwner), Why::NotOwner);
    }

    /// Drops whatever only an owner may hold, and tells everybody who waits.
    pub(super) fn disown(&mut self, now: Now, in_flight: Ended, why: Why) {
        for record in self.flight.take_all() {
            self.abandon(now, record, in_flight);
        }
        self.clear_tasks();
        self.holds.clear();
        self.dispatch.forget_hand_outs();
        self.creates.clear();
        self.creating.clear();
        self.keys_pending.clear();
        self.polls.clear();
        self.parked.clear();
        self.unproven.clear();
        self.waiting.clear();
        self.awaits.take_all();
        self.checkpoint = None;
        self.wants_proof = false;
        let mut tokens: Vec<_> = self.requests.keys().copied().collect();
        tokens.sort_unstable();
        tokens.into_iter().for_each(|token| self.reply(token, super::Answer::Unavailable(why)));
        self.calls.retain(|_, call| matches!(call, Call::Append | Call::Claim | Call::Rows(_)));
        self.reads.clear();
    }

    /// This reader must not go on; the shell leaves the group.
    pub(super) fn stop(&mut self, now: Now, stop: Stop) {
        if self.phase != Phase::Done {
            self.phase = Phase::Done;
            self.disown(now, Ended::Unknown, Why::NotOwner);
            self.out.push(Effect::Stop(stop));
        }
    }

    /// An accepted record of the partition's owner, whoever that is.
    pub(super) const fn heard_owner(&mut self, now: Now) {
        self.owner_heard_ms = now.boot_ms;
        self.silence_told = false;
    }

    // Every reader tells when nobody moves a partition that has work.
    fn mind_silence(&mut self, now: Now) {
        if matches!(self.phase, Phase::Folding { .. } | Phase::Done) {
            self.owner_heard_ms = now.boot_ms;
        }
        if self.silence_told || now.boot_ms.saturating_sub(self.owner_heard_ms) < SILENT_MS {
            return;
        }
        if self.fold.tasks.iter().any(has_work) {
            self.silence_told = true;
            self.alarm(Alarm::OwnerSilent);
        } else {
            // An owner that waits for nothing writes nothing; looked at again after as long.
            self.owner_heard_ms = now.boot_ms;
        }
    }
}

// Whether an owner has a lease, a timer or a step of its own to mind for this task.
fn has_work(slot: &Slot) -> bool {
    let noted = slot.row.as_ref().is_some_and(|row| row.is_overdue_noted(slot.core.state));
    slot.core.state.is_live() || pending_work(&slot.core, Pen::Owner) || !noted
}
