//! A world from its seed: processes, workers, clients, and the loop that moves them.

use std::collections::BTreeMap;
use std::sync::Arc;

use coordinator::owner::{Identity, Ports};
use coordinator::surface::Surface;
use service_kit::{Clock as _, Metrics};
use task_core::Reason;
use task_events::{ExecutionId, Incarnation, PartitionId, Text};

use crate::act::{Act, From, Request};
use crate::audit::{Audit, Judged};
use crate::client::Clients;
use crate::clock::{Alarm, SimClock, TrueTime};
use crate::edge;
use crate::exec::{Executor, ProcId};
use crate::faults::{Fault, Faults, Tally};
use crate::hub::{Ev, Hub, ProcState, Queue, Shared};
use crate::plan::{Plan, healing_us};
use crate::ports::groups::Groups;
use crate::ports::lock::{LockServer, SimLock};
use crate::ports::log::{SimLog, Topic};
use crate::ports::store::{SimStore, Tables};
use crate::report::Report;
use crate::rng::Rng;
use crate::verdicts::{Seeded, Verdicts};
use crate::worker::Worker;

/// Longest first phase, true µs.
const FIRST_PHASE_US: u64 = 1_800_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Coordinator,
    Engine,
    Replayer,
}

pub(crate) struct Process {
    pub(crate) role: Role,
    name: Text,
    pub(crate) clock: SimClock,
    surface: Surface<SimClock>,
    metrics: Metrics,
    starts: u64,
}

/// Everything of one seed.
pub struct World {
    pub(crate) plan: Arc<Plan>,
    pub(crate) hub: Hub,
    pub(crate) exec: Executor,
    pub(crate) time: TrueTime,
    pub(crate) procs: Vec<Process>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) clients: Clients,
    pub(crate) healed: bool,
    /// Faults that came by time.
    pub(crate) events: Vec<(u64, String)>,
}

/// Runs a plan to its end.
pub fn run(plan: Plan) -> (Report, World) {
    let mut world = World::new(plan);
    world.live();
    (world.report(), world)
}

impl World {
    /// A world before its first event.
    pub fn new(plan: Plan) -> Self {
        let plan = Arc::new(plan);
        let time = TrueTime::default();
        let mut rng = Rng::new(plan.seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(1));
        let mut audit = Audit::new(plan.partitions, plan.fold_rules);
        audit.stale_us = plan.owner.proof_ms * 1_000 + plan.owner.proof_ms * plan.skew_ppm as u64 / 1_000 + 2_000;
        audit.coordinators = plan.coordinators;
        let count = plan.coordinators + plan.engines + plan.replayers;
        let skew = plan.skew_ppm;
        let mut draw = move || {
            let rate = if skew == 0 { 0 } else { rng.below(2 * skew as u64 + 1) as i64 - skew };
            (rng.below(100_000_000_000), rate)
        };
        let clocks: Vec<_> = (0..count + plan.workers).map(|_| draw()).collect();
        let shared = Shared {
            time: time.clone(),
            queue: Queue::default(),
            rng: Rng::new(plan.seed ^ 0x5851_f42d_4c95_7f2d),
            faults: plan.faults.clone(),
            tally: Tally::default(),
            procs: vec![ProcState::default(); count],
            topic: Topic::new(plan.partitions),
            groups: Groups::new(plan.partitions),
            tables: Tables::default(),
            locks: LockServer::default(),
            audit,
        };
        let hub = Hub::new(shared);
        let clock = |i: usize| SimClock::new(time.clone(), hub.clone(), clocks[i].0, clocks[i].1);
        let mut procs = Vec::new();
        let kinds = [
            (Role::Coordinator, plan.coordinators, 'c'),
            (Role::Engine, plan.engines, 'e'),
            (Role::Replayer, plan.replayers, 'r'),
        ];
        for (role, n, letter) in kinds {
            for i in 0..n {
                procs.push(Process {
                    role,
                    name: Text::from(format!("{letter}{i}")),
                    clock: clock(procs.len()),
                    surface: Surface::new(plan.partitions, clock(procs.len())),
                    metrics: Metrics::default(),
                    starts: 0,
                });
            }
        }
        let (named, long) = (|i: usize| Text::from(format!("w{i}")), plan.long_steps_ppm);
        let worker = |i: usize| Worker::new(named(i), clock(count + i), 2 + i as u32 % 3, long);
        let workers = (0..plan.workers).map(worker).collect();
        let mut world = Self {
            clients: Clients::of(plan.seed),
            plan,
            hub,
            exec: Executor::default(),
            time,
            procs,
            workers,
            healed: false,
            events: Vec::new(),
        };
        world.set_up();
        world
    }

    fn set_up(&mut self) {
        let mut s = self.hub.lock();
        if self.plan.skew_ppm > 0 {
            s.tally.add(Fault::Skew);
        }
        for id in 0..self.procs.len() {
            let at = s.rng.below(20_000);
            s.at(at, Ev::Act(Act::Start(id)));
        }
        for w in 0..self.workers.len() {
            let at = s.rng.below(50_000);
            s.at(at, Ev::Act(Act::WorkerStart(w)));
        }
        s.at(30_000, Ev::Act(Act::Client));
        s.at(1_000_000, Ev::Act(Act::Chaos));
    }

    /// Both phases.
    pub fn live(&mut self) {
        let plan = self.plan.clone();
        while self.hub.lock().audit.finding.is_none() {
            let (records, tasks, takeovers) = self.counts();
            let enough = records >= plan.records && tasks >= plan.tasks && takeovers >= plan.takeovers;
            if enough || self.time.us() > FIRST_PHASE_US {
                break;
            }
            // Checked from time to time only: the counts cost more than a step.
            for _ in 0..64 {
                self.step();
            }
        }
        self.alarms();
        if self.hub.lock().audit.finding.is_none() {
            self.heal();
            let open = self.hub.lock().audit.open();
            let until = self.time.us() + healing_us(open);
            while !self.at_rest() && self.hub.lock().audit.finding.is_none() {
                if self.time.us() > until {
                    self.still_open();
                    break;
                }
                for _ in 0..256 {
                    self.step();
                }
            }
        }
    }

    fn counts(&self) -> (u64, u64, u64) {
        let s = self.hub.lock();
        (s.topic.records(), s.audit.tasks, s.audit.takeovers)
    }

    fn still_open(&self) {
        let mut s = self.hub.lock();
        let open = s.audit.parts.iter().flat_map(|p| p.fold.tasks.iter().map(|t| t.core).collect::<Vec<_>>());
        let first = open.min_by_key(|core| core.id);
        let count = s.audit.open();
        let what = match &first {
            Some(core) => format!("{count} tasks are open long after the last fault, first {core:?}"),
            None => "requests are without an answer long after the last fault".to_owned(),
        };
        s.audit.find(20, what, first.map(|core| core.id), None);
    }

    // Polls what is awake, else moves on to the next event.
    fn step(&mut self) {
        if self.exec.step() {
            return;
        }
        let Some((at, ev)) = self.hub.lock().queue.pop() else { return };
        self.time.set(at.max(self.time.us()));
        match ev {
            Ev::Ring(alarm) => Alarm::ring(&alarm),
            Ev::Port(work) => work(&mut self.hub.lock()),
            Ev::Deliver(tail) => self.hub.lock().deliver(tail),
            Ev::Act(act) => self.act(act),
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Start(id) => self.start(id),
            Act::Thaw(id) => self.thaw(id),
            Act::Request(request) => self.arrive(*request),
            Act::Answer(From::Client(op), answer) => self.clients.answered(op, &answer, self.time.us()),
            Act::Answer(from @ From::Worker { worker, life, request }, answer) => {
                let w = &mut self.workers[worker];
                if w.frozen_until > self.time.us() {
                    let at = w.frozen_until;
                    self.hub.at(at, Ev::Act(Act::Answer(from, answer)));
                } else if w.life == life {
                    w.answered(request, *answer);
                    self.carry_out(worker);
                }
            }
            Act::WorkerStart(w) => {
                if self.workers[w].machine.is_none() {
                    self.workers[w].start(&mut self.hub.lock().rng);
                    self.carry_out(w);
                }
            }
            Act::WorkerTick(w, at) => {
                let worker = &mut self.workers[w];
                if worker.frozen_until > self.time.us() {
                    let later = worker.frozen_until;
                    self.hub.at(later, Ev::Act(Act::WorkerTick(w, at)));
                } else if worker.ticks(at) {
                    self.carry_out(w);
                }
            }
            Act::Handler(w, life, id) => self.handler(w, life, id),
            Act::Client => {
                let mut s = self.hub.lock();
                if !self.healed {
                    self.clients.act(&mut s);
                    let at = s.now() + s.rng.delay(self.plan.client_us);
                    s.at(at, Ev::Act(Act::Client));
                } else {
                    // Whoever paused a queue resumes it, for as long as it takes.
                    if s.audit.parts.iter().any(|p| !p.fold.paused_queues.is_empty()) {
                        self.clients.set_queue(&mut s, false);
                    }
                    self.clients.resolve(&mut s);
                    let at = s.now() + 1_000_000;
                    s.at(at, Ev::Act(Act::Client));
                }
            }
            Act::GiveUp(op) => self.clients.give_up(op, self.time.us()),
            Act::Chaos => self.chaos(),
        }
    }

    fn handler(&mut self, w: usize, life: u64, id: ExecutionId) {
        let worker = &mut self.workers[w];
        if worker.life != life {
            return;
        }
        if worker.frozen_until > self.time.us() {
            let at = worker.frozen_until;
            return self.hub.at(at, Ev::Act(Act::Handler(w, life, id)));
        }
        // The machine hears the time first, as the guard of a real handler asks it.
        worker.feed(worker_sdk::machine::Input::Tick);
        let mut s = self.hub.lock();
        if let Some((task, epoch)) = worker.handler(w, &mut s, id) {
            let now = s.now();
            s.audit.acted(now, task, epoch);
        }
        drop(s);
        self.carry_out(w);
    }

    pub(crate) fn carry_out(&mut self, w: usize) {
        let mut s = self.hub.lock();
        let entered = self.workers[w].carry_out(w, &mut s);
        let now = s.now();
        for id in entered {
            let Some(new) = self.workers[w].handlers.get(&id) else { continue };
            let (task, epoch) = (new.task, new.epoch);
            s.audit.entered(now, task, id, epoch);
            for other in &self.workers {
                for (other_id, h) in &other.handlers {
                    if *other_id != id && other.may_write(*other_id) {
                        s.audit.beside(now, (task, epoch), (h.task, h.epoch));
                    }
                }
            }
        }
    }

    // A request arrives at a coordinator: its edge hands it to the owner there.
    fn arrive(&mut self, request: Request) {
        let proc = self.hub.lock().proc(request.proc);
        if !proc.up {
            return;
        }
        if proc.frozen_until > self.time.us() {
            return self.hub.at(proc.frozen_until, Ev::Act(Act::Request(Box::new(request))));
        }
        let Request { proc, partition, command, asked, from } = request;
        let surface = self.procs[proc].surface.clone();
        let (hub, since) = (self.hub.clone(), self.time.us());
        self.exec.spawn(proc, async move {
            let answer = edge::ask(surface, partition, command).await;
            hub.lock().answer(since, from, &asked, answer);
        });
    }

    fn start(&mut self, id: ProcId) {
        let process = &mut self.procs[id];
        let (random, incarnation) = {
            let mut s = self.hub.lock();
            let state = &mut s.procs[id];
            if state.up {
                return;
            }
            state.up = true;
            state.life += 1;
            let random = s.rng.next_u64();
            (random, Incarnation::new(process.clock.wall_ms(), random as u32))
        };
        process.starts += 1;
        let log = SimLog::new(self.hub.clone(), id);
        let role = process.role;
        match role {
            Role::Coordinator => {
                let ports = Ports {
                    log,
                    store: SimStore::new(self.hub.clone()),
                    lock: SimLock::new(self.hub.clone()),
                    clock: process.clock.clone(),
                };
                let surface = Surface::new(self.plan.partitions, process.clock.clone());
                process.surface = surface.clone();
                let instance = process.name.clone();
                let identity = Identity { instance, incarnation, url: Text::const_new("http://c") };
                let seeded = Seeded(Rng::new(random));
                let settings = (self.plan.clone(), process.metrics.clone());
                let hub = self.hub.clone();
                self.exec.spawn(id, edge::coordinator((ports, surface), (identity, seeded), settings, (id, hub)));
            }
            Role::Engine | Role::Replayer => {
                let service = Verdicts {
                    instance: process.name.clone(),
                    incarnation,
                    log,
                    clock: process.clock.clone(),
                    hub: self.hub.clone(),
                    checkpoint_every: self.plan.owner.checkpoint_every,
                    rules: self.plan.fold_rules,
                    random,
                    metrics: process.metrics.clone(),
                };
                if role == Role::Engine {
                    self.exec.spawn(id, service.engine());
                } else {
                    self.exec.spawn(id, service.replayer());
                }
            }
        }
    }

    fn at_rest(&self) -> bool {
        let s = self.hub.lock();
        s.audit.open() == 0 && self.clients.ops.values().all(|op| op.outcome != crate::client::Outcome::Invoked)
    }

    /// What led to the finding, in words.
    pub fn history(&self) -> String {
        let s = self.hub.lock();
        let topic = &s.topic.partitions;
        s.audit
            .finding
            .as_ref()
            .map_or_else(String::new, |f| crate::history::shortened(f, &s.audit, topic, self.plan.fold_rules))
    }

    /// Every record with its verdict, in the order of offsets, partition by partition.
    pub fn trace(&self) -> Vec<String> {
        let s = self.hub.lock();
        let mut out: Vec<_> = self.events.iter().map(|(at, what)| format!("{}ms {what}", at / 1_000)).collect();
        for info in s.groups.infos() {
            out.push(format!("{info:?}"));
        }
        for process in &self.procs {
            out.push(format!("{} owns {:?}", process.name, process.surface.owned()));
        }
        for (log, part) in s.topic.partitions.iter().zip(&s.audit.parts) {
            for raw in log {
                let judged = part.judged.get(raw.offset.0 as usize).copied();
                let words = crate::history::words(raw, judged);
                out.push(format!(
                    "{} @{} {}ms {words}",
                    raw.partition,
                    raw.offset,
                    raw.broker_ms - crate::clock::EPOCH_MS
                ));
            }
        }
        out
    }

    /// What it came to so far.
    pub fn report(&self) -> Report {
        let s = self.hub.lock();
        let mut rejected = [0; Reason::ALL.len()];
        let mut quarantined = 0;
        for judged in s.audit.parts.iter().flat_map(|p| &p.judged) {
            match judged {
                Judged::Accepted => {}
                Judged::Rejected(reason) => rejected[*reason as usize] += 1,
                Judged::Quarantined(_) => quarantined += 1,
            }
        }
        let mut counters = BTreeMap::new();
        for process in &self.procs {
            for (name, alarm) in process.metrics.alarms() {
                *counters.entry(name).or_default() += alarm.count;
            }
            for (name, count) in process.metrics.counters() {
                *counters.entry(name).or_default() += count;
            }
        }
        Report {
            seed: self.plan.seed,
            records: s.topic.records(),
            tasks: s.audit.tasks,
            takeovers: s.audit.takeovers,
            polls: self.exec.polls,
            acts: s.audit.handlers.acts,
            virtual_us: s.now(),
            ops: self.clients.totals(),
            tally: s.tally.clone(),
            rejected,
            quarantined,
            counters,
            fingerprint: s.audit.fingerprint(),
            finding: s.audit.finding.clone(),
        }
    }

    // Both tracks never differ, whatever happened (invariant 16).
    fn alarms(&self) {
        for process in &self.procs {
            if let Some(alarm) = process.metrics.alarms().get("snapshot_differs") {
                self.hub.lock().audit.find(16, alarm.last.clone(), None, None);
            }
        }
    }

    pub(crate) fn quiet(&self) -> Faults {
        Faults::none()
    }
}

impl Shared {
    /// The process that most likely owns a partition; now and then another one.
    pub fn route(&mut self, partition: PartitionId) -> ProcId {
        let owner = self.audit.parts[usize::from(partition.0)].fold.owner.as_ref().map(|o| o.instance.clone());
        let named = owner.and_then(|name| name.strip_prefix('c')?.parse::<usize>().ok());
        match named {
            Some(proc) if !self.rng.chance(self.stray_ppm()) => proc,
            Some(_) | None => self.any_edge(),
        }
    }

    /// Some coordinator; of three tries one that runs.
    pub fn any_edge(&mut self) -> ProcId {
        let n = self.audit.coordinators as u64;
        let mut proc = 0;
        for _ in 0..3 {
            proc = self.rng.below(n) as usize;
            if self.procs[proc].up {
                break;
            }
        }
        proc
    }

    // Who asks the wrong one is mostly sent away; a zombie would answer.
    fn stray_ppm(&self) -> u32 {
        if self.faults.on(Fault::Zombie) || self.faults.on(Fault::Freeze) { 60_000 } else { 5_000 }
    }
}
