//! What can happen next in a world: an honest writer writes, a record lands (perhaps twice), is
//! lost, somebody freezes, a row is written, an answer is given.

use smallvec::SmallVec;
use task_core::decide::Fate;
use task_core::{Pen, pending_work};
use task_events::{Kind, TaskState};

use crate::config::Config;
use crate::honest::{Cmd, What, fate, report_of};
use crate::lab::{Lab, NONE};
use crate::subject::{TASKS, task_id};
use crate::world::{B, World};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// A writer wrote: on a frozen state or not, as an owner that is none or not.
    Write { cmd: Cmd, frozen: bool, rival: bool },
    /// A record landed; a copy of it stays in flight.
    Land { record: u32, stays: bool },
    /// A record is lost for good.
    Lose { record: u32 },
    /// A writer or reader stops and keeps the state it has.
    Freeze,
    /// The oldest owed row of a task is written.
    RowWritten(usize),
    /// The key's row is written.
    KeyWritten,
    /// A terminal report is answered `fenced`.
    Fenced { task: usize, e: u32, success: bool },
    /// A record of a writer that keeps no rule.
    Rogue { record: u32 },
}

/// A world that can follow.
pub struct Next {
    /// How.
    pub by: Move,
    /// The world.
    pub world: World,
    /// The law broken on the way.
    pub broken: Option<String>,
    /// Of a livelock: the records of the batch, the last of which is never accepted.
    pub refused: SmallVec<[u32; 4]>,
}

/// Every world that can follow, and what is wrong with this one.
pub struct Moves<'a> {
    pub(crate) lab: &'a mut Lab,
    pub(crate) config: &'a Config,
    pub(crate) out: &'a mut Vec<Next>,
    /// Whose moves: a claimant who lost takes himself for the owner of the epoch.
    pub(crate) rival: bool,
}

impl Moves<'_> {
    /// Fills `out` with every world that can follow.
    pub fn of(&mut self, w: &World) {
        if self.config.honest {
            self.view(w, w.fold, false);
        }
        if w.rival && w.has(B::Zombie) {
            self.rival = true;
            self.view(w, w.fold, false);
            self.rival = false;
        }
        if w.has(B::Zombie) {
            for view in w.views {
                if view != NONE && view != w.fold {
                    self.view(w, view, true);
                }
            }
        }
        self.landings(w);
        if w.has(B::Freeze) && !w.views.contains(&w.fold) {
            let mut next = w.spend(B::Freeze);
            next.views = [w.fold, w.views[0]];
            self.push(Move::Freeze, next, None);
        }
        for task in 0..TASKS {
            if w.owed[task][0] != NONE {
                let mut next = *w;
                next.row[task] = w.owed[task][0];
                next.owed[task] = [w.owed[task][1], NONE];
                self.push(Move::RowWritten(task), next, None);
            }
        }
        if w.key_owed {
            let mut next = *w;
            (next.key_owed, next.key_row) = (false, true);
            self.push(Move::KeyWritten, next, None);
        }
        if w.has(B::Rogue) {
            crate::rogue::moves(self, w);
        }
    }

    pub(crate) fn push(&mut self, by: Move, mut world: World, broken: Option<String>) {
        if broken.is_none() {
            world.settle(self.lab, self.config.honest);
        }
        self.out.push(Next { by, world, broken, refused: SmallVec::new() });
    }

    // Everything a writer with this state may write.
    fn view(&mut self, w: &World, view: u32, frozen: bool) {
        let fold = *self.lab.fold(view);
        if w.has(B::Claim) {
            let used = self.config.budget[B::Claim as usize] - w.left[B::Claim as usize];
            self.write(w, view, frozen, Cmd::Claim(used + 2), Some(B::Claim));
        }
        let owner = fold.epoch.0 > 0;
        if owner {
            self.creates(w, view, frozen);
            if w.has(B::Renew) {
                self.write(w, view, frozen, Cmd::Renew, Some(B::Renew));
            }
        }
        for task in 0..TASKS {
            match fold.core(task) {
                Some(core) => {
                    if owner {
                        self.owner(w, view, frozen, task, *core);
                        self.reports(w, view, frozen, task);
                    }
                    self.verdicts(w, view, frozen, task, core);
                }
                None if owner => self.closed(w, view, frozen, task),
                None => {}
            }
        }
    }

    fn creates(&mut self, w: &World, view: u32, frozen: bool) {
        if !w.has(B::Create) {
            return;
        }
        let fold = *self.lab.fold(view);
        let own = |brief: &crate::brief::Brief| brief.kind == Kind::TaskCreated && brief.epoch == Some(fold.epoch);
        let waits = self.briefs(w).filter(|b| !frozen && own(b));
        let flying: SmallVec<[_; 4]> = waits.filter_map(|b| b.task).collect();
        let highest = flying.iter().copied().fold(fold.highest, std::cmp::max);
        if self.config.keyed {
            let owed = w.key_owed && self.config.duties.owed_keys_first && !frozen;
            if !flying.is_empty() || fold.core(0).or(fold.core(1)).is_some() || w.key_row || owed {
                return;
            }
        }
        if highest >= task_id(TASKS - 1) {
            return;
        }
        for assign in [false, true] {
            let (highest, keyed, max) = (highest.raw(), self.config.keyed, self.config.max_retries);
            self.write(w, view, frozen, Cmd::Create { highest, keyed, assign, max }, Some(B::Create));
        }
    }

    // The owner's own moves on an open task.
    fn owner(&mut self, w: &World, view: u32, frozen: bool, task: usize, core: task_core::CoreState) {
        if self.owner_busy(w, view, frozen, task) {
            return;
        }
        let (state, waiting) = (core.state, matches!(core.state, TaskState::Created | TaskState::Retrying));
        if core.cancel_requested {
            self.write(w, view, frozen, Cmd::End(task), None);
        } else {
            if waiting {
                self.write(w, view, frozen, Cmd::Assign(task), None);
            }
            if state == TaskState::ReplayPlanned {
                self.write(w, view, frozen, Cmd::Retry { task, assign: false }, None);
                self.write(w, view, frozen, Cmd::Retry { task, assign: true }, None);
            }
            self.write(w, view, frozen, Cmd::Cancel(task), Some(B::Cancel));
        }
        if state.is_live() {
            self.write(w, view, frozen, Cmd::Lost(task), Some(B::Lost));
        }
        if state == TaskState::Assigned {
            self.write(w, view, frozen, Cmd::Release(task), Some(B::Release));
        }
        if state.is_live() || waiting {
            self.write(w, view, frozen, Cmd::TimeOut(task), Some(B::Timeout));
        }
        self.write(w, view, frozen, Cmd::Overdue(task), Some(B::Overdue));
    }

    // What workers tell this owner.
    fn reports(&mut self, w: &World, view: u32, frozen: bool, task: usize) {
        let busy = self.owner_busy(w, view, frozen, task);
        let runs = self.lab.audit(w.audit).tasks[task].runs;
        for (e, run) in (1u32..).zip(runs).take_while(|(_, run)| *run > 0) {
            let run = u32::from(run);
            for (what, b) in REPORTS {
                if b.is_some_and(|b| !w.has(b) && !w.has(B::Fence)) {
                    continue;
                }
                match fate(self.lab, view, task, &report_of(task, e, run, what)) {
                    Some(Fate::Counts) if !busy && b.is_none_or(|b| w.has(b)) => {
                        let cmd = Cmd::Report { task, e, run, what };
                        self.write(w, view, frozen, cmd, b);
                    }
                    Some(Fate::Fenced) => self.fence(w, view, frozen, (task, e, run), what),
                    Some(Fate::Counts | Fate::Duplicate | Fate::TooEarly) | None => {}
                }
            }
        }
    }

    fn verdicts(&mut self, w: &World, view: u32, frozen: bool, task: usize, core: &task_core::CoreState) {
        for pen in [Pen::Engine, Pen::Replayer] {
            if !pending_work(core, pen) {
                continue;
            }
            let id = Some(task_id(task));
            let flying = !frozen && self.briefs(w).any(|b| b.writer == pen.service() && b.task == id);
            let pays = flying.then_some(B::Takeover);
            if pen == Pen::Replayer {
                self.write(w, view, frozen, Cmd::Plan(task), pays);
                continue;
            }
            self.write(w, view, frozen, Cmd::Verdict { task, annotated: false }, pays);
            if pays.is_none() {
                self.write(w, view, frozen, Cmd::Verdict { task, annotated: true }, Some(B::Annotate));
            }
        }
    }

    // Commands about a task this owner has forgotten or never known.
    fn closed(&mut self, w: &World, view: u32, frozen: bool, task: usize) {
        let owed = w.newest_owed(task);
        let first = self.config.duties.owed_rows_first && !frozen && owed != NONE;
        let closed = if first { owed } else { w.row[task] };
        if closed == NONE {
            return;
        }
        if !self.owner_busy(w, view, frozen, task) {
            self.write(w, view, frozen, Cmd::Replay { closed }, Some(B::Replay));
            self.write(w, view, frozen, Cmd::Review { closed }, Some(B::Review));
        }
        if w.has(B::Fence) && !frozen {
            let runs = self.lab.audit(w.audit).tasks[task].runs;
            for (e, run) in (1u32..).zip(runs).take_while(|(_, run)| *run > 0) {
                for what in [What::Success, What::Failure] {
                    let report = report_of(task, e, u32::from(run), what);
                    if task_core::decide::classify_closed(self.lab.closed(closed), &report) == Fate::Fenced {
                        self.fence(w, view, frozen, (task, e, u32::from(run)), what);
                    }
                }
            }
        }
    }
}

/// Reports a worker may send, and what each costs.
const REPORTS: [(What, Option<B>); 5] = [
    (What::Start, None),
    (What::Step, Some(B::Step)),
    (What::Success, Some(B::Complete)),
    (What::Failure, Some(B::Fail)),
    (What::Fatal, Some(B::Fatal)),
];
