//! Records of another log told as a history of this notation: ids, epochs and owner_seqs become
//! those of a partition in which nothing else ever happened, so that what a simulation or an
//! operation found can be played and pasted into a test.

use task_core::{Reason, Record, Rules};
use task_events::{Kind, PartitionId, RecordKey, TaskId};

use crate::audit::Audit;
use crate::fold::Fold;
use crate::lab::Lab;
use crate::notation::print;
use crate::rec::Rec;
use crate::right::right;
use crate::subject::{PARTITION, foreign_id, task_id};

/// The telling of one task's records and the claims around them, in the order of the log.
pub struct Retelling {
    lab: Lab,
    state: (u32, u32),
    partition: PartitionId,
    task: Option<TaskId>,
    /// Epoch before the first claim that is told.
    before: Option<u32>,
}

impl Retelling {
    /// Begins a history of a task (or of the partition alone) under these rules.
    pub fn new(rules: &'static Rules, partition: PartitionId, task: Option<TaskId>) -> Self {
        let mut lab = Lab::new(rules);
        let state = (lab.fold_id(&Fold::default()), lab.audit_id(&Audit::default()));
        Self { lab, state, partition, task, before: None }
    }

    /// The next record, with what became of it there.
    pub fn tell(&mut self, record: &Record, rejected: Option<Reason>) -> String {
        // Only a later task's birth, which is not told, can have put the id out of order.
        let later = match rejected {
            Some(Reason::IdOrder) if self.lab.fold(self.state.0).highest < task_id(0) => {
                let (fold, audit) = (*self.lab.fold(self.state.0), *self.lab.audit(self.state.1));
                let birth = right(&fold, &audit, Kind::TaskCreated, 1);
                self.land(&birth);
                format!("{} | ", print(&birth, &fold, &audit))
            }
            Some(_) | None => String::new(),
        };
        let (fold, audit) = (*self.lab.fold(self.state.0), *self.lab.audit(self.state.1));
        let mut rec = Rec::of(record);
        rec.by = 1;
        rec.task = rec.task.map(|id| self.id(id));
        rec.key = match rec.key {
            RecordKey::Task(id) => RecordKey::Task(self.id(id)),
            RecordKey::Control(p) if p == self.partition => RecordKey::Control(PARTITION),
            RecordKey::Control(_) => RecordKey::Control(foreign_id().partition()),
            RecordKey::Other => RecordKey::Other,
        };
        if let (Kind::OwnershipClaimed, None, Some(epoch)) = (rec.kind, self.before, rec.p) {
            self.before = Some(epoch.saturating_sub(1));
        }
        rec.p = rec.p.map(|epoch| epoch.saturating_sub(self.before.unwrap_or(0)));
        // Records of other tasks used owner_seqs too; what is left of theirs is the order.
        let usual = right(&fold, &audit, rec.kind, 0).o;
        rec.o = rec.o.and(if rejected == Some(Reason::StaleOwnerSeq) { Some(fold.owner_seq.0) } else { usual });
        let said = print(&rec, &fold, &audit);
        self.land(&rec);
        match rejected {
            Some(reason) => format!("{later}{said} => rejected({reason})"),
            None => said,
        }
    }

    fn land(&mut self, rec: &Rec) {
        let record = self.lab.record_id(&rec.record());
        let landed = self.lab.land_audited(self.state.0, self.state.1, record);
        self.state = (landed.landing.fold, landed.audit);
    }

    fn id(&self, id: TaskId) -> TaskId {
        if Some(id) == self.task { task_id(0) } else { foreign_id() }
    }
}
