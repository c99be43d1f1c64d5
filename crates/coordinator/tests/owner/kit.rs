//! A world around [`Owner`] that a test moves step by step: virtual time, a log whose appends land
//! when the test says so, a store and a lock that answer when the test says so, several members.
//!
//! The kit judges every landed record with its own fold and holds it to the invariants of design.md
//! §5, whatever the test is about. It answers no request itself: what a client hears is what an
//! owner said, at most once.

mod calls;
mod log;
mod script;
mod text;
mod writers;

use std::collections::{BTreeMap, VecDeque};

use coordinator::owner::*;
use event_log::RawRecord;
use snapshot_store::{CheckpointName, MemoryStore};
use task_core::{PartitionState, Rules};
use task_events::{Incarnation, Offset, PartitionId, TASK_ID_EPOCH_MS, TaskId, Text};

pub use log::Sent;
pub use writers::{beat, complete, fail, parameters, poll, report, sha, task};

pub const P: PartitionId = PartitionId(3);

thread_local! {
    /// Rules of every owner of this thread: a mutant's, while `mutants` shows that it is missed.
    pub static RULES: std::cell::Cell<OwnerRules> = const { std::cell::Cell::new(OwnerRules::STANDARD) };
}

/// One coordinator process with its owner of the partition.
pub struct Member {
    pub owner: Owner,
    /// Records it has read.
    pub read: usize,
    /// Appends that are neither landed nor settled.
    pub sent: VecDeque<Sent>,
    /// Port calls that are not answered.
    pub calls: VecDeque<Effect>,
    pub alarms: Vec<Alarm>,
    pub published: Vec<Checkpoint>,
    pub put_acked: Vec<Offset>,
    pub released: Vec<String>,
    /// Locks taken and locks renewed, over all requests.
    pub locks: (usize, usize),
    pub drained: bool,
    pub stopped: Option<Stop>,
    /// It does not run: SIGSTOP.
    pub frozen: bool,
}

pub struct World {
    pub now: Now,
    /// Broker's clock minus wall clock.
    pub skew_ms: i64,
    pub cfg: OwnerConfig,
    pub rules: OwnerRules,
    pub fold_rules: &'static Rules,
    pub log: Vec<RawRecord>,
    pub lines: Vec<String>,
    pub fold: PartitionState,
    /// State hash before each offset.
    pub hashes: Vec<u128>,
    /// Rows written, as text.
    pub writes: Vec<String>,
    pub store: MemoryStore,
    pub members: BTreeMap<&'static str, Member>,
    pub on: &'static str,
    /// Appends wait for [`World::land`].
    pub hold_log: bool,
    /// Landed records wait for [`World::read`].
    pub hold_read: bool,
    pub hold_store: bool,
    pub hold_lock: bool,
    /// The store answers errors.
    pub store_away: bool,
    pub lock_away: bool,
    /// A key of the lock server is no lock.
    pub lock_unusable: bool,
    pub run_id: String,
    pub replies: BTreeMap<Token, Answer>,
    pub asked: u64,
    /// The last task accepted under a name, and every id a name was written under.
    pub names: BTreeMap<String, TaskId>,
    pub named: BTreeMap<TaskId, String>,
    pub ticks: u64,
    /// What the owners told of what they did.
    pub spans: Vec<spans::Span>,
    /// Somebody forges records: what an honest writer keeps to is not checked.
    pub hostile: bool,
    starts: u64,
    watch: log::Watch,
}

impl World {
    /// A world in which `a` owns the partition.
    pub fn new() -> Self {
        Self::with(OwnerConfig::default())
    }

    pub fn with(cfg: OwnerConfig) -> Self {
        let mut world = Self::bare(cfg);
        world.join("a");
        world.settle();
        assert_eq!(world.owner().phase(), Phase::Owning);
        world
    }

    /// A world nobody has joined yet.
    pub fn bare(cfg: OwnerConfig) -> Self {
        Self {
            now: Now::at_ms(1_000_000, TASK_ID_EPOCH_MS + 60_000_000_000),
            skew_ms: 0,
            cfg,
            rules: RULES.get(),
            fold_rules: &task_core::STANDARD,
            log: Vec::new(),
            lines: Vec::new(),
            fold: PartitionState::new(P, true),
            hashes: Vec::new(),
            writes: Vec::new(),
            store: MemoryStore::default(),
            members: BTreeMap::new(),
            on: "a",
            hold_log: false,
            hold_read: false,
            hold_store: false,
            hold_lock: false,
            store_away: false,
            lock_away: false,
            lock_unusable: false,
            run_id: "redis-1".to_owned(),
            replies: BTreeMap::new(),
            asked: 0,
            names: BTreeMap::new(),
            named: BTreeMap::new(),
            ticks: 0,
            spans: Vec::new(),
            hostile: false,
            starts: 0,
            watch: log::Watch::default(),
        }
    }

    /// A process starts and is assigned the partition; from now on it is the one that is asked.
    pub fn join(&mut self, name: &'static str) {
        self.join_from(name, PartitionState::with_rules(P, true, self.fold_rules));
    }

    /// The same from a checkpoint.
    pub fn join_from(&mut self, name: &'static str, fold: PartitionState) {
        self.starts += 1;
        let read = fold.next_offset.0 as usize;
        let id = Identity {
            instance: Text::from(name),
            incarnation: Incarnation(1_000 + self.starts as i64),
            url: Text::from(format!("http://{name}")),
        };
        let start = Start {
            fold,
            end: Offset(self.log.len() as u64),
            acked: self.acked(),
            number: self.starts,
            random: 7 + self.starts,
        };
        let member = Member {
            owner: Owner::new(self.cfg.clone(), self.rules, id, start).tracing(true),
            read,
            sent: VecDeque::new(),
            calls: VecDeque::new(),
            alarms: Vec::new(),
            published: Vec::new(),
            put_acked: Vec::new(),
            released: Vec::new(),
            locks: (0, 0),
            drained: false,
            stopped: None,
            frozen: false,
        };
        self.members.insert(name, member);
        self.on = name;
        self.feed(name, Input::Tick);
    }

    /// The process dies; what it sent may still land. Another one takes over.
    pub fn crash(&mut self, next: &'static str) -> VecDeque<Sent> {
        let on = self.on;
        let dead = self.members.remove(on).expect("somebody to crash");
        self.join(next);
        self.settle();
        dead.sent
    }

    pub fn owner(&self) -> &Owner {
        &self.members[self.on].owner
    }

    pub fn me(&mut self) -> &mut Member {
        self.members.get_mut(self.on).expect("a member")
    }

    /// Asks the member at hand.
    pub fn ask(&mut self, command: Command) -> Token {
        self.asked += 1;
        let token = Token(self.asked);
        let on = self.on;
        self.feed(on, Input::Command(token, command));
        self.settle();
        token
    }

    pub fn answer(&self, token: Token) -> Option<&Answer> {
        self.replies.get(&token)
    }

    /// Hands an input to a member and takes note of its effects.
    pub fn feed(&mut self, name: &'static str, input: Input) {
        let now = self.now;
        let Some(member) = self.members.get_mut(name) else { return };
        let effects = member.owner.handle(now, input);
        assert!(member.owner.next_wake(now) > now.boot_ms, "a wake that does not lie ahead");
        for effect in effects {
            self.effect(name, effect);
        }
    }

    /// Everything that is not held happens, until nothing moves.
    pub fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 5_000, "does not settle: {}", self.tail(12));
            let names: Vec<&'static str> = self.members.keys().copied().collect();
            let mut moved = false;
            for name in names {
                if self.members[name].frozen {
                    continue;
                }
                moved |= !self.hold_log && self.land_one(name);
                moved |= !self.hold_read && self.read_on(name);
                moved |= self.answer_calls(name);
            }
            if !moved {
                return;
            }
        }
    }

    /// Time passes; every member is woken when it wants to be.
    pub fn wait(&mut self, ms: u64) {
        let until = self.now.boot_ms + ms;
        while self.now.boot_ms < until {
            let now = self.now;
            let awake = self.members.values().filter(|m| !m.frozen);
            let wake = awake.map(|m| m.owner.next_wake(now)).min().unwrap_or(until).min(until);
            let passed = wake - self.now.boot_ms;
            self.now = Now::at_ms(wake, self.now.wall_ms + passed as i64);
            let names: Vec<&'static str> = self.members.keys().copied().collect();
            for name in names {
                if !self.members[name].frozen {
                    self.ticks += 1;
                    self.feed(name, Input::Tick);
                }
            }
            self.settle();
        }
    }

    /// Nobody runs while time passes: the machine sleeps, or the process is stopped.
    pub fn freeze(&mut self, ms: u64) {
        self.now = Now::at_ms(self.now.boot_ms + ms, self.now.wall_ms + ms as i64);
    }

    pub fn id(&self, name: &str) -> TaskId {
        *self.names.get(name).unwrap_or_else(|| panic!("no task {name} was created"))
    }

    /// State hash at an offset.
    pub fn hash_at(&self, offset: usize) -> u128 {
        self.hashes.get(offset).copied().unwrap_or_else(|| self.fold.hash())
    }

    /// Alarms of one name so far.
    pub fn alarms(&self, name: &str) -> usize {
        self.members[self.on].alarms.iter().filter(|a| a.name() == name).count()
    }

    pub fn checkpoint_names(&self) -> Vec<CheckpointName> {
        let of = |c: &Checkpoint| CheckpointName {
            partition: P,
            offset: c.state.offset(),
            epoch: c.epoch,
            rule_version: c.rule_version,
            state_hash: c.state_hash,
        };
        self.members.values().flat_map(|m| m.published.iter().map(of)).collect()
    }
}
