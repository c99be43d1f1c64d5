//! What an owner starts from.

use std::collections::{BTreeSet, VecDeque};

use task_core::timers::TimerWheel;
use task_core::{HashRing, PartitionState};
use task_events::{Encoder, Offset, OwnerSeq, PartitionEpoch};

use super::appending::Outgoing;
use super::awaiting::Awaits;
use super::clock::BrokerClock;
use super::creating::Creates;
use super::dispatching::Dispatch;
use super::firing::OverdueWindow;
use super::flight::Flight;
use super::locking::LockState;
use super::looking::{OpenTasks, Verdicts};
use super::owed::Owed;
use super::{Identity, Map, Owner, OwnerConfig, OwnerRules, Phase};

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
        let mut ring = HashRing::new(cfg.checkpoint_every);
        // An empty ring has nothing to differ from.
        let _ = ring.note(start.fold.next_offset, start.fold.hash());
        let mut owner = Self {
            cfg,
            rules,
            id,
            encoder: Encoder::new(),
            phase: Phase::Folding { until: start.end },
            clock,
            random: start.random,
            claims_made: start.number << 24,
            claim_attempt: start.number << 24,
            epoch: PartitionEpoch(0),
            claims: Vec::new(),
            claim_backoff_ms,
            claimed_ms: 0,
            next_seq: OwnerSeq(1),
            proof_until_ms: 0,
            renewed_ms: 0,
            wants_proof: false,
            log_pause_until_ms: 0,
            owner_heard_ms: 0,
            silence_told: false,
            flight: Flight::default(),
            outgoing: Outgoing::default(),
            calls: Map::default(),
            reads: Map::default(),
            next_ticket: 0,
            resend: Map::default(),
            requests: Map::default(),
            deadlines: TimerWheel::default(),
            swept_ms: 0,
            parked: VecDeque::new(),
            unproven: VecDeque::new(),
            waiting: Map::default(),
            awaits: Awaits::default(),
            todo: BTreeSet::new(),
            acting: TimerWheel::default(),
            judged: TimerWheel::default(),
            overdue: OverdueWindow::default(),
            live: Map::default(),
            by_worker: Map::default(),
            unstarted: BTreeSet::new(),
            workers: Map::default(),
            polled: Map::default(),
            holds: Map::default(),
            rejections: Map::default(),
            open: OpenTasks::of(&start.fold),
            verdicts: Verdicts::starting(start.fold.next_offset),
            creators: Map::default(),
            creating: Map::default(),
            dispatch: Dispatch::default(),
            polls: VecDeque::new(),
            creates: Creates::default(),
            keys_pending: Map::default(),
            owed: Owed::default(),
            acked: start.acked,
            acked_sent: start.acked,
            acked_at_ms: 0,
            rows_writing: false,
            checkpoint: None,
            ring,
            lock: LockState::default(),
            draining: None,
            read_back_us: None,
            traces: false,
            out: Vec::new(),
            fold: start.fold,
        };
        owner.count_creators();
        owner
    }
}
