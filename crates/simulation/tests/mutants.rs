//! Every rule of the owner and of the fold is missed when it is gone, or a reason says why not.

use simulation::{EQUIVALENT, MUTANTS, Mutant, caught};

/// Seeds within which a mutant must be caught.
const SEEDS: u64 = 150;

#[test]
fn every_missing_rule_is_noticed() {
    let mut survivors = Vec::new();
    for name in MUTANTS {
        let mutant = Mutant::named(name).expect("a mutant");
        if EQUIVALENT.iter().all(|(n, _)| n != name) && caught(mutant, SEEDS).is_none() {
            survivors.push(*name);
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
