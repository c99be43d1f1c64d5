//! Every rule of the owner and of the fold is missed when it is gone, or a reason says why not.

use model_search::history::{Trouble, play};
use model_search::{Audit, Fold, Lab, World};
use simulation::{EQUIVALENT, Failure, MUTANTS, Mutant, caught};

/// Seeds within which a mutant must be caught.
const SEEDS: u64 = 400;

// What is printed of a finding can be pasted into a test: each record meets the fate that it had.
fn plays(mutant: Mutant, failure: &Failure) {
    let mut lab = Lab::new(mutant.fold());
    let (fold, audit) = (lab.fold_id(&Fold::default()), lab.audit_id(&Audit::default()));
    match play(&mut lab, World::new(fold, audit, Default::default()), &failure.history) {
        Ok(_) | Err(Trouble::Broken { .. }) => {}
        Err(trouble) => panic!("{}: {} gives {trouble:?}", mutant.name, failure.history),
    }
}

#[test]
fn every_missing_rule_is_noticed() {
    let mut survivors = Vec::new();
    for name in MUTANTS {
        let mutant = Mutant::named(name).expect("a mutant");
        if EQUIVALENT.iter().any(|(n, _)| n == name) {
            continue;
        }
        match caught(mutant, SEEDS) {
            Some(failure) => plays(mutant, &failure),
            None => survivors.push(*name),
        }
    }
    assert_eq!(survivors, Vec::<&str>::new(), "not caught within {SEEDS} seeds, and no reason says why");
}

#[test]
fn the_committed_table_names_every_mutant() {
    let table = include_str!("../../../docs/mutations-simulation.md");
    for name in MUTANTS {
        assert!(table.contains(&format!("| {name} |")), "{name} is not in docs/mutations-simulation.md");
    }
    assert!(!table.contains("**survives**"), "a mutant survives without a reason");
}
