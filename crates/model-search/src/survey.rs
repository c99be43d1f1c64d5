//! Which mutants can make any difference at all. While the standard rules are searched, every
//! record that meets a state is judged by each mutant it concerns too. A mutant that agrees with
//! the standard rules on all of them has the same reachable worlds, so a search under it would
//! find what theirs found: nothing. That is the proof of its equivalence within these searches.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use task_core::{Column, Reason, Record, Rules};
use task_events::Kind;

use crate::config::Config;
use crate::fold::{Bench, Fold, Judged, Rows};
use crate::lab::{Lab, Watch};
use crate::mutants::{Mutant, SWITCHES, leak, without};
use crate::search::search;
use crate::subject::index_of;

/// What the survey says of one mutant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Some record's effect or acceptance differs, first in this configuration.
    pub effect: Option<usize>,
    /// Some rejection has another reason.
    pub reason: bool,
    /// Switches without which it would make a difference.
    pub masks: BTreeSet<&'static str>,
    /// It would if all switches were off.
    pub masked_by_all: bool,
    /// Reasons for which the standard rules rejected the records it concerns.
    pub reasons: BTreeSet<Reason>,
    /// Records it concerns that the standard rules accepted, and that they rejected.
    pub met: (usize, usize),
    /// Accepted ones about a task that was open.
    pub open: usize,
    /// Values of closed_by_lost in the open tasks they met: (false was there, true was there).
    pub lost: (bool, bool),
}

struct Suspect {
    bench: Bench,
    masked: Vec<Masked>,
    seen: Difference,
}

// The standard rules and the mutant, both without some switches.
struct Masked {
    name: Option<&'static str>,
    plain: usize,
    bench: Bench,
    open: bool,
}

struct Survey {
    config: usize,
    suspects: Vec<Suspect>,
    // Index of the suspects of each cell, and of those every record concerns.
    by_cell: Vec<Vec<usize>>,
    always: Vec<usize>,
    plain: Vec<Bench>,
}

/// Surveys these mutants over these configurations; with `masks`, also together with each switch
/// turned off, to find what stands before a cell. Duties are no rules and are not surveyed.
pub fn survey(mutants: &[Mutant], configs: &[Config], masks: bool) -> Vec<Difference> {
    let shared = Rc::new(RefCell::new(Survey::new(mutants, masks)));
    for (n, config) in configs.iter().enumerate() {
        shared.borrow_mut().config = n;
        let mut lab = Lab::new(&crate::STANDARD);
        lab.watch(Box::new(Eye(Rc::clone(&shared))));
        let outcome = search(&mut lab, config, usize::MAX);
        assert!(outcome.found.is_none(), "the standard rules fail in {}: {:#?}", config.name, outcome.found);
    }
    let survey = shared.borrow();
    survey.suspects.iter().map(|s| s.seen.clone()).collect()
}

struct Eye(Rc<RefCell<Survey>>);

impl Watch for Eye {
    fn landing(&mut self, fold: &Fold, rows: &mut Rows, record: &Record, judged: &Judged) {
        self.0.borrow_mut().landing(fold, rows, record, judged);
    }
}

fn cell_index(kind: Kind, column: Column) -> usize {
    kind as usize * Column::ALL.len() + column as usize
}

impl Survey {
    fn new(mutants: &[Mutant], masks: bool) -> Self {
        // Records without a subject are counted to the first task's column, so that the survey can
        // show that they do not depend on any.
        let all_off = SWITCHES.iter().fold(Rules::STANDARD, |mut rules, (name, _)| {
            without(&mut rules, name);
            rules
        });
        let mut bases: Vec<(Option<&'static str>, Rules)> = SWITCHES
            .iter()
            .map(|(name, _)| {
                let mut rules = Rules::STANDARD;
                without(&mut rules, name);
                (Some(*name), rules)
            })
            .collect();
        bases.push((None, all_off));
        let plain = bases.iter().map(|(_, rules)| Bench::new(leak(rules.clone()))).collect();
        let mut by_cell = vec![Vec::new(); Kind::ALL.len() * Column::ALL.len()];
        let (mut suspects, mut always) = (Vec::new(), Vec::new());
        for (n, mutant) in mutants.iter().enumerate() {
            let mut masked = Vec::new();
            match mutant {
                Mutant::Cell { kind, column, .. } => by_cell[cell_index(*kind, *column)].push(n),
                Mutant::Cancel { kind, .. } => {
                    let columns = cell_index(*kind, Column::Unknown)..;
                    by_cell[columns].iter_mut().take(Column::ALL.len()).for_each(|c| c.push(n));
                }
                Mutant::Switch(_) => always.push(n),
                Mutant::Duty(..) => {}
            }
            if masks && !matches!(mutant, Mutant::Switch(_) | Mutant::Duty(..)) {
                masked.extend(bases.iter().enumerate().map(|(plain, (name, rules))| Masked {
                    name: *name,
                    plain,
                    bench: Bench::new(leak(mutant.change(rules.clone()))),
                    open: true,
                }));
            }
            let bench = Bench::new(leak(mutant.change(Rules::STANDARD)));
            suspects.push(Suspect { bench, masked, seen: Difference::default() });
        }
        Self { config: 0, suspects, by_cell, always, plain }
    }

    fn landing(&mut self, fold: &Fold, rows: &mut Rows, record: &Record, judged: &Judged) {
        let core = record.event.task_id.map_or(Some(0), index_of).and_then(|n| fold.core(n));
        let column = core.map_or(Column::Unknown, |core| Column::of(core.state));
        let cell = cell_index(record.event.kind, column);
        for n in self.by_cell[cell].iter().chain(&self.always) {
            let suspect = &mut self.suspects[*n];
            let met = &mut suspect.seen.met;
            if let Some(core) = core {
                let lost = &mut suspect.seen.lost;
                *lost = (lost.0 || !core.closed_by_lost, lost.1 || core.closed_by_lost);
                suspect.seen.open += usize::from(judged.rejected.is_none());
            }
            match judged.rejected {
                None => met.0 += 1,
                Some(reason) => {
                    met.1 += 1;
                    suspect.seen.reasons.insert(reason);
                }
            }
            if suspect.seen.effect.is_some() {
                continue;
            }
            let other = suspect.bench.judge(fold, rows, record);
            if differs(judged, &other) {
                suspect.seen.effect = Some(self.config);
                continue;
            }
            suspect.seen.reason |= judged.rejected != other.rejected;
            for masked in suspect.masked.iter_mut().filter(|m| m.open) {
                let plain = self.plain[masked.plain].judge(fold, rows, record);
                if differs(&plain, &masked.bench.judge(fold, rows, record)) {
                    masked.open = false;
                    match masked.name {
                        Some(name) => drop(suspect.seen.masks.insert(name)),
                        None => suspect.seen.masked_by_all = true,
                    }
                }
            }
        }
    }
}

fn differs(one: &Judged, other: &Judged) -> bool {
    let core = |j: &Judged| j.closed.as_ref().map(|c| c.core);
    one.fold != other.fold || one.rejected.is_some() != other.rejected.is_some() || core(one) != core(other)
}
