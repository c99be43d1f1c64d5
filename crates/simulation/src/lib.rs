//! The deterministic simulation: production fold, owner, engine, replayer and worker state machine
//! in one single-threaded world that is drawn from one seed, against every fault of
//! `docs/faults.md` that can be told apart in memory.
//!
//! A run has two phases: faults while clients and workers work, then everything is healed and all
//! that is open must end. An auditor sees every record, row, answer and act of a handler.

mod act;
mod audit;
mod chaos;
mod client;
mod clock;
mod edge;
mod exec;
mod faults;
mod history;
mod hub;
mod plan;
mod ports;
mod rng;
mod verdicts;
mod worker;
mod world;

pub use audit::{Finding, Judged};
pub use client::{Op, Outcome};
pub use faults::{Fault, Faults, Tally};
pub use plan::Plan;
pub use rng::Rng;
pub use world::{Report, World, run};
