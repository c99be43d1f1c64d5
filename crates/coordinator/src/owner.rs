//! The owner of one partition: design.md §4 as a state machine without I/O.
//!
//! [`Owner::handle`] takes an [`Input`] and the time and returns [`Effect`]s; the shell
//! ([`run_partition`]) carries both between the owner and the ports. The fold is never advanced by
//! a record that was not read back, and every answer and effect follows from the fold.
//!
//! Rooms: `phase` (claim, supersede) and `draining`; `folding` (what was read back); `flight`,
//! `appending`, `settling` (own records from append to their end); `requests`, `asking` (who waits,
//! and where a command goes); `creating`; `polling`, `dispatching`, `keys`, `keeping`, `handing_out`, `locking`; `leasing`,
//! `arming`, `firing` (timers); `reporting`; `closed_tasks`, `awaiting`, `finding`, `looking`, `why`; `rows`, `owed`, `checkpointing`; `clock`.

mod activating;
mod alarm;
mod appending;
mod arming;
mod asking;
mod awaiting;
mod carrying;
mod checkpointing;
mod clock;
mod closed_tasks;
mod config;
mod creating;
mod dispatching;
mod draining;
mod finding;
mod firing;
mod flight;
mod folding;
mod freeze;
mod handing_out;
mod inbox;
mod keeping;
mod keys;
mod leasing;
mod line;
mod loading;
mod locking;
mod looking;
mod message;
mod owed;
mod phase;
mod polling;
mod reporting;
mod requests;
mod rows;
mod settling;
mod shell;
mod spanning;
mod starting;
mod waiting;
mod why;
mod work;
mod written;

use std::collections::{BTreeSet, VecDeque};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use task_core::timers::{TimerWheel, Timers as _};
use task_core::{HashRing, PartitionState, Reason};
use task_events::{
    Encoder, EventId, Incarnation, Offset, OwnerSeq, PartitionEpoch, PartitionId, Sha256Hash, TaskId, Text,
};

pub use alarm::{Alarm, Stop};
pub use checkpointing::Checkpoint;
pub use config::*;
pub use freeze::Freeze;
pub use inbox::{Inbox, OwnerHandle, inbox};
pub use looking::{
    ACCEPTED, AttemptSeen, ListAsk, Look, Looked, OwnerFacts, QUARANTINED, QueueFacts, TaskFilter, reason_of,
    verdict_byte,
};
pub use message::*;
pub use shell::{Exit, HAND_OVER, Ports, Setup, run_partition};
pub use starting::Start;
pub use why::{AttemptFacts, Blocked, WaitFacts, WhyFacts};

use appending::Outgoing;
use asking::Call;
use awaiting::Awaits;
use clock::BrokerClock;
use creating::Creates;
use dispatching::Dispatch;
use firing::OverdueWindow;
use flight::Flight;
use leasing::Live;
use locking::LockState;
use looking::{OpenTasks, Verdicts};
use owed::Owed;
use work::{Job, Waiting};

type Map<K, V> = HashMap<K, V, FixedState>;

/// Where an owner stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Folding up to the end offset that was sampled once.
    Folding {
        /// That offset.
        until: Offset,
    },
    /// A claim is under way, or will be sent at the time.
    Claiming {
        /// Boot ms of the next attempt; `None` while one is under way.
        retry_ms: Option<u64>,
    },
    /// The own claim was read back as accepted.
    Owning,
    /// Another incarnation's claim was accepted; claims again at the time if still assigned.
    Superseded {
        /// Boot ms.
        again_ms: u64,
    },
    /// Handed over, or stopped for good.
    Done,
}

/// A timer of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Timer {
    /// Due to be handed out.
    Due,
    /// Its lease, with the owner's margin.
    Lease,
    /// ASSIGNED and not started.
    NotStarted,
    /// A limit of the task.
    Timeout,
    /// Grace after a cancel request.
    Grace,
    /// Waiting too long.
    Overdue,
    /// Back-off after equal rejections.
    Backoff,
}

/// Equal rejections of a task in a row.
#[derive(Clone, Copy, Debug)]
struct Rejections {
    reason: Reason,
    count: u32,
}

/// The newest process seen of a worker, and when it was last heard of.
#[derive(Clone, Copy, Debug)]
struct Seen {
    incarnation: Incarnation,
    at_ms: u64,
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Request {
    kind: RequestKind,
    /// Until when its answer may wait on purpose, boot ms.
    until_ms: u64,
    /// An own record of it is in flight.
    has_record: bool,
    /// Id the owner minted for it, if it is an unkeyed create.
    minted: Option<TaskId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    Poll,
    Heartbeat,
    Report,
    Other,
}

/// The owner of one partition.
pub struct Owner {
    cfg: OwnerConfig,
    rules: OwnerRules,
    id: Identity,
    fold: PartitionState,
    encoder: Encoder,
    phase: Phase,
    clock: BrokerClock,
    random: u64,

    // claims
    /// Claims made, so that no two share an identity.
    claims_made: u64,
    /// The claim in force, or the last one made: what identities of records hold.
    claim_attempt: u64,
    epoch: PartitionEpoch,
    claims: Vec<(EventId, u64)>,
    claim_backoff_ms: u64,
    claimed_ms: u64,
    next_seq: OwnerSeq,
    proof_until_ms: u64,
    renewed_ms: u64,
    wants_proof: bool,
    log_pause_until_ms: u64,
    owner_heard_ms: u64,
    silence_told: bool,

    // own records and port calls
    flight: Flight,
    outgoing: Outgoing,
    calls: Map<Ticket, Call>,
    reads: Map<TaskId, closed_tasks::Reads>,
    next_ticket: u64,
    resend: Map<Ticket, Vec<event_log::OutRecord>>,

    // requests
    requests: Map<Token, Request>,
    deadlines: TimerWheel<Token>,
    swept_ms: u64,
    parked: VecDeque<Job>,
    unproven: VecDeque<Job>,
    waiting: Map<TaskId, VecDeque<Job>>,
    awaits: Awaits,

    // tasks
    todo: BTreeSet<TaskId>,
    /// Timers whose only act is an append or a look: they need no proof.
    acting: TimerWheel<(TaskId, Timer)>,
    /// Timers that judge.
    judged: TimerWheel<(TaskId, Timer)>,
    overdue: OverdueWindow,
    live: Map<TaskId, Live>,
    by_worker: Map<Text, BTreeSet<TaskId>>,
    /// Live attempts whose handler was not entered, as far as is known.
    unstarted: BTreeSet<TaskId>,
    workers: Map<Text, Seen>,
    /// When a worker last asked for work of a queue, boot ms.
    polled: Map<Text, u64>,
    /// Boot ms until which a task's former attempt may still run.
    holds: Map<TaskId, u64>,
    rejections: Map<TaskId, Rejections>,
    /// Open tasks in order.
    open: OpenTasks,
    /// What became of the last records.
    verdicts: Verdicts,
    /// Open tasks by creator, and creates under way.
    creators: Map<Text, usize>,
    creating: Map<Text, usize>,
    dispatch: Dispatch,
    polls: VecDeque<Waiting>,
    creates: Creates,
    keys_pending: Map<Sha256Hash, Vec<Job>>,

    // store
    owed: Owed,
    acked: Offset,
    acked_sent: Offset,
    acked_at_ms: u64,
    rows_writing: bool,
    checkpoint: Option<Checkpoint>,
    ring: HashRing,

    lock: LockState,
    draining: Option<u64>,
    /// The longest own append read back in this turn, µs.
    read_back_us: Option<u64>,
    /// Spans are wanted.
    traces: bool,
    out: Vec<Effect>,
}

impl Owner {
    /// Takes an input and returns what is to be done.
    pub fn handle(&mut self, now: Now, input: Input) -> Vec<Effect> {
        self.handle_all(now, [input])
    }

    /// Takes all that has come, in its order, and returns what is to be done. What it brings about
    /// is appended, stored and handed out together: under load a turn costs one append, not one each.
    pub fn handle_all(&mut self, now: Now, inputs: impl IntoIterator<Item = Input>) -> Vec<Effect> {
        self.clock.check(now);
        self.acting.advance(now.boot_ms);
        self.judged.advance(now.boot_ms);
        self.deadlines.advance(now.boot_ms);
        self.awaits.advance(now.boot_ms);
        inputs.into_iter().for_each(|input| self.take_in(now, input));
        self.pump(now);
        self.send_out(now);
        self.store_payloads();
        self.out.extend(self.read_back_us.take().map(Effect::ReadBack));
        std::mem::take(&mut self.out)
    }

    fn take_in(&mut self, now: Now, input: Input) {
        match input {
            Input::Checkpoints(names) => self.published(now, names),
            Input::Records(records) => records.iter().for_each(|raw| self.read_back(now, raw)),
            Input::Appended(ticket, outcome) => self.appended(now, ticket, outcome),
            Input::LocksTaken(ticket, answer) => self.locks_taken(now, ticket, answer),
            Input::LockServer(answer) => self.lock_server(now, answer),
            Input::RowsWritten(ticket, answer) => self.rows_written(now, ticket, answer),
            Input::RowRead(ticket, answer) => self.row_read(now, ticket, answer),
            Input::KeyRead(ticket, answer) => self.key_read(now, ticket, answer),
            Input::PayloadsStored(ticket, answer) => self.payloads_stored(now, ticket, answer),
            Input::Command(token, command) => self.command(now, token, command),
            Input::Forget(token) => self.forget(token),
            Input::Tick => {}
            Input::Drain(within) => self.drain(now, within),
        }
    }

    /// When [`Owner::handle`] wants an [`Input::Tick`] at the latest, boot ms; always ahead.
    pub fn next_wake(&self, now: Now) -> u64 {
        let mut at = now.boot_ms.saturating_add(self.cfg.renew_ms);
        if self.phase == Phase::Done {
            return at.max(now.boot_ms.saturating_add(1));
        }
        // What is due and cannot be done yet is looked at again soon, not at once.
        let soon = now.boot_ms.saturating_add(50);
        let later = |due: Option<u64>| due.map_or(u64::MAX, |due| if due > now.boot_ms { due } else { soon });
        at = at.min(later(self.acting.next_due())).min(later(self.judged.next_due()));
        at = at.min(later(self.deadlines.next_due())).min(later(self.draining));
        at = at.min(later(self.polls.front().map(|poll| poll.until_ms)));
        if !self.rows_writing {
            at = at.min(later(self.owed.next_due()));
        }
        if self.phase == Phase::Owning {
            at = at.min(later(self.awaits.next_due())).min(later(self.dispatch.keys.next_end()));
            if self.log_pause_until_ms > now.boot_ms {
                at = at.min(self.log_pause_until_ms);
            }
        }
        if let Phase::Claiming { retry_ms: Some(ms) } | Phase::Superseded { again_ms: ms } = self.phase {
            at = at.min(later(Some(ms)));
        }
        at.max(now.boot_ms.saturating_add(1))
    }

    /// State of the fold, for metrics, lists and checks.
    pub const fn fold(&self) -> &PartitionState {
        &self.fold
    }

    /// Where it stands.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Tasks that could be handed out now, for the edge's hint.
    pub fn backlog(&self) -> usize {
        self.dispatch.len()
    }

    /// The same by queue, of so many queues at most, for other instances' hint.
    pub fn ready_by_queue(&self, most: usize) -> Vec<(Text, u64)> {
        self.dispatch.ready_by_queue(most)
    }

    /// Rises whenever a task comes to wait for a worker: polls look again.
    pub const fn offers(&self) -> u64 {
        self.dispatch.offers()
    }

    /// Attempts that may never have reached their worker: its next poll says.
    pub fn unstarted(&self) -> usize {
        self.unstarted.len()
    }

    /// Records in flight.
    pub fn in_flight(&self) -> usize {
        self.flight.len()
    }

    /// Rows owed to the store, bytes.
    pub const fn owed_bytes(&self) -> usize {
        self.owed.bytes()
    }

    const fn partition(&self) -> PartitionId {
        self.fold.partition
    }

    // Level-triggered: whatever the state asks for now, whoever changed it.
    fn pump(&mut self, now: Now) {
        self.expire(now);
        self.step_phase(now);
        if self.phase == Phase::Owning {
            self.free_keys(now);
            self.end_awaits(now);
            self.run_unproven(now);
            self.fire_timers(now);
            self.do_todo(now);
            self.append_creates(now);
            self.hand_out(now);
            self.expire_polls(now);
            self.renew(now);
            self.keep_locks(now);
        }
        if let Some(off) = self.clock.tell() {
            self.alarm(Alarm::ClockUnsettled(off));
        }
        if self.phase != Phase::Done {
            self.flush_rows(now);
            self.finish_drain(now);
        }
    }

    // SplitMix64: enough for jitter, and the caller seeds it.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn ticket(&mut self, call: Call) -> Ticket {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        self.calls.insert(ticket, call);
        ticket
    }

    fn alarm(&mut self, alarm: Alarm) {
        self.out.push(Effect::Alarm(alarm));
    }
}
