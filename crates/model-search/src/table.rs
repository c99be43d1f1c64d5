//! The mutation table: each mutant is searched until a law breaks; what survives is explained by
//! what the survey saw.

use crate::config::Config;
use crate::configs;
use crate::lab::Lab;
use crate::mutants::{Mutant, leak, without};
use crate::search::{Finding, search};
use crate::survey::{Difference, survey};

/// What became of a mutant.
#[derive(Clone, Debug)]
pub enum Fate {
    /// A law broke.
    Caught {
        /// In which configuration.
        config: &'static str,
        /// Which, and how.
        finding: Finding,
    },
    /// Nothing that can happen in the searches tells it from the standard rules.
    Same,
    /// It gives another reason for some rejections; no state differs.
    ReasonOnly,
    /// It accepts or does something else, and no law breaks.
    Harmless,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Line {
    /// The mutant.
    pub mutant: Mutant,
    /// What became of it.
    pub fate: Fate,
    /// What the survey saw.
    pub seen: Difference,
    /// Of a switch: what honest writers alone break without it, in which configuration.
    pub honest: Option<(&'static str, Finding)>,
}

impl Line {
    /// Whether it survives without doing anything.
    pub fn is_quiet(&self) -> bool {
        matches!(self.fate, Fate::Same | Fate::ReasonOnly)
    }
}

/// What honest writers break when every check is out that they do not need one by one.
pub fn honest_without_all(lines: &[Line]) -> (Vec<&'static str>, Option<(&'static str, Finding)>) {
    let mut rules = crate::STANDARD.clone();
    let mut names = Vec::new();
    for line in lines.iter().filter(|l| l.honest.is_none()) {
        if let Mutant::Switch(name) = line.mutant {
            without(&mut rules, name);
            names.push(name);
        }
    }
    let rules = leak(rules);
    let found = configs::honest()
        .iter()
        .find_map(|c| search(&mut Lab::new(rules), c, usize::MAX).found.map(|found| (c.name, found)));
    (names, found)
}

/// Runs the whole table.
pub fn run() -> Vec<Line> {
    let (rules, duties) = (configs::mutation(), configs::duties());
    let mutants = crate::mutants::all();
    let seen = survey(&mutants, &rules, false);
    let mut lines: Vec<Line> = mutants
        .into_iter()
        .zip(seen)
        .map(|(mutant, seen)| {
            let configs = if matches!(mutant, Mutant::Duty(..)) { &duties } else { &rules };
            let fate = fate(&mutant, &seen, configs);
            let honest = match mutant {
                Mutant::Switch(_) => caught(&mutant, configs::honest().iter()),
                Mutant::Cell { .. } | Mutant::Cancel { .. } | Mutant::Duty(..) => None,
            };
            Line { mutant, fate, seen, honest }
        })
        .collect();
    let quiet: Vec<Mutant> = lines.iter().filter(|l| l.is_quiet()).map(|l| l.mutant.clone()).collect();
    let masks = survey(&quiet, &configs::probes(), true);
    for (line, masks) in lines.iter_mut().filter(|l| l.is_quiet()).zip(masks) {
        line.seen.masks = masks.masks;
        line.seen.masked_by_all = masks.masked_by_all;
    }
    lines
}

fn fate(mutant: &Mutant, seen: &Difference, configs: &[Config]) -> Fate {
    let duty = matches!(mutant, Mutant::Duty(..));
    if !duty && seen.effect.is_none() {
        return if seen.reason { Fate::ReasonOnly } else { Fate::Same };
    }
    // Where it first makes a difference it is most likely caught.
    let (before, from) = configs.split_at(seen.effect.unwrap_or(0));
    match caught(mutant, from.iter().chain(before)) {
        Some((config, finding)) => Fate::Caught { config, finding },
        None => Fate::Harmless,
    }
}

fn caught<'a>(mutant: &Mutant, configs: impl Iterator<Item = &'a Config>) -> Option<(&'static str, Finding)> {
    let rules = leak(mutant.change(crate::STANDARD.clone()));
    configs
        .map(|config| Config { duties: mutant.duties(), ..config.clone() })
        .find_map(|config| search(&mut Lab::new(rules), &config, usize::MAX).found.map(|found| (config.name, found)))
}
