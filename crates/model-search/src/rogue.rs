//! A writer that keeps no rule: any kind in any state, its numbers right or one of them wrong. The
//! fold must hold the invariants against it too, since the log cannot keep it out.
//!
//! Its records land at once: one that lingers has stale numbers when it lands, and those are among
//! the wrong ones. Not tried is what the contract calls the writer's duty because the fold has
//! forgotten what it would need: carrying a closed state that never was, or a second command about
//! a closed task beside one in flight. Audit finds both.

use std::rc::Rc;

use task_events::{Kind, KindClass, RecordKey, Service, TaskState, writer_of};

use crate::audit::Audit;
use crate::fold::Fold;
use crate::moves::{Move, Moves};
use crate::rec::Rec;
use crate::right::{names_attempt, right};
use crate::subject::{PARTITION, TASKS, foreign_id, task_id};
use crate::world::{B, RECORD, World};

/// Adds every rogue record that is accepted, and those whose rejection breaks a law.
pub(crate) fn moves(moves: &mut Moves<'_>, w: &World) {
    let closed_command = |kind| matches!(kind, Kind::TaskReplayRequested | Kind::TaskReviewed);
    let beside = w.flight().iter().any(|e| closed_command(moves.lab.brief(e & RECORD).kind));
    for record in records_at(moves, w).iter().copied() {
        let kind = moves.lab.brief(record).kind;
        if beside && closed_command(kind) {
            continue;
        }
        let mut next = w.spend(B::Rogue);
        let replay = kind == Kind::TaskReplayRequested;
        next.asked += u8::from(replay);
        let broken = moves.land(&mut next, record, false);
        if broken.is_some() || next.fold != w.fold || next.audit != w.audit {
            moves.push(Move::Rogue { record }, next, broken);
        }
    }
}

// Those that are accepted, and those whose rejection breaks a law; the others lead nowhere.
fn records_at(moves: &mut Moves<'_>, w: &World) -> Rc<[u32]> {
    let key = (w.fold, w.audit);
    if let Some(known) = moves.lab.rogues.get(&key) {
        return Rc::clone(known);
    }
    let (fold, audit) = (*moves.lab.fold(w.fold), *moves.lab.audit(w.audit));
    let mut ids: Vec<u32> = Vec::new();
    for rec in all(&fold, &audit, moves.config.twisted) {
        if let Some(id) = moves.lab.try_rec(w.fold, &rec)
            && !ids.contains(&id)
        {
            ids.push(id);
        }
    }
    let ids: Rc<[u32]> = ids.into();
    moves.lab.rogues.insert(key, Rc::clone(&ids));
    ids
}

/// Every record a rogue may write here.
pub fn all(fold: &Fold, audit: &Audit, with_twisted: bool) -> Vec<Rec> {
    let mut out = Vec::new();
    // A second task is a subject only where there is one.
    let subjects = if audit.tasks[1].births > 0 { TASKS } else { 1 };
    for &kind in Kind::ALL {
        let many = !matches!(kind.class(), KindClass::Control | KindClass::Seal);
        for task in 0..if many { subjects } else { 1 } {
            let rec = right(fold, audit, kind, task);
            if with_twisted {
                twisted(&rec, &mut out);
            }
            out.push(rec);
        }
        if kind == Kind::TaskCreated {
            if subjects < TASKS && fold.core(0).is_some() {
                out.push(right(fold, audit, kind, 1));
            }
            let mut rec = right(fold, audit, kind, 0);
            (rec.task, rec.key) = (Some(foreign_id()), RecordKey::Task(foreign_id()));
            out.push(rec);
        }
    }
    out
}

// The same record with one number wrong.
fn twisted(rec: &Rec, out: &mut Vec<Rec>) {
    let mut with = |change: &dyn Fn(&mut Rec)| {
        let mut other = rec.clone();
        change(&mut other);
        if other != *rec {
            out.push(other);
        }
    };
    if writer_of(rec.kind) == Service::Coordinator {
        with(&|r| r.p = r.p.map(|p| p.saturating_sub(1)));
        with(&|r| r.p = r.p.map(|p| p + 1));
        with(&|r| r.p = None);
        with(&|r| r.o = r.o.map(|o| o.saturating_sub(1)));
        with(&|r| r.o = None);
    }
    with(&|r| r.key = RecordKey::Other);
    if rec.task.is_none() {
        with(&|r| r.key = RecordKey::Task(task_id(0)));
        return;
    }
    with(&|r| r.key = RecordKey::Control(PARTITION));
    with(&|r| r.key = RecordKey::Task(task_id(1)));
    with(&|r| r.seq = r.seq.saturating_sub(1));
    with(&|r| r.seq += 1);
    with(&|r| r.run = r.run.saturating_sub(1));
    with(&|r| r.run += 1);
    if names_attempt(rec.kind) {
        with(&|r| r.e = r.e.saturating_sub(1));
        with(&|r| r.e += 1);
        // Which execution id an assignment gives is the writer's choice; that it differs from all
        // others follows from how it is made.
        if rec.kind != Kind::TaskAssigned {
            with(&|r| r.x = r.x.map(|x| x.saturating_sub(1)));
            with(&|r| r.x = Some(0));
            with(&|r| r.x = Some(r.e));
            with(&|r| r.x = None);
            with(&|r| (r.e, r.x) = (r.e.saturating_sub(1), r.x.map(|x| x.saturating_sub(1))));
        }
    }
    if let Some(carried) = rec.carried {
        let mut carry = |change: &dyn Fn(&mut crate::rec::Carried)| {
            let mut other = carried;
            change(&mut other);
            with(&|r| r.carried = Some(other));
        };
        carry(&|c| c.state = TaskState::Failed);
        carry(&|c| c.state = TaskState::Created);
        carry(&|c| c.seq += 1);
        carry(&|c| c.seq = c.seq.saturating_sub(1));
        carry(&|c| c.run += 1);
        carry(&|c| c.run = c.run.saturating_sub(1));
    }
}
