//! The standard rules break no law in any configuration, and every search sees all there is.

use model_search::{Lab, configs, search};

#[test]
fn no_law_is_broken() {
    let mut total = 0;
    for config in configs::standard() {
        let start = std::time::Instant::now();
        let mut lab = Lab::new(Box::leak(Box::new(task_core::Rules::STANDARD)));
        let outcome = search(&mut lab, &config, 3_000_000);
        eprintln!(
            "{:20} {:>9} states {:>9} steps {:?} {:?}",
            config.name,
            outcome.states,
            outcome.steps,
            lab.sizes(),
            start.elapsed()
        );
        assert_eq!(outcome.found, None, "{}", config.name);
        assert!(outcome.complete, "{} was cut", config.name);
        total += outcome.states;
    }
    eprintln!("{total} states");
}
