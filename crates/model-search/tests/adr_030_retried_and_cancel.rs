//! ADR 030: does it matter that TaskRetried is refused after a cancel request?

use model_search::mutants::{Mutant, leak};
use model_search::{B, Config, Lab, STANDARD, configs, search};
use task_core::CancelRule;
use task_events::Kind;

const LAW: &str = "TaskRetried after the cancel request";

fn mutant() -> &'static task_core::Rules {
    let change = Mutant::Cancel { kind: Kind::TaskRetried, from: CancelRule::Without, to: CancelRule::Either };
    leak(change.change(STANDARD.clone()))
}

#[test]
fn without_the_check_the_law_after_cancel_breaks() {
    let found = configs::mutation().iter().find_map(|config| search(&mut Lab::new(mutant()), config, usize::MAX).found);
    let found = found.expect("a history in which it matters");
    assert!(found.what.ends_with(LAW), "{found:#?}");
    assert!(found.history.ends_with("cancel t1 => REPLAY_PLANNED | retry t1"), "{found:#?}");
}

// Without a cancel request the mutant is the standard rules.
fn asks(config: &Config) -> bool {
    config.budget[B::Cancel as usize] > 0 || config.budget[B::Rogue as usize] > 0
}

#[test]
fn nothing_else_breaks() {
    for config in configs::mutation().into_iter().filter(asks) {
        let config = Config { forgive: Some(LAW), ..config };
        let outcome = search(&mut Lab::new(mutant()), &config, usize::MAX);
        assert!(outcome.found.is_none() && outcome.complete, "{}: {:#?}", config.name, outcome.found);
    }
}
