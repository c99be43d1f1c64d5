//! The auditor: remembers what the fold forgets and says whether a history is one that may be. It
//! reads accepted records only and knows nothing of the rules by which they were accepted.

use task_core::invariants::{self, Before};
use task_core::{CoreState, PartitionState, Record};
use task_events::{Body, Event, Kind, KindClass, RecordKey, TaskState};

use crate::fold::{Fold, Judged};
use crate::plain::named_attempt;
use crate::subject::{PARTITION, TASKS, index_of};

/// Highest exec_epoch a searched history may reach.
pub const MAX_ATTEMPTS: usize = 8;

/// One task's history, reduced to what a predicate asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskAudit {
    /// Accepted TaskCreated.
    pub births: u8,
    /// event_sequence of the last accepted event.
    pub seq: u32,
    /// Run of the last accepted event.
    pub run: u32,
    /// Run in which each attempt was handed out; 0 = not yet.
    pub runs: [u8; MAX_ATTEMPTS],
    /// Attempts handed out.
    pub attempts: u32,
    /// The last one may be running.
    pub live: bool,
    /// The last one was closed by TaskLost.
    pub lost: bool,
    /// The run is over.
    pub over: bool,
    /// A cancel was requested in this run.
    pub cancel: bool,
    /// Approved retries after failures and after losses, in this run.
    pub retries: (u32, u32),
    /// As TaskCreated said.
    pub max: u32,
    /// Whether the last end of an attempt was a failure or a loss (what a verdict is about).
    pub awaits_verdict: bool,
    /// Accepted terminal reports: bit 2(e−1) success, bit 2(e−1)+1 failure.
    pub reports: u16,
    /// Accepted replays.
    pub replays: u8,
    /// Last judged state once closed; what the fold forgets.
    pub closed: Option<CoreState>,
}

/// The auditor's memory of the partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// By task.
    pub tasks: [TaskAudit; TASKS],
    /// Tasks created with the idempotency key.
    pub keyed: u8,
}

/// The bit of a terminal report.
pub fn report_bit(e: u32, success: bool) -> u16 {
    1u16.checked_shl((e.max(1) - 1) * 2 + u32::from(!success)).unwrap_or(0)
}

impl Audit {
    /// Takes in an accepted record. `Err` says which law it breaks.
    pub fn accept(
        &mut self,
        before: &Fold,
        record: &Record,
        judged: &Judged,
        partition: &PartitionState,
    ) -> Result<(), String> {
        let event = &record.event;
        self.library_invariants(before, record, judged, partition)?;
        if record.key != RecordKey::of(event, PARTITION) {
            return Err(format!("{} accepted under a foreign key", event.kind));
        }
        let Some(id) = event.task_id else { return Ok(()) };
        let n = index_of(id).ok_or_else(|| format!("{} of a task of another partition accepted", event.kind))?;
        if let Body::TaskCreated(b) = &event.body
            && b.key_hash.is_some()
        {
            self.keyed += 1;
            if self.keyed > 1 {
                return Err("one idempotency key created two tasks".into());
            }
        }
        let task = &mut self.tasks[n];
        if event.kind.class() == KindClass::TaskEvent {
            task.event(event)?;
        }
        if let Some(closed) = &judged.closed {
            task.closed = Some(closed.core);
        } else if judged.fold.core(n).is_some() {
            task.closed = None;
        }
        if task.over && judged.fold.core(n).is_some() {
            return Err(format!("{} leaves a closed task open", event.kind));
        }
        Ok(())
    }

    // invariants.rs, the one definition every other checker uses too.
    fn library_invariants(
        &self,
        before: &Fold,
        record: &Record,
        judged: &Judged,
        partition: &PartitionState,
    ) -> Result<(), String> {
        if let Some(broken) = &judged.broken {
            return Err(format!("invariant {}: {}", broken.invariant, broken.what));
        }
        let known = record.event.task_id.and_then(index_of);
        let state = match known {
            None => Before::Unborn,
            Some(n) => match (before.core(n), self.tasks[n].closed) {
                (Some(core), _) => Before::Open(*core),
                (None, Some(core)) => Before::Closed(core),
                (None, None) => Before::Unborn,
            },
        };
        let after = known.and_then(|n| judged.fold.core(n));
        invariants::accepted_step(state, &record.event, after, partition)
            .map_err(|broken| format!("invariant {}: {}", broken.invariant, broken.what))
    }
}

impl TaskAudit {
    fn event(&mut self, event: &Event) -> Result<(), String> {
        let kind = event.kind;
        if event.event_sequence.0 != self.seq + 1 {
            return Err(format!("{kind} takes event_sequence {} after {}", event.event_sequence, self.seq));
        }
        let replay = kind == Kind::TaskReplayRequested;
        let run = if kind == Kind::TaskCreated || replay { self.run + 1 } else { self.run };
        if event.run_no.0 != run {
            return Err(format!("{kind} of run {} in run {}", event.run_no, self.run));
        }
        if self.over && !matches!(kind, Kind::TaskReplayRequested | Kind::TaskReviewed) {
            return Err(format!("terminal state left by {kind}"));
        }
        (self.seq, self.run) = (event.event_sequence.0, run);
        self.attempt(event)?;
        self.verdict(event)?;
        self.life(event)
    }

    // Reports and the end of attempts.
    fn attempt(&mut self, event: &Event) -> Result<(), String> {
        let kind = event.kind;
        let named = named_attempt(&event.body);
        match kind {
            Kind::TaskAssigned => {
                if self.live {
                    return Err("two live attempts".into());
                }
                if event.exec_epoch.0 != self.attempts + 1 || named != Some(self.attempts + 1) {
                    return Err(format!("assignment {} has exec_epoch {}", self.attempts + 1, event.exec_epoch));
                }
                self.attempts += 1;
                if let Some(run) = self.runs.get_mut(self.attempts as usize - 1) {
                    *run = self.run as u8;
                }
                (self.live, self.lost, self.awaits_verdict) = (true, false, false);
                return Ok(());
            }
            Kind::TaskTimedOut if !self.live && !self.awaits_verdict => {
                (self.lost, self.awaits_verdict) = (false, true);
                return Ok(());
            }
            Kind::TaskStarted
            | Kind::TaskStepCompleted
            | Kind::TaskReleased
            | Kind::TaskCompleted
            | Kind::TaskFailed
            | Kind::TaskLost
            | Kind::TaskTimedOut => {}
            _ => return Ok(()),
        }
        if event.exec_epoch.0 != self.attempts || named != Some(self.attempts) || self.attempts == 0 {
            return Err(format!("{kind} of another attempt accepted"));
        }
        if !self.live && !(self.lost && kind == Kind::TaskCompleted) {
            return Err(format!("closed attempt closed again or moved by {kind}"));
        }
        if !matches!(kind, Kind::TaskStarted | Kind::TaskStepCompleted) {
            self.live = false;
            self.lost = kind == Kind::TaskLost;
            self.awaits_verdict = matches!(kind, Kind::TaskFailed | Kind::TaskLost | Kind::TaskTimedOut);
        }
        if matches!(kind, Kind::TaskCompleted | Kind::TaskFailed) {
            self.reports |= report_bit(self.attempts, kind == Kind::TaskCompleted);
        }
        Ok(())
    }

    // What decides whether the task goes on.
    fn verdict(&mut self, event: &Event) -> Result<(), String> {
        let hands_on = matches!(
            event.kind,
            Kind::TaskAssigned
                | Kind::TaskRetryApproved
                | Kind::TaskFailedPermanently
                | Kind::TaskReplayPlanned
                | Kind::TaskRetried
        );
        if hands_on && self.cancel {
            return Err(format!("{} after the cancel request", event.kind));
        }
        if matches!(event.kind, Kind::TaskRetryApproved | Kind::TaskFailedPermanently) {
            if !self.awaits_verdict {
                return Err(format!("{} without a failure to judge", event.kind));
            }
            self.awaits_verdict = false;
        }
        if event.kind == Kind::TaskRetryApproved {
            let (count, limit) = if self.lost { (&mut self.retries.1, 5) } else { (&mut self.retries.0, self.max) };
            *count += 1;
            if *count > limit {
                return Err(format!("retry law: retry {count} of {limit}"));
            }
        }
        Ok(())
    }

    fn life(&mut self, event: &Event) -> Result<(), String> {
        match &event.body {
            Body::TaskCreated(b) => {
                self.births += 1;
                self.max = b.max_retries;
                if self.births > 1 {
                    return Err("born twice".into());
                }
            }
            Body::TaskCompleted(_) | Body::TaskFailedPermanently(_) => self.over = true,
            Body::TaskCancelled(_) => (self.over, self.live) = (true, false),
            Body::TaskCancelRequested(_) => self.cancel = true,
            Body::TaskReplayRequested(b) => {
                if !self.over {
                    return Err("replay of a task that is not closed".into());
                }
                if b.carried.state == TaskState::Created {
                    return Err("replay carries a state that is not terminal".into());
                }
                self.replays += 1;
                (self.over, self.live, self.lost, self.cancel) = (false, false, false, false);
                (self.awaits_verdict, self.retries) = (false, (0, 0));
            }
            Body::TaskReviewed(_) if !self.over => return Err("review of a task that is not closed".into()),
            _ => {}
        }
        Ok(())
    }
}

impl Audit {
    /// Bytes that tell two memories apart.
    pub fn fingerprint(&self) -> u128 {
        let mut bytes = Vec::with_capacity(256);
        bytes.push(self.keyed);
        for t in &self.tasks {
            let flags = [t.live, t.lost, t.over, t.cancel, t.awaits_verdict].map(u8::from);
            bytes.extend_from_slice(&flags);
            bytes.extend_from_slice(&[t.births, t.replays]);
            bytes.extend_from_slice(&t.runs);
            bytes.extend_from_slice(&t.reports.to_le_bytes());
            for number in [t.seq, t.run, t.attempts, t.retries.0, t.retries.1, t.max] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.push(u8::from(t.closed.is_some()));
            if let Some(closed) = &t.closed {
                bytes.extend_from_slice(&closed.canonical());
            }
        }
        xxhash_rust::xxh3::xxh3_128(&bytes)
    }
}
