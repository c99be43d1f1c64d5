//! One partition that this member holds: its fold, what is ready to be decided, what is out.

use std::collections::BTreeSet;

use event_log::{AppendOutcome, OutRecord, RawRecord};
use futures::future::AbortHandle;
use task_events::{EventId, Offset};

use super::desk::{Desk, Outcome};
use super::tries::Tried;
use super::work::Backoff;
use super::{Decision, Moment, Projection, Stop};
use crate::metrics::{
    PROJECTION_OUTCOMES_UNKNOWN, PROJECTION_RECORDS_FOLDED, PROJECTION_RECORDS_SEEN_AGAIN,
    PROJECTION_VERDICTS_ACCEPTED, PROJECTION_VERDICTS_APPENDED, PROJECTION_VERDICTS_REJECTED,
};
use crate::{Counter, Metrics};

/// Every pending subject is looked at again after so long, ms (design.md §4.7).
pub(super) const SWEEP_MS: u64 = 5_000;
/// Decisions of one turn, so that a long queue does not keep the loop from reading.
const PER_TURN: usize = 256;
/// Verdicts that may be out per partition; well below the 4,096 records an owner allows itself.
const MAX_WAITING: usize = 1_024;

/// Handles of the counters, looked up once.
#[derive(Clone)]
pub(super) struct Counters {
    pub(super) folded: Counter,
    pub(super) seen_again: Counter,
    pub(super) decided: Counter,
    pub(super) accepted: Counter,
    pub(super) rejected: Counter,
    pub(super) unknown: Counter,
}

impl Counters {
    pub(super) fn new(metrics: &Metrics, service: &str) -> Self {
        let of = |what| metrics.counter_of(what, &[service]);
        Self {
            folded: of(&PROJECTION_RECORDS_FOLDED),
            seen_again: of(&PROJECTION_RECORDS_SEEN_AGAIN),
            decided: of(&PROJECTION_VERDICTS_APPENDED),
            accepted: of(&PROJECTION_VERDICTS_ACCEPTED),
            rejected: of(&PROJECTION_VERDICTS_REJECTED),
            unknown: of(&PROJECTION_OUTCOMES_UNKNOWN),
        }
    }
}

/// What a turn of decisions wants appended, in one batch.
pub(super) struct Batch<S> {
    pub(super) records: Vec<OutRecord>,
    pub(super) verdicts: Vec<(S, EventId)>,
}

pub(super) struct Live<P: Projection> {
    pub(super) projection: P,
    desk: Desk<P::Subject>,
    ready: BTreeSet<P::Subject>,
    /// Nothing is decided before the fold has reached the end sampled at the start.
    decides_from: Offset,
    sweep_at: u64,
    /// After an append that the port refused.
    paused_until: u64,
    refused: Backoff,
    /// Appends whose future has not ended.
    pub(super) appends: usize,
    pub(super) reading: AbortHandle,
}

impl<P: Projection> Live<P> {
    pub(super) fn new(projection: P, tried: Tried<P::Subject>, end: Offset, now: u64, reading: AbortHandle) -> Self {
        let ready = projection.all_pending().into_iter().collect();
        Self {
            projection,
            desk: Desk::new(tried),
            ready,
            decides_from: end,
            sweep_at: now.saturating_add(SWEEP_MS),
            paused_until: 0,
            refused: Backoff::default(),
            appends: 0,
            reading,
        }
    }

    /// What was tried and is not decided.
    pub(super) fn tried(&mut self) -> Tried<P::Subject> {
        self.desk.tried()
    }

    /// Folds what was read back.
    pub(super) fn fold(
        &mut self,
        records: &[RawRecord],
        now: u64,
        counters: &Counters,
        metrics: &Metrics,
    ) -> Result<(), Stop> {
        for record in records {
            let expected = self.projection.next_offset();
            if record.offset < expected {
                counters.seen_again.add(1);
                continue;
            }
            if record.offset > expected {
                return Err(Stop::OffsetGap { expected, found: record.offset });
            }
            let folded = self.projection.fold(record)?;
            counters.folded.add(1);
            if let Some(own) = folded.own {
                match self.desk.read_back(own.subject, own.event_id, own.rejected, now) {
                    Outcome::Other => {}
                    Outcome::Accepted => counters.accepted.add(1),
                    Outcome::Rejected { rests } => {
                        counters.rejected.add(1);
                        if rests {
                            let subject = own.subject;
                            metrics.alarm("equal_rejections", format!("verdicts on {subject:?} keep being rejected"));
                        }
                    }
                }
                self.ready.insert(own.subject);
            }
            self.ready.extend(folded.touched);
        }
        Ok(())
    }

    pub(super) fn appended(
        &mut self,
        verdicts: &[(P::Subject, EventId)],
        outcome: &AppendOutcome,
        now: u64,
        counters: &Counters,
    ) {
        self.appends -= 1;
        match outcome {
            AppendOutcome::Acknowledged => self.refused.reset(),
            AppendOutcome::NotSent(_) => self.paused_until = now.saturating_add(self.refused.next_ms()),
            AppendOutcome::Unknown(_) => counters.unknown.add(1),
        }
        for (subject, verdict) in verdicts {
            self.desk.appended(*subject, *verdict, outcome, now);
        }
    }

    pub(super) fn answered(&mut self, answer: P::Answer, now: Moment) -> Result<(), Stop> {
        for subject in self.projection.answered(answer, now)? {
            self.desk.hurry(subject);
            self.ready.insert(subject);
        }
        Ok(())
    }

    /// Decides what is ready, up to the limits of one turn.
    pub(super) fn decide(&mut self, now: Moment) -> Batch<P::Subject> {
        let mut batch = Batch { records: Vec::new(), verdicts: Vec::new() };
        if now.boot_ms >= self.sweep_at {
            self.sweep_at = now.boot_ms.saturating_add(SWEEP_MS);
            self.ready.extend(self.projection.all_pending());
        }
        while let Some(subject) = self.desk.pop_due(now.boot_ms) {
            self.ready.insert(subject);
        }
        if !self.may_decide(now.boot_ms) {
            return batch;
        }
        let projection = &self.projection;
        self.desk.keep_earlier(|subject| projection.pending(subject));
        for _ in 0..PER_TURN {
            if self.desk.waiting() >= MAX_WAITING {
                break;
            }
            let Some(subject) = self.ready.pop_first() else { break };
            let Some(level) = self.projection.pending(subject) else {
                self.desk.forget(subject);
                continue;
            };
            let Some(attempt) = self.desk.claim(subject, level, now.boot_ms) else { continue };
            match self.projection.decide(subject, attempt, now) {
                Decision::Write { records, verdict } => {
                    self.desk.sent(subject, verdict, now.boot_ms);
                    batch.records.extend(records);
                    batch.verdicts.push((subject, verdict));
                }
                Decision::Later(until) => self.desk.postpone(subject, until.max(now.boot_ms + 1)),
                Decision::Nothing => self.desk.unclaim(subject),
            }
        }
        batch
    }

    /// When [`Live::decide`] has something to do without any input.
    pub(super) fn next_due(&self, now: u64) -> u64 {
        let more = !self.ready.is_empty() && self.desk.waiting() < MAX_WAITING && self.is_caught_up();
        let ready_at = more.then_some(now.max(self.paused_until));
        let timers = self.desk.next_due().filter(|_| self.is_caught_up());
        ready_at.into_iter().chain(timers).fold(self.sweep_at, u64::min)
    }

    fn may_decide(&self, now: u64) -> bool {
        self.is_caught_up() && now >= self.paused_until
    }

    /// The fold has reached the end sampled at the start.
    pub(super) fn is_caught_up(&self) -> bool {
        self.projection.next_offset() >= self.decides_from
    }
}

impl<P: Projection> Drop for Live<P> {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
