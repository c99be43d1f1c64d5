//! Every rule is needed: each mutant breaks a law, or nothing that can happen tells it from the
//! standard rules, and then it is known why.

use std::path::Path;

use model_search::explain::{idle_kinds, kind_of, why};
use model_search::history::{Trouble, play};
use model_search::mutants::{Mutant, leak};
use model_search::table::{Fate, Line, run};
use model_search::{Audit, Finding, Fold, Lab, STANDARD, World, docs};

fn played(rules: &'static task_core::Rules, finding: &Finding) -> Result<(), Trouble> {
    let mut lab = Lab::new(rules);
    let (fold, audit) = (lab.fold_id(&Fold::default()), lab.audit_id(&Audit::default()));
    play(&mut lab, World::new(fold, audit, Default::default()), &finding.history).map(drop)
}

// What the table prints can be pasted into a test: it plays, and shows what it is said to show.
fn check_history(line: &Line, finding: &Finding) {
    let name = line.mutant.name();
    let (mutant, standard) = (leak(line.mutant.change(STANDARD.clone())), &STANDARD);
    if finding.what.starts_with("livelock") {
        assert_eq!(played(mutant, finding), Ok(()), "{name}: {finding:?}");
        assert!(matches!(played(standard, finding), Err(Trouble::Unexpected { .. })), "{name}: {finding:?}");
    } else if finding.what.starts_with("lost ability") {
        assert!(matches!(played(mutant, finding), Err(Trouble::Unexpected { .. })), "{name}: {finding:?}");
        assert_eq!(played(standard, finding), Ok(()), "{name}: {finding:?}");
    } else if finding.what.starts_with("stuck") {
        assert_eq!(played(mutant, finding), Ok(()), "{name}: {finding:?}");
    } else {
        let broken = played(mutant, finding);
        let same = matches!(&broken, Err(Trouble::Broken { what, .. }) if *what == finding.what);
        assert!(same, "{name}: {finding:?} played as {broken:?}");
        assert!(matches!(played(standard, finding), Err(Trouble::Unexpected { .. })), "{name}: {finding:?}");
    }
}

fn committed(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap_or_default()
}

#[test]
fn mutations_are_caught() {
    let lines = run();
    let idle = idle_kinds(&lines);
    for line in &lines {
        match &line.fate {
            Fate::Caught { finding, .. } if !matches!(line.mutant, Mutant::Duty(..)) => check_history(line, finding),
            Fate::Caught { .. } => {}
            Fate::Harmless => panic!("{}: accepts other records, and no law breaks", line.mutant.name()),
            Fate::Same | Fate::ReasonOnly => {
                let known = kind_of(line).is_some_and(|k| idle.contains(&k)) || why(line).is_some();
                assert!(known, "{} survives unexplained: {:?}", line.mutant.name(), line.seen);
            }
        }
    }
    let same = docs::mutations(&lines) == committed("mutations.md");
    assert!(same, "docs/mutations.md is not what the code gives: cargo run -p model-search --bin mutation-table");
}

#[test]
fn the_committed_matrix_is_the_code() {
    assert_eq!(docs::matrix(), committed("matrix.md"), "cargo run -p model-search --bin mutation-table");
}
