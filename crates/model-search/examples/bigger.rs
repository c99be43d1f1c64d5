//! The searches with their large budgets: minutes, and memory for tens of millions of worlds.
//! `make search`.
#![expect(clippy::print_stdout, reason = "a command line tool")]

use std::process::ExitCode;

use model_search::{Lab, configs, search};

fn main() -> ExitCode {
    let mut good = true;
    for config in configs::bigger() {
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
