//! A record reaches the log: what it does to the state, to the auditor, to rows and answers.
#![expect(clippy::wildcard_enum_match_arm, reason = "most kinds are answered nothing")]

use task_events::{Body, Kind, ReportedStatus};

use crate::audit::report_bit;
use crate::lab::NONE;
use crate::moves::{Move, Moves};
use crate::subject::index_of;
use crate::world::{B, COPY, RECORD, World};

impl Moves<'_> {
    /// Every record in flight may land now, once or with a copy to come, or be lost.
    pub(crate) fn landings(&mut self, w: &World) {
        for at in 0..w.flight().len() {
            let entry = w.flight()[at];
            if at > 0 && w.flight()[at - 1] == entry {
                continue;
            }
            let record = entry & RECORD;
            let mut next = *w;
            next.take(at);
            if w.has(B::Drop) {
                self.push(Move::Lose { record }, next.spend(B::Drop), None);
            }
            let broken = self.land(&mut next, record, entry & COPY == 0);
            self.push(Move::Land { record, stays: false }, next, broken);
            if w.has(B::Dup) {
                let mut next = w.spend(B::Dup);
                next.take(at);
                next.launch(entry | COPY);
                let broken = self.land(&mut next, record, entry & COPY == 0);
                self.push(Move::Land { record, stays: true }, next, broken);
            }
        }
    }

    /// One record lands. `awaited`: its writer has not seen a copy of it before.
    pub(crate) fn land(&mut self, next: &mut World, record: u32, awaited: bool) -> Option<String> {
        let brief = self.lab.brief(record);
        let landed = self.lab.land_audited(next.fold, next.audit, record);
        let accepted = landed.landing.rejected.is_none();
        let read_back = accepted || brief.epoch == Some(self.lab.fold(next.fold).epoch);
        (next.fold, next.audit) = (landed.landing.fold, landed.audit);
        let task = brief.task.and_then(index_of);
        if let (Some(task), true) = (task, landed.landing.closed != NONE) {
            next.owe(task, landed.landing.closed);
        }
        if brief.kind == Kind::OwnershipClaimed {
            let same = brief.epoch == Some(self.lab.fold(next.fold).epoch);
            next.rival = !accepted && (next.rival || same && awaited && !self.config.duties.own_claim_only);
        }
        if accepted {
            match brief.kind {
                Kind::TaskCreated if self.config.keyed => next.key_owed = true,
                Kind::OwnershipClaimed if !self.config.duties.owed_rows_derived_again => {
                    next.owed.iter_mut().for_each(|owed| *owed = [NONE; 2]);
                    next.key_owed = false;
                }
                _ => {}
            }
        }
        if let (Some(task), Some((bit, rejected_report))) = (task, self.terminal(record))
            && awaited
        {
            let fenced_by_rejection = !self.config.duties.rejection_is_no_answer && !accepted && !rejected_report;
            if accepted && rejected_report || fenced_by_rejection && read_back {
                next.told_no[task] |= bit & !self.lab.audit(next.audit).tasks[task].reports;
            }
        }
        landed.broken.or_else(|| self.answers(next))
    }

    // The bit of a terminal report, and whether the record is its RejectedReport.
    fn terminal(&self, record: u32) -> Option<(u16, bool)> {
        let event = &self.lab.record(record).event;
        let e = event.exec_epoch.0;
        match &event.body {
            Body::TaskCompleted(_) => Some((report_bit(e, true), false)),
            Body::TaskFailed(_) => Some((report_bit(e, false), false)),
            Body::RejectedReport(b) => Some((report_bit(e, b.reported == ReportedStatus::Success), true)),
            _ => None,
        }
    }

    // Answers against the log: accepted means accepted, fenced means never.
    fn answers(&self, next: &World) -> Option<String> {
        let audit = self.lab.audit(next.audit);
        let replays: u8 = audit.tasks.iter().map(|t| t.replays).sum();
        if replays > next.asked {
            return Some("more runs than requests".into());
        }
        for (task, heard) in audit.tasks.iter().enumerate() {
            if heard.reports & next.told_no[task] != 0 {
                return Some("a report answered fenced is accepted".into());
            }
            let flying = |bit: u16| {
                let flight = next.flight().iter().map(|e| e & RECORD);
                flight.filter_map(|r| self.terminal(r)).any(|(b, rejected)| b == bit && !rejected)
            };
            let open = next.told_yes[task] & !heard.reports;
            if let Some(n) = (0..16).find(|n| open & (1 << n) != 0 && !flying(1 << n)) {
                return Some(format!("report of attempt {} answered accepted, but it never was", n / 2 + 1));
            }
        }
        None
    }
}
