//! The owner of one partition: design.md §4 as a state machine without I/O.
//!
//! [`Owner::handle`] takes an [`Input`] and the time and returns [`Effect`]s; the shell
//! ([`run_partition`]) carries both between the owner and the ports. The fold is never advanced by
//! a record that was not read back, and every answer and effect follows from the fold.
//!
//! Rooms: `phase` (claim, supersede, drain), `folding` (what was read back), `flight` (own records
//! between append and read-back), `creating`, `dispatching`, `leasing`, `reporting`,
//! `closed_tasks`, `rows` (owed rows, checkpoints), `clock` (broker time).

mod asking;
mod checkpointing;
mod clock;
mod closed_tasks;
mod config;
mod creating;
mod dispatching;
mod flight;
mod folding;
mod inbox;
mod leasing;
mod loading;
mod message;
mod owed;
mod phase;
mod reporting;
mod rows;
mod shell;
mod work;

use std::collections::{BTreeSet, VecDeque};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use task_core::timers::{OrderedTimers, Timers as _};
use task_core::{PartitionState, Reason};
use task_events::{
    Encoder, EventId, ExecutionId, Incarnation, Offset, OwnerSeq, PartitionEpoch, PartitionId, Sha256Hash, TaskId, Text,
};

pub use checkpointing::Checkpoint;
pub use config::*;
pub use inbox::{Freeze, Inbox, OwnerHandle, inbox};
pub use message::*;
pub use shell::{Exit, HAND_OVER, Ports, Setup, run_partition};

use asking::Call;
use clock::BrokerClock;
use creating::Creates;
use dispatching::Dispatch;
use flight::Flight;
use leasing::Live;
use owed::Owed;
use work::{Job, Waiting};

type Map<K, V> = HashMap<K, V, FixedState>;
type Set<K> = HashSet<K, FixedState>;

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
    until_ms: u64,
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Request {
    kind: RequestKind,
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
    claim_attempt: u64,
    epoch: PartitionEpoch,
    claims: Vec<(EventId, u64)>,
    claim_backoff_ms: u64,
    claimed_ms: u64,
    next_seq: OwnerSeq,
    proof_until_ms: u64,
    renewed_ms: u64,
    wants_proof: bool,

    // own records and port calls
    flight: Flight,
    calls: Map<Ticket, Call>,
    next_ticket: u64,
    resend: Map<Ticket, Vec<event_log::OutRecord>>,

    // requests
    requests: Map<Token, Request>,
    deadlines: OrderedTimers<Token>,
    parked: VecDeque<Job>,
    unproven: VecDeque<Job>,
    waiting: Map<TaskId, VecDeque<Job>>,

    // tasks
    todo: BTreeSet<TaskId>,
    timers: OrderedTimers<(TaskId, Timer)>,
    live: Map<TaskId, Live>,
    by_worker: Map<Text, BTreeSet<TaskId>>,
    workers: Map<Text, Incarnation>,
    closing: Set<TaskId>,
    holds: Map<TaskId, u64>,
    rejections: Map<TaskId, Rejections>,
    noted: Set<ExecutionId>,
    creators: Map<Text, usize>,
    dispatch: Dispatch,
    polls: VecDeque<Waiting>,
    creates: Creates,
    keys_pending: Map<Sha256Hash, Vec<Job>>,

    // store
    owed: Owed,
    acked: Offset,
    acked_sent: Offset,
    acked_at_ms: u64,
    rows_writing: usize,
    checkpoint: Option<Checkpoint>,

    lock: LockState,
    draining: Option<u64>,
    out: Vec<Effect>,
}

#[derive(Clone, Debug, Default)]
struct LockState {
    away: bool,
    run_id: Option<String>,
    asked_ms: u64,
    renewed_ms: u64,
}

/// What an owner starts from.
pub struct Start {
    /// State of the newest valid checkpoint, or of offset 0; with rows.
    pub fold: PartitionState,
    /// End offset, sampled once.
    pub end: Offset,
    /// Offset below which every owed row is acknowledged.
    pub acked: Offset,
    /// Number of this start of an owner within the process, so that claims never share an identity.
    pub number: u64,
    /// Random number of the caller.
    pub random: u64,
}

impl Owner {
    /// An owner that will fold to the end, claim, and only then decide.
    pub fn new(cfg: OwnerConfig, rules: OwnerRules, id: Identity, start: Start) -> Self {
        let clock = BrokerClock::new(cfg.clock_tolerance_ms);
        let claim_backoff_ms = cfg.claim_backoff_ms;
        let mut owner = Self {
            cfg,
            rules,
            id,
            encoder: Encoder::new(),
            phase: Phase::Folding { until: start.end },
            clock,
            random: start.random,
            claim_attempt: start.number << 24,
            epoch: PartitionEpoch(0),
            claims: Vec::new(),
            claim_backoff_ms,
            claimed_ms: 0,
            next_seq: OwnerSeq(1),
            proof_until_ms: 0,
            renewed_ms: 0,
            wants_proof: false,
            flight: Flight::default(),
            calls: Map::default(),
            next_ticket: 0,
            resend: Map::default(),
            requests: Map::default(),
            deadlines: OrderedTimers::default(),
            parked: VecDeque::new(),
            unproven: VecDeque::new(),
            waiting: Map::default(),
            todo: BTreeSet::new(),
            timers: OrderedTimers::default(),
            live: Map::default(),
            by_worker: Map::default(),
            workers: Map::default(),
            closing: Set::default(),
            holds: Map::default(),
            rejections: Map::default(),
            noted: Set::default(),
            creators: Map::default(),
            dispatch: Dispatch::default(),
            polls: VecDeque::new(),
            creates: Creates::default(),
            keys_pending: Map::default(),
            owed: Owed::default(),
            acked: start.acked,
            acked_sent: start.acked,
            acked_at_ms: 0,
            rows_writing: 0,
            checkpoint: None,
            lock: LockState::default(),
            draining: None,
            out: Vec::new(),
            fold: start.fold,
        };
        owner.count_creators();
        owner
    }

    /// Takes an input and returns what is to be done.
    pub fn handle(&mut self, now: Now, input: Input) -> Vec<Effect> {
        self.clock.check(now);
        match input {
            Input::Records(records) => records.iter().for_each(|raw| self.read_back(now, raw)),
            Input::Appended(ticket, outcome) => self.appended(now, ticket, outcome),
            Input::LocksTaken(ticket, answer) => self.locks_taken(now, ticket, answer),
            Input::LockServer(answer) => self.lock_server(now, answer),
            Input::RowsWritten(ticket, answer) => self.rows_written(now, ticket, answer),
            Input::RowRead(ticket, answer) => self.row_read(now, ticket, answer),
            Input::KeyRead(ticket, answer) => self.key_read(now, ticket, answer),
            Input::PayloadStored(ticket, answer) => self.payload_stored(now, ticket, answer),
            Input::Command(token, command) => self.command(now, token, command),
            Input::Forget(token) => self.forget(token),
            Input::Tick => {}
            Input::Drain(within) => self.drain(now, within),
        }
        self.pump(now);
        std::mem::take(&mut self.out)
    }

    /// When [`Owner::handle`] wants an [`Input::Tick`] at the latest, boot ms.
    pub fn next_wake(&self, now: Now) -> u64 {
        let mut at = now.boot_ms + self.cfg.renew_ms;
        for due in [self.timers.next_due(), self.deadlines.next_due(), self.owed.next_due(), self.draining] {
            at = at.min(due.unwrap_or(u64::MAX));
        }
        match self.phase {
            Phase::Claiming { retry_ms: Some(ms) } | Phase::Superseded { again_ms: ms } => at.min(ms),
            Phase::Claiming { retry_ms: None } | Phase::Folding { .. } | Phase::Owning | Phase::Done => at,
        }
        .max(now.boot_ms + 1)
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

    /// Records in flight.
    pub fn in_flight(&self) -> usize {
        self.flight.len()
    }

    const fn partition(&self) -> PartitionId {
        self.fold.partition
    }

    // Level-triggered: whatever the state asks for now, whoever changed it.
    fn pump(&mut self, now: Now) {
        self.step_phase(now);
        if self.phase == Phase::Owning {
            self.run_unproven(now);
            self.fire_timers(now);
            self.do_todo(now);
            self.append_creates(now);
            self.hand_out(now);
            self.renew(now);
            self.keep_locks(now);
        }
        // After the hand-outs: a poll that does not wait still gets what is there now.
        self.expire(now);
        self.flush_rows(now);
        self.finish_drain(now);
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
