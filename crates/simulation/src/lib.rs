//! The deterministic simulation: production fold, owner, engine, replayer and worker state machine
//! in one single-threaded world that is drawn from one seed, against every fault that can be told
//! apart in memory.
//!
//! A run has two phases: faults while clients and workers work, then everything is healed and all
//! that is open must end. An auditor sees every record, row, answer and act of a handler.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the auditor looks at one answer or kind at a time; what it does not look at, another check does"
)]

mod act;
mod audit;
mod chaos;
mod client;
mod clock;
mod dump;
mod edge;
mod exec;
mod faults;
mod history;
mod hub;
mod mutants;
mod plan;
mod ports;
mod range;
mod report;
mod rng;
mod rogue;
mod table;
mod totals;
mod verdicts;
mod worker;
mod world;

pub use audit::{Finding, Judged};
pub use client::{Op, Outcome};
pub use faults::{Fault, Faults, Tally};
pub use mutants::{EQUIVALENT, Mutant, NAMES as MUTANTS};
pub use plan::Plan;
pub use range::{Failure, caught, plan, run_range};
pub use report::Report;
pub use rng::Rng;
pub use table::mutation_table;
pub use totals::Totals;
pub use world::{World, run};
