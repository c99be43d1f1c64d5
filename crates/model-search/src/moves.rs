//! What can happen next in a world: an honest writer writes, a record lands (perhaps twice), is
//! lost, somebody freezes, a row is written, an answer is given.

use smallvec::SmallVec;
use task_core::decide::Fate;
use task_core::{Pen, pending_work};
use task_events::{Kind, PartitionEpoch, Service, TaskState};

use crate::audit::report_bit;
use crate::config::Config;
use crate::honest::{Cmd, What, fate, propose, report_of};
use crate::lab::{Lab, NONE};
use crate::subject::{TASKS, index_of, task_id};
use crate::world::{B, COPY, STALE, World};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// A writer wrote; on a frozen state or not.
    Write { cmd: Cmd, frozen: bool },
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
}

impl Moves<'_> {
    /// Fills `out` with every world that can follow.
    pub fn of(&mut self, w: &World) {
        if self.config.honest {
            self.view(w, w.fold, false);
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
        let own = |brief: &crate::lab::Brief| brief.kind == Kind::TaskCreated && brief.epoch == Some(fold.epoch);
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

    // `fenced`: from memory, with a proof of being current; or after the read-back of a
    // RejectedReport, which is a proof by itself.
    pub(crate) fn fence(&mut self, w: &World, view: u32, frozen: bool, attempt: (usize, u32, u32), what: What) {
        let (task, e, run) = attempt;
        if !w.has(B::Fence) || matches!(what, What::Start | What::Step | What::Fatal) {
            return;
        }
        // An owner hands an attempt out after its own fold has read the assignment: it cannot
        // meet a report of an attempt it has not heard of, unless another owner made it.
        let (mine, now) = (self.lab.fold(view), self.lab.fold(w.fold));
        let heard = mine.core(task).map_or(u32::MAX, |core| core.exec_epoch.0);
        if frozen && mine.epoch == now.epoch && e > heard {
            return;
        }
        let success = what == What::Success;
        let bit = report_bit(e, success);
        // A report that was accepted and is sent again is fenced too once its attempt is over and
        // forgotten. That takes nothing back.
        if self.lab.audit(w.audit).tasks[task].reports & bit != 0 {
            return;
        }
        if (!frozen || !self.config.duties.proof_of_being_current) && w.told_no[task] & bit == 0 {
            let mut next = w.spend(B::Fence);
            next.told_no[task] |= bit;
            self.push(Move::Fenced { task, e, success }, next, None);
        }
        self.write(w, view, frozen, Cmd::Reject { task, e, run, what }, Some(B::Fence));
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

    // Records in flight that a writer waits for.
    fn briefs<'s>(&'s self, w: &'s World) -> impl Iterator<Item = crate::lab::Brief> + 's {
        w.flight().iter().filter(|e| **e & (COPY | STALE) == 0).map(|e| self.lab.brief(*e))
    }

    // Whether this owner waits for the read-back of an earlier record about the task.
    fn owner_busy(&self, w: &World, view: u32, frozen: bool, task: usize) -> bool {
        let (mine, now) = (self.lab.fold(view), self.lab.fold(w.fold));
        if frozen {
            // Cut off or merely behind, an owner knows what it has written and not read back: in
            // its own epoch it waits if anything of its own was accepted after the state it has.
            let waits = |e: &u32| e & COPY == 0 && self.is_owners(*e, mine.epoch);
            let behind = mine.owner_seq != now.owner_seq || w.flight().iter().any(waits);
            return self.config.duties.one_in_flight && mine.epoch == now.epoch && behind;
        }
        let (epoch, id) = (Some(mine.epoch), Some(task_id(task)));
        let mut waits = self.briefs(w).filter(|b| {
            b.writer == Service::Coordinator && b.epoch == epoch && b.task == id && b.kind != Kind::TaskOverdue
        });
        // Without the duty it still stops somewhere, or the search would not.
        waits.nth(if self.config.duties.one_in_flight { 0 } else { 1 }).is_some()
    }

    fn is_owners(&self, entry: u32, epoch: PartitionEpoch) -> bool {
        let brief = self.lab.brief(entry & !(COPY | STALE));
        brief.writer == Service::Coordinator && brief.epoch == Some(epoch)
    }

    // Above every owner_seq of this epoch that was accepted or may still land. Numbers of records
    // that are gone are used again: only comparisons matter, and so the search stays finite.
    fn next_owner_seq(&self, w: &World, view: u32) -> u64 {
        let (mine, now) = (self.lab.fold(view), self.lab.fold(w.fold));
        let accepted = if mine.epoch == now.epoch { now.owner_seq.0.max(mine.owner_seq.0) } else { mine.owner_seq.0 };
        let flying = w.flight().iter().map(|e| self.lab.brief(e & !(COPY | STALE)));
        flying.filter(|b| b.epoch == Some(mine.epoch)).map(|b| b.owner_seq).fold(accepted, u64::max) + 1
    }

    /// A command goes into flight, if its decider agrees and the budget allows it.
    pub(crate) fn write(&mut self, w: &World, view: u32, frozen: bool, cmd: Cmd, pays: Option<B>) {
        if pays.is_some_and(|b| !w.has(b)) {
            return;
        }
        let owner_seq = self.next_owner_seq(w, view);
        let records = propose(self.lab, view, cmd, owner_seq);
        if records.is_empty() {
            return;
        }
        let mut next = pays.map_or(*w, |b| w.spend(b));
        if frozen {
            next = next.spend(B::Zombie);
        }
        for record in &records {
            next.launch(record | if frozen { STALE } else { 0 });
        }
        if let Cmd::Replay { .. } = cmd {
            next.asked += 1;
        }
        if let (Cmd::Report { task, e, what, .. }, false) = (cmd, self.config.duties.answer_after_read_back)
            && matches!(what, What::Success | What::Failure | What::Fatal)
        {
            next.told_yes[task] |= report_bit(e, what == What::Success);
        }
        let refused = if frozen { None } else { self.refused(w, view, &records) };
        let (broken, upto) = refused.map_or((None, 0), |(what, upto)| (Some(what), upto));
        self.push(Move::Write { cmd, frozen }, next, broken);
        if let (Some(last), true) = (self.out.last_mut(), upto > 0) {
            last.refused = records[..upto].into();
        }
    }

    // What an honest writer decides on the current state is accepted if nothing comes between:
    // otherwise its pen would write the same record for ever.
    fn refused(&mut self, w: &World, view: u32, records: &[u32]) -> Option<(String, usize)> {
        let mut fold = view;
        for (n, record) in records.iter().enumerate() {
            let landing = self.lab.land(fold, *record);
            if let Some(reason) = landing.rejected {
                let brief = self.lab.brief(*record);
                let state = brief.task.and_then(index_of).and_then(|n| self.lab.fold(w.fold).core(n).map(|c| c.state));
                let state = state.map_or_else(|| "none open".to_owned(), |s| s.to_string());
                let what = format!("livelock: {} of an honest writer is always {reason} ({state})", brief.kind);
                return Some((what, n + 1));
            }
            fold = landing.fold;
        }
        None
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
