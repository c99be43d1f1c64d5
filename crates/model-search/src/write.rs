//! How a record comes into flight: who has to wait, which owner_seq it gets, and whether it would be
//! accepted if nothing came between.

use task_events::{Kind, PartitionEpoch, Service};

use crate::audit::report_bit;
use crate::brief::Brief;
use crate::honest::{Cmd, What, propose};
use crate::moves::{Move, Moves};
use crate::subject::{index_of, task_id};
use crate::world::{B, COPY, RECORD, RIVAL, STALE, World};

impl Moves<'_> {
    // Records in flight that a writer waits for.
    pub(crate) fn briefs<'s>(&'s self, w: &'s World) -> impl Iterator<Item = Brief> + 's {
        let own = if self.rival { RIVAL } else { 0 };
        let waits = move |e: &&u32| **e & !RECORD == own;
        w.flight().iter().filter(waits).map(|e| self.lab.brief(e & RECORD))
    }

    // Whether this owner waits for the read-back of an earlier record about the task.
    pub(crate) fn owner_busy(&self, w: &World, view: u32, frozen: bool, task: usize) -> bool {
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
        let brief = self.lab.brief(entry & RECORD);
        brief.writer == Service::Coordinator && brief.epoch == Some(epoch)
    }

    // Above every owner_seq of this epoch that was accepted or may still land. Numbers of records
    // that are gone are used again: only comparisons matter, and so the search stays finite.
    fn next_owner_seq(&self, w: &World, view: u32) -> u64 {
        let (mine, now) = (self.lab.fold(view), self.lab.fold(w.fold));
        let accepted = if mine.epoch == now.epoch { now.owner_seq.0.max(mine.owner_seq.0) } else { mine.owner_seq.0 };
        let flying = w.flight().iter().filter(|e| (*e & RIVAL != 0) == self.rival).map(|e| self.lab.brief(e & RECORD));
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
        if frozen || self.rival {
            next = next.spend(B::Zombie);
        }
        let flag = if frozen { STALE } else { 0 } | if self.rival { RIVAL } else { 0 };
        for record in &records {
            next.launch(record | flag);
        }
        if let Cmd::Replay { .. } = cmd {
            next.asked += 1;
        }
        if let (Cmd::Report { task, e, what, .. }, false) = (cmd, self.config.duties.answer_after_read_back)
            && matches!(what, What::Success | What::Failure | What::Fatal)
        {
            next.told_yes[task] |= report_bit(e, what == What::Success);
        }
        let refused = if frozen || self.rival { None } else { self.refused(w, view, &records) };
        let (broken, upto) = refused.map_or((None, 0), |(what, upto)| (Some(what), upto));
        self.push(Move::Write { cmd, frozen, rival: self.rival }, next, broken);
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
}
