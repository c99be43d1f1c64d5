//! Faults that come by time: kills, freezes, zombies, rebalances, clock steps, servers away; and
//! the healing of them all.

use crate::act::Act;
use crate::exec::ProcId;
use crate::faults::Fault;
use crate::hub::Ev;
use crate::ports::groups::SESSION_US;
use crate::world::World;

/// Faults this file brings about.
const TIMED: [Fault; 11] = [
    Fault::Crash,
    Fault::Freeze,
    Fault::Zombie,
    Fault::Rebalance,
    Fault::WallStep,
    Fault::StoreDown,
    Fault::LockDown,
    Fault::LockFlush,
    Fault::WorkerCrash,
    Fault::WorkerFreeze,
    Fault::Rogue,
];

impl World {
    /// One fault, and when the next one comes.
    pub(crate) fn chaos(&mut self) {
        if self.healed {
            return;
        }
        let fault = {
            let mut s = self.hub.lock();
            let mut on: Vec<_> = TIMED.iter().copied().filter(|f| s.faults.on(*f)).collect();
            if s.audit.takeovers < self.plan.takeovers && !on.contains(&Fault::Crash) {
                // Every world sees owners change, a calm one by an orderly hand-over.
                on.push(Fault::Rebalance);
            }
            let mean = s.faults.mean_us;
            let at = s.now() + s.rng.delay(mean) / 2;
            s.at(at, Ev::Act(Act::Chaos));
            s.rng.pick(&on).copied()
        };
        let Some(fault) = fault else { return };
        self.hub.lock().tally.add(fault);
        self.note(fault.as_str().to_owned());
        match fault {
            Fault::Crash => self.crash(),
            Fault::Freeze => self.freeze(),
            Fault::WorkerCrash => {
                let w = self.any_worker();
                self.workers[w].kill();
                let mut s = self.hub.lock();
                let at = s.now() + s.rng.between(50_000, 6_000_000);
                s.at(at, Ev::Act(Act::WorkerStart(w)));
            }
            Fault::WorkerFreeze => {
                let w = self.any_worker();
                let mut s = self.hub.lock();
                let until = s.now() + s.rng.between(100_000, 20_000_000);
                self.workers[w].frozen_until = until;
            }
            Fault::WallStep => self.step_wall(),
            Fault::Zombie | Fault::Rebalance => {
                let mut s = self.hub.lock();
                let names = s.groups.names();
                // Mostly of the group where it hurts.
                let name =
                    if s.rng.chance(700_000) { Some("coordinator".to_owned()) } else { s.rng.pick(&names).cloned() };
                let Some(name) = name else { return };
                if fault == Fault::Rebalance {
                    return s.rebalance(&name, true);
                }
                let n = s.rng.next_u64();
                let quiet = s.rng.between(100_000, 15_000_000);
                if let Some((id, _)) = s.groups.nth(&name, n) {
                    s.declare_lost(&name, id, quiet);
                }
            }
            Fault::StoreDown => {
                let mut s = self.hub.lock();
                let until = s.now() + s.rng.between(200_000, 20_000_000);
                s.tables.down_until = until;
            }
            Fault::LockDown => {
                let mut s = self.hub.lock();
                let until = s.now() + s.rng.between(200_000, 8_000_000);
                s.locks.down_until = until;
            }
            Fault::LockFlush => {
                let mut s = self.hub.lock();
                let restarted = s.rng.chance(500_000);
                s.locks.flush(restarted);
            }
            Fault::Rogue => {
                let mut s = self.hub.lock();
                for _ in 0..4 {
                    s.rogue();
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, what: String) {
        self.events.push((self.time.us(), what));
    }

    fn any_worker(&mut self) -> usize {
        self.hub.lock().rng.below(self.workers.len() as u64) as usize
    }

    // Mostly a coordinator, mostly one that owns something.
    fn victim(&mut self) -> ProcId {
        let mut s = self.hub.lock();
        if s.rng.chance(700_000) {
            let p = s.rng.below(u64::from(self.plan.partitions)) as u16;
            return s.route(task_events::PartitionId(p));
        }
        s.rng.below(self.procs.len() as u64) as usize
    }

    fn crash(&mut self) {
        let id = self.victim();
        self.note(format!("process {id} is killed"));
        self.exec.crash(id);
        let mut s = self.hub.lock();
        let state = &mut s.procs[id];
        if !state.up {
            return;
        }
        (state.up, state.frozen_until) = (false, 0);
        s.silence(id);
        // Misfortunes come together: a worker that stands still while its owner changes.
        if s.faults.on(Fault::WorkerFreeze) && s.rng.chance(300_000) {
            let until = s.now() + s.rng.between(1_500_000, 4_000_000);
            let w = s.rng.below(self.workers.len() as u64) as usize;
            self.workers[w].frozen_until = until;
            s.tally.add(Fault::WorkerFreeze);
        }
        let at = s.now() + s.rng.between(50_000, 5_000_000);
        s.at(at, Ev::Act(Act::Start(id)));
    }

    fn freeze(&mut self) {
        let id = self.victim();
        self.note(format!("process {id} is frozen"));
        let mut s = self.hub.lock();
        if !s.procs[id].up || s.procs[id].frozen_until > 0 {
            return;
        }
        let span =
            if s.rng.chance(400_000) { s.rng.between(20_000, 900_000) } else { s.rng.between(900_000, 30_000_000) };
        let until = s.now() + span;
        s.procs[id].frozen_until = until;
        s.at(until, Ev::Act(Act::Thaw(id)));
        s.stands_still(id, until);
        drop(s);
        self.exec.freeze(id);
    }

    pub(crate) fn thaw(&mut self, id: ProcId) {
        let mut s = self.hub.lock();
        let now = s.now();
        if s.procs[id].frozen_until == 0 || s.procs[id].frozen_until > now {
            return;
        }
        s.procs[id].frozen_until = 0;
        drop(s);
        self.exec.thaw(id);
    }

    fn step_wall(&mut self) {
        let mut s = self.hub.lock();
        let ms = match s.rng.below(5) {
            0 => 3_600_000,
            1 => -3_600_000,
            2 => s.rng.below(20_000) as i64 - 10_000,
            // Behind, and by too little for anybody to notice: whoever takes over then must not mint old ids.
            3 => -(s.rng.below(5_000) as i64),
            _ => 0,
        };
        let n = s.rng.below((self.procs.len() + self.workers.len()) as u64) as usize;
        match self.procs.get(n) {
            Some(process) => process.clock.set_wall_offset(ms),
            None => self.workers[n - self.procs.len()].clock.set_wall_offset(ms),
        }
    }

    /// The last fault is over: everything runs again, and what is open must end.
    pub(crate) fn heal(&mut self) {
        self.healed = true;
        self.note("everything is healed".to_owned());
        let quiet = self.quiet();
        let mut s = self.hub.lock();
        s.faults = quiet;
        (s.tables.down_until, s.locks.down_until) = (0, 0);
        for id in 0..self.procs.len() {
            self.procs[id].clock.set_wall_offset(0);
            let state = s.procs[id];
            if !state.up {
                let at = s.now() + 1_000;
                s.at(at, Ev::Act(Act::Start(id)));
            } else if state.frozen_until > 0 {
                let now = s.now();
                s.procs[id].frozen_until = now;
                s.at(now, Ev::Act(Act::Thaw(id)));
            }
        }
        let now = s.now();
        for (w, worker) in self.workers.iter_mut().enumerate() {
            worker.clock.set_wall_offset(0);
            worker.frozen_until = now;
            s.at(now + 1_000, Ev::Act(Act::WorkerStart(w)));
        }
        // The session time-out of whoever is really gone must have passed before owners settle.
        s.at(now + SESSION_US, Ev::Act(Act::Client));
    }
}
