//! The standard rules break no law in any configuration, and every search sees all there is.

use model_search::{Lab, configs, search};

#[test]
fn no_law_is_broken() {
    let (mut states, mut bad) = (0, Vec::new());
    for config in configs::standard() {
        let mut lab = Lab::new(&model_search::STANDARD);
        let outcome = search(&mut lab, &config, 3_000_000);
        let (folds, records, pairs) = lab.sizes();
        eprintln!(
            "{:24} {:>9} worlds {:>10} steps, {folds:>6} states {records:>5} records {pairs:>8} pairs",
            config.name, outcome.states, outcome.steps
        );
        if let Some(found) = &outcome.found {
            bad.push(format!("{}: {found:#?}", config.name));
        } else if !outcome.complete {
            bad.push(format!("{} was cut", config.name));
        }
        states += outcome.states;
    }
    eprintln!("{states} worlds");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
