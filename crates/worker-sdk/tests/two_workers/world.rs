//! The world: processes, clocks, messages on their way, and the check.

use std::collections::{BTreeMap, BTreeSet};

use task_events::{ErrorCategory, ExecutionId, Incarnation, Sha256Hash, StepDone};
use worker_sdk::machine::{Config, HandlerEnd, Input, Machine, Now, OutboxEntry, Output};

use crate::network::{Random, Request};
use crate::owner::Owner;

/// What kind of world.
#[derive(Clone, Debug)]
pub struct Setting {
    pub seed: u64,
    /// Of the two workers.
    pub links: [Links; 2],
    /// Take-overs, crashes, new processes, cuts.
    pub faults_per_minute: u64,
    pub longest_delay_ms: u64,
    pub optimistic: bool,
    pub freezes: bool,
    /// Clock rates of the two workers, per mille.
    pub rates: [u64; 2],
    /// Whether the owner follows its waiting rule.
    pub owner_waits: bool,
}

impl Setting {
    pub fn quiet(seed: u64) -> Self {
        Self {
            seed,
            links: [Links::default(); 2],
            faults_per_minute: 0,
            longest_delay_ms: 20,
            optimistic: false,
            freezes: false,
            rates: [1_000, 1_000],
            owner_waits: true,
        }
    }
}

/// One direction between a worker and the owner.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    pub lost_percent: u64,
    pub doubled_percent: u64,
    /// How many messages may take as long as the longest delay; the others take 20 ms.
    pub slow_percent: u64,
}

/// Both directions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Links {
    pub requests: Link,
    pub answers: Link,
}

/// A worker process; an older one of the same worker may still be alive.
struct Process {
    machine: Machine,
    worker: usize,
    rate: u64,
    offset: u64,
    frozen_until: u64,
    /// Nothing that it sends arrives.
    cut_off_until: u64,
    tick_at: u64,
    outbox: Vec<OutboxEntry>,
}

impl Process {
    fn boot_ms(&self, t: u64) -> u64 {
        self.offset + t * self.rate / 1_000
    }

    /// First world time at which this process's clock shows `boot_ms`.
    fn world_time(&self, boot_ms: u64) -> u64 {
        (boot_ms.saturating_sub(self.offset) * 1_000).div_ceil(self.rate)
    }
}

enum Event {
    ToOwner(usize, Request, bool),
    ToWorker(usize, Input),
    Tick(usize),
    OwnerTick,
    Fault,
}

pub struct World {
    setting: Setting,
    random: Random,
    now: u64,
    numbered: u64,
    events: BTreeMap<(u64, u64), Event>,
    processes: BTreeMap<usize, Process>,
    started: usize,
    owner: Owner,
    zombie: Option<(Owner, u64)>,
    entered: BTreeSet<ExecutionId>,
    overlaps: Vec<String>,
}

impl World {
    pub fn new(setting: Setting) -> Self {
        let mut world = Self {
            random: Random(setting.seed),
            owner: Owner::new(setting.optimistic, setting.owner_waits),
            setting,
            now: 1,
            numbered: 0,
            events: BTreeMap::new(),
            processes: BTreeMap::new(),
            started: 0,
            zombie: None,
            entered: BTreeSet::new(),
            overlaps: Vec::new(),
        };
        world.start(0, Vec::new());
        world.start(1, Vec::new());
        world.schedule(10, Event::OwnerTick);
        world.schedule(100, Event::Fault);
        world
    }

    pub fn overlaps(&self) -> &[String] {
        &self.overlaps
    }

    pub fn successes(&self) -> u64 {
        self.owner.successes
    }

    pub fn run(&mut self, until: u64) {
        while let Some(((at, _), event)) = self.events.pop_first() {
            if at > until || !self.overlaps.is_empty() {
                return;
            }
            self.now = at;
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::ToOwner(from, request, by_zombie) => self.at_owner(from, request, by_zombie),
            Event::ToWorker(to, input) => self.give(to, input),
            Event::Tick(process) => self.give(process, Input::Tick),
            Event::OwnerTick => {
                self.owner.tick(self.now);
                self.schedule(50, Event::OwnerTick);
            }
            Event::Fault => {
                if self.random.below(600) < self.setting.faults_per_minute {
                    self.fault();
                }
                self.schedule(100, Event::Fault);
            }
        }
    }

    fn at_owner(&mut self, from: usize, request: Request, by_zombie: bool) {
        let now = self.now;
        let answer = match &mut self.zombie {
            Some((zombie, until)) if by_zombie && now < *until => zombie.answer(request, now, true),
            Some(_) | None => self.owner.answer(request, now, false),
        };
        let Some(link) = self.processes.get(&from).map(|p| self.setting.links[p.worker].answers) else { return };
        self.on_its_way(link, |world, delay| world.schedule(delay, Event::ToWorker(from, answer.clone())));
    }

    fn fault(&mut self) {
        match self.random.below(6) {
            0 => {
                // The zombie's last proof of being current is at most 2 s old.
                self.zombie = Some((self.owner.clone(), self.now + self.random.below(2_000)));
                self.owner.taken_over(self.now);
            }
            1 => {
                // A new process of a worker beside the old one, which is to finish and drain.
                let worker = self.random.below(2) as usize;
                self.start(worker, Vec::new());
            }
            2 => {
                let at = self.random.below(self.processes.len() as u64) as usize;
                let crashed = self.processes.keys().nth(at).copied().and_then(|p| self.processes.remove(&p));
                if let Some(crashed) = crashed {
                    self.start(crashed.worker, crashed.outbox);
                }
            }
            3 | 4 => {
                let (at, long) = (self.random.below(self.processes.len() as u64) as usize, self.random.below(20_000));
                if let Some(process) = self.processes.values_mut().nth(at) {
                    process.cut_off_until = self.now + long;
                }
            }
            _ if self.setting.freezes => {
                let (at, long) = (self.random.below(self.processes.len() as u64) as usize, self.random.below(30_000));
                if let Some(process) = self.processes.values_mut().nth(at) {
                    process.frozen_until = self.now + long;
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, worker: usize, outbox: Vec<OutboxEntry>) {
        self.started += 1;
        let name = ["a", "b"][worker];
        let incarnation = Incarnation(self.started as i64);
        // Answers to polls may come very late and still bring an attempt.
        let fast = Config::new(name.into(), incarnation, vec!["q".into()]);
        let config = Config { slots: 2, poll_wait_ms: 500, poll_slack_ms: 8_000, ..fast };
        let (rate, offset) = (self.setting.rates[worker], self.random.below(1_000_000));
        let now = Now { boot_ms: offset + self.now * rate / 1_000, wall_ms: 0 };
        let machine = Machine::new(config, now, outbox.clone()).expect("valid settings");
        self.processes.insert(
            self.started,
            Process { machine, worker, rate, offset, frozen_until: 0, cut_off_until: 0, tick_at: 0, outbox },
        );
        self.drain_outputs(self.started);
    }

    fn give(&mut self, id: usize, input: Input) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        if process.frozen_until > self.now {
            let left = process.frozen_until - self.now;
            return self.schedule(left, Event::ToWorker(id, input));
        }
        let now = Now { boot_ms: process.boot_ms(self.now), wall_ms: 0 };
        process.machine.handle(now, input);
        self.drain_outputs(id);
        self.check();
    }

    fn drain_outputs(&mut self, id: usize) {
        while let Some(output) = self.processes.get_mut(&id).and_then(|p| p.machine.take_output()) {
            if let Some(request) = Request::of(&output) {
                self.send(id, request);
            }
            match output {
                Output::Start { assignment } => self.enter(id, assignment.attempt.execution_id),
                Output::Stop { execution_id, .. } => {
                    let soon = self.random.below(500);
                    let input = Input::HandlerEnded { execution_id, end: HandlerEnd::Stopped };
                    self.schedule(soon, Event::ToWorker(id, input));
                }
                Output::Persist { entry } => self.process(id).outbox.push(entry),
                Output::Forget { key } => self.process(id).outbox.retain(|e| e.key != key),
                Output::Poll { .. } | Output::Heartbeat { .. } | Output::Report { .. } | Output::Cancel { .. } => {}
            }
        }
        let now = self.now;
        if let Some(process) = self.processes.get_mut(&id)
            && let Some(due) = process.machine.next_due()
        {
            let at = process.world_time(due).max(now + 1);
            // One tick at a time; one that comes too early only costs a look.
            if process.tick_at <= now || at < process.tick_at {
                process.tick_at = at;
                self.schedule(at - now, Event::Tick(id));
            }
        }
    }

    fn enter(&mut self, id: usize, execution_id: ExecutionId) {
        if !self.entered.insert(execution_id) {
            self.overlaps.push(format!("{execution_id} entered twice"));
        }
        if !self.setting.optimistic && !self.owner.confirmed.contains(&execution_id) {
            self.overlaps.push(format!("{execution_id} entered without a record of its start"));
        }
        let longest = if self.random.percent(50) { 60_000 } else { 8_000 };
        let runs = 1_000 + self.random.below(longest);
        let done = StepDone {
            step: "s".into(),
            index: 0,
            output_hash: Sha256Hash([execution_id.0[8]; 32]),
            is_idempotent: true,
        };
        self.schedule(runs / 2, Event::ToWorker(id, Input::StepDone { execution_id, done }));
        let end = if self.random.percent(70) {
            HandlerEnd::Success { result_data_hash: Sha256Hash::default() }
        } else {
            HandlerEnd::Failed { error_code: "X".into(), error_message: "x".into(), category: ErrorCategory::Transient }
        };
        self.schedule(runs, Event::ToWorker(id, Input::HandlerEnded { execution_id, end }));
    }

    fn send(&mut self, id: usize, request: Request) {
        let by_zombie = self.random.percent(50);
        let (worker, cut_off) = (self.process(id).worker, self.process(id).cut_off_until > self.now);
        let mut link = self.setting.links[worker].requests;
        if cut_off {
            link.lost_percent = 100;
        }
        let mut arrived = false;
        self.on_its_way(link, |world, delay| {
            arrived = true;
            world.schedule(delay, Event::ToOwner(id, request.clone(), by_zombie));
        });
        // A worker notices some failures by itself, and only some.
        if !arrived && self.random.percent(50) {
            self.schedule(1, Event::ToWorker(id, Input::SendFailed { request: request.id() }));
        }
    }

    fn on_its_way(&mut self, link: Link, mut deliver: impl FnMut(&mut Self, u64)) {
        let copies = if self.random.percent(link.lost_percent) {
            0
        } else {
            1 + u64::from(self.random.percent(link.doubled_percent))
        };
        for _ in 0..copies {
            let delay = self.random.delay(link.slow_percent, self.setting.longest_delay_ms);
            deliver(self, delay);
        }
    }

    // By each process's own clock, whatever it has been told: who may act now?
    fn check(&mut self) {
        let mut acting = Vec::new();
        for (id, process) in &self.processes {
            let boot_ms = process.boot_ms(self.now);
            let acts = |e: &&ExecutionId| process.machine.may_write(**e, boot_ms);
            acting.extend(self.entered.iter().rev().take(64).filter(acts).map(|e| format!("{e} in process {id}")));
        }
        if acting.len() > 1 {
            self.overlaps.push(format!("at {}: {}", self.now, acting.join(", ")));
        }
    }

    fn process(&mut self, id: usize) -> &mut Process {
        self.processes.get_mut(&id).expect("it is running")
    }

    fn schedule(&mut self, after: u64, event: Event) {
        self.numbered += 1;
        self.events.insert((self.now + after, self.numbered), event);
    }
}
