//! The searches with their large budgets: minutes, and memory for tens of millions of worlds.
//! `make search`, or one of them by its name: `cargo run --release -p model-search --example bigger "two tasks"`.
#![expect(clippy::print_stdout, reason = "a command line tool")]

use std::process::ExitCode;

use model_search::{Lab, configs, search};

fn main() -> ExitCode {
    let only = std::env::args().nth(1);
    let mut left = configs::bigger();
    left.retain(|config| only.as_ref().is_none_or(|name| config.name == name));
    let mut good = !left.is_empty();
    for config in left {
        let outcome = search(&mut Lab::new(&model_search::STANDARD), &config, 60_000_000);
        println!("{:24} {:>9} worlds {:>10} steps", config.name, outcome.states, outcome.steps);
        if let Some(found) = &outcome.found {
            println!("{found:#?}");
        } else if !outcome.complete {
            println!("cut before it had seen everything");
        }
        good &= outcome.found.is_none() && outcome.complete;
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
