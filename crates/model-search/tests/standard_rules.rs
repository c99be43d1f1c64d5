//! The standard rules break no law in any configuration, and every search sees all there is.

use model_search::{Config, Lab, configs, search};

fn all_of_it(configs: &[Config], limit: usize) {
    let (mut states, mut steps, mut bad) = (0, 0, Vec::new());
    for config in configs {
        let mut lab = Lab::new(&model_search::STANDARD);
        let outcome = search(&mut lab, config, limit);
        eprintln!(
            "{:24} {:>9} worlds {:>10} steps, {:>6} states {:>5} records {:>8} pairs",
            config.name,
            outcome.states,
            outcome.steps,
            lab.sizes().0,
            lab.sizes().1,
            lab.sizes().2
        );
        if let Some(found) = &outcome.found {
            bad.push(format!("{}: {found:#?}", config.name));
        } else if !outcome.complete {
            bad.push(format!("{} was cut", config.name));
        }
        (states, steps) = (states + outcome.states, steps + outcome.steps);
    }
    eprintln!("{states} worlds, {steps} steps");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn no_law_is_broken() {
    all_of_it(&configs::standard(), 3_000_000);
}
