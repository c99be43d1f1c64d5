//! The mutation table: each mutant is searched until a law breaks; what survives is explained by
//! what the survey saw.

use std::collections::BTreeSet;

use crate::config::Config;
use crate::configs;
use crate::lab::Lab;
use crate::mutants::{Mutant, leak};
use crate::search::{Finding, search};
use crate::survey::{Difference, survey};

/// What became of a mutant.
#[derive(Clone, Debug)]
pub enum Fate {
    /// A law broke.
    Caught {
        /// In which configuration.
        config: &'static str,
        /// Worlds seen until then, over all configurations.
        worlds: usize,
        /// Which, and how.
        finding: Finding,
    },
    /// Nothing that can happen in the searches tells it from the standard rules.
    Same,
    /// It gives another reason for some rejections; no state differs.
    ReasonOnly,
    /// It accepts or does something else, and no law breaks.
    Harmless {
        /// Worlds searched to the end.
        worlds: usize,
    },
}

/// One line of the table.
pub struct Line {
    /// The mutant.
    pub mutant: Mutant,
    /// What became of it.
    pub fate: Fate,
    /// What the survey saw.
    pub seen: Difference,
}

/// Runs the whole table.
pub fn run() -> Vec<Line> {
    let (mutants, configs) = (crate::mutants::all(), configs::mutation());
    let duties = configs::duties();
    let t0 = std::time::Instant::now();
    let seen = survey(&mutants, &configs, false);
    eprintln!("survey {:?}", t0.elapsed());
    let fates: Vec<Fate> = mutants
        .iter()
        .zip(&seen)
        .map(|(m, seen)| {
            let t = std::time::Instant::now();
            let f = fate(m, seen, if matches!(m, Mutant::Duty(..)) { &duties } else { &configs });
            eprintln!(
                "{} {:?} {}",
                m.name(),
                t.elapsed(),
                match &f {
                    Fate::Caught { config, finding, .. } =>
                        format!("{config}: {} [{}]", finding.what, finding.records()),
                    f => format!("{f:?}"),
                }
            );
            f
        })
        .collect();
    eprintln!("fates {:?}", t0.elapsed());
    let quiet: Vec<Mutant> = lines(&mutants, &fates).map(|(m, _)| m.clone()).collect();
    let mut masks = survey(&quiet, &configs::probes(), true).into_iter();
    let of = |(mutant, fate, seen): (Mutant, Fate, Difference), masks: &mut dyn Iterator<Item = Difference>| {
        let same = matches!(fate, Fate::Same | Fate::ReasonOnly);
        let seen = if same { masks.next().map_or(seen.clone(), |m| joined(seen, m)) } else { seen };
        Line { mutant, fate, seen }
    };
    mutants.into_iter().zip(fates).zip(seen).map(|((m, f), s)| of((m, f, s), &mut masks)).collect()
}

fn lines<'a>(mutants: &'a [Mutant], fates: &'a [Fate]) -> impl Iterator<Item = (&'a Mutant, &'a Fate)> {
    mutants.iter().zip(fates).filter(|(_, f)| matches!(f, Fate::Same | Fate::ReasonOnly))
}

fn joined(seen: Difference, masks: Difference) -> Difference {
    Difference {
        masks: masks.masks,
        masked_by_all: masks.masked_by_all,
        reasons: seen.reasons.union(&masks.reasons).copied().collect::<BTreeSet<_>>(),
        ..seen
    }
}

fn fate(mutant: &Mutant, seen: &Difference, configs: &[Config]) -> Fate {
    let duty = matches!(mutant, Mutant::Duty(..));
    if !duty && seen.effect.is_none() {
        return if seen.reason { Fate::ReasonOnly } else { Fate::Same };
    }
    let rules = leak(mutant.change(crate::STANDARD.clone()));
    let mut worlds = 0;
    // Where it first makes a difference it is most likely caught.
    let first = seen.effect.unwrap_or(0);
    for config in configs[first..].iter().chain(&configs[..first]) {
        let config = Config { duties: mutant.duties(), ..config.clone() };
        let outcome = search(&mut Lab::new(rules), &config, usize::MAX);
        worlds += outcome.states;
        if let Some(finding) = outcome.found {
            return Fate::Caught { config: config.name, worlds, finding };
        }
    }
    Fate::Harmless { worlds }
}
