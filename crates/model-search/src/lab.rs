//! The laboratory: one set of rules, and everything seen under it, each thing kept once under a
//! small number. A world is a handful of numbers; a record is judged once per state it meets.

use hashbrown::HashMap;
use smallvec::SmallVec;
use task_core::{Closed, Reason, Record, Rules};

use crate::audit::Audit;
use crate::brief::Brief;
use crate::fold::{Bench, Fold, Judged, Rows, plain, print_of};
use crate::rec::Rec;

type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// "Nothing" for every number of this laboratory.
pub const NONE: u32 = u32::MAX;

/// What a record does to a state.
#[derive(Clone, Copy, Debug)]
pub struct Landing {
    /// State after it.
    pub fold: u32,
    /// Reason, if it was rejected.
    pub rejected: Option<Reason>,
    /// Number of what it closed or reviewed.
    pub closed: u32,
}

/// What a record does to a state and to the auditor's memory.
#[derive(Clone, Debug)]
pub struct Landed {
    /// The landing.
    pub landing: Landing,
    /// The auditor's memory after it.
    pub audit: u32,
    /// The law it breaks.
    pub broken: Option<String>,
}

/// Gets to see each different (state, record) once.
pub trait Watch {
    /// A record met a state for the first time.
    fn landing(&mut self, fold: &Fold, rows: &mut Rows, record: &Record, judged: &Judged);
}

/// See the module.
pub struct Lab {
    bench: Bench,
    /// Rows of open tasks.
    pub rows: Rows,
    folds: Vec<Fold>,
    fold_ids: Map<u128, u32>,
    records: Vec<Record>,
    briefs: Vec<Brief>,
    record_ids: Map<u128, u32>,
    audits: Vec<Audit>,
    audit_ids: Map<u128, u32>,
    closed: Vec<Closed>,
    closed_ids: Map<u128, u32>,
    landings: Map<(u32, u32), Judgement>,
    /// What writers decided, by state, command and next owner_seq.
    pub decisions: Map<(u32, crate::honest::Cmd, u64), SmallVec<[u32; 4]>>,
    /// States whose liveness was looked at.
    pub healthy: hashbrown::HashSet<u32, foldhash::fast::FixedState>,
    /// Records a writer without rules may write, by state and auditor's memory.
    pub rogues: Map<(u32, u32), std::rc::Rc<[u32]>>,
    watch: Option<Box<dyn Watch>>,
}

// A landing, with the full judgement while it is needed by the auditor.
struct Judgement {
    landing: Landing,
    judged: Option<Box<Judged>>,
}

impl Lab {
    /// A laboratory under these rules.
    pub fn new(rules: &'static Rules) -> Self {
        Self {
            bench: Bench::new(rules),
            rows: Rows::default(),
            folds: Vec::new(),
            fold_ids: Map::default(),
            records: Vec::new(),
            briefs: Vec::new(),
            record_ids: Map::default(),
            audits: Vec::new(),
            audit_ids: Map::default(),
            closed: Vec::new(),
            closed_ids: Map::default(),
            landings: Map::default(),
            decisions: Map::default(),
            healthy: hashbrown::HashSet::default(),
            rogues: Map::default(),
            watch: None,
        }
    }

    /// Lets somebody watch every new landing.
    pub fn watch(&mut self, watch: Box<dyn Watch>) {
        self.watch = Some(watch);
    }

    /// Ends the watching.
    pub fn unwatch(&mut self) -> Option<Box<dyn Watch>> {
        self.watch.take()
    }

    /// The number of a state.
    pub fn fold_id(&mut self, fold: &Fold) -> u32 {
        intern(&mut self.folds, &mut self.fold_ids, fold.fingerprint(), || *fold)
    }

    /// A state.
    pub fn fold(&self, id: u32) -> &Fold {
        &self.folds[id as usize]
    }

    /// The number of a record.
    pub fn record_id(&mut self, record: &Record) -> u32 {
        let id = intern(&mut self.records, &mut self.record_ids, print_of(record), || record.clone());
        if id as usize == self.briefs.len() {
            self.briefs.push(Brief::of(record));
        }
        id
    }

    /// The number of a record given by its judged numbers, unless it is rejected here as it should
    /// be: most are, and need not be remembered.
    pub fn try_rec(&mut self, fold: u32, rec: &Rec) -> Option<u32> {
        let record = rec.record();
        let state = self.folds[fold as usize];
        let judged = self.bench.judge(&state, &mut self.rows, &record);
        if judged.rejected.is_some() && judged.broken.is_none() {
            if let Some(watch) = &mut self.watch {
                watch.landing(&state, &mut self.rows, &record, &judged);
            }
            return None;
        }
        Some(self.record_id(&record))
    }

    /// What writers remember of a record they wrote.
    pub fn brief(&self, id: u32) -> Brief {
        self.briefs[id as usize]
    }

    /// A record.
    pub fn record(&self, id: u32) -> &Record {
        &self.records[id as usize]
    }

    /// The number of an auditor's memory.
    pub fn audit_id(&mut self, audit: &Audit) -> u32 {
        intern(&mut self.audits, &mut self.audit_ids, audit.fingerprint(), || *audit)
    }

    /// An auditor's memory.
    pub fn audit(&self, id: u32) -> &Audit {
        &self.audits[id as usize]
    }

    /// A closed task.
    pub fn closed(&self, id: u32) -> &Closed {
        &self.closed[id as usize]
    }

    /// States, records, and pairs of them seen.
    pub fn sizes(&self) -> (usize, usize, usize) {
        (self.folds.len(), self.records.len(), self.landings.len())
    }

    /// What a record does to a state.
    pub fn land(&mut self, fold: u32, record: u32) -> Landing {
        self.judgement(fold, record).landing
    }

    fn judgement(&mut self, fold: u32, record: u32) -> &Judgement {
        // Looked up twice on a miss: the entry would borrow what judging needs.
        if !self.landings.contains_key(&(fold, record)) {
            let fresh = self.judge(fold, record);
            self.landings.insert((fold, record), fresh);
        }
        &self.landings[&(fold, record)]
    }

    fn judge(&mut self, fold: u32, record: u32) -> Judgement {
        let (state, rec) = (self.folds[fold as usize], &self.records[record as usize]);
        let judged = self.bench.judge(&state, &mut self.rows, rec);
        if let Some(watch) = &mut self.watch {
            watch.landing(&state, &mut self.rows, rec, &judged);
        }
        let after = if judged.rejected.is_some() { fold } else { self.fold_id(&judged.fold) };
        let closed = judged.closed.as_ref().map_or(NONE, |c| {
            let c = Closed { row: std::sync::Arc::new(plain(&c.row)), ..c.clone() };
            intern(&mut self.closed, &mut self.closed_ids, print_of(&c), || c)
        });
        let landing = Landing { fold: after, rejected: judged.rejected, closed };
        // Nobody asks for the details of a rejection that changed nothing.
        let judged = (judged.rejected.is_none() || judged.broken.is_some()).then(|| Box::new(judged));
        Judgement { landing, judged }
    }

    /// What a record does to a state and to the auditor who has read the log so far.
    pub fn land_audited(&mut self, fold: u32, audit: u32, record: u32) -> Landed {
        let before = self.folds[fold as usize];
        let mut memory = self.audits[audit as usize];
        self.judgement(fold, record);
        let Judgement { landing, judged } = &self.landings[&(fold, record)];
        let landing = *landing;
        let Some(judged) = judged else { return Landed { landing, audit, broken: None } };
        if landing.rejected.is_some() {
            let broken = judged.broken.as_ref().map(|b| format!("invariant {}: {}", b.invariant, b.what));
            return Landed { landing, audit, broken };
        }
        let rec = &self.records[record as usize];
        let broken = memory.accept(&before, rec, judged, self.bench.partition()).err();
        Landed { landing, audit: self.audit_id(&memory), broken }
    }
}

fn intern<T>(all: &mut Vec<T>, ids: &mut Map<u128, u32>, print: u128, value: impl FnOnce() -> T) -> u32 {
    *ids.entry(print).or_insert_with(|| {
        all.push(value());
        all.len() as u32 - 1
    })
}
