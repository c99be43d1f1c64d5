//! The coordinator as a program of its own: owners and REST edge on Kafka, Cassandra and Redis.
//!
//! [`assemble`] puts one coordinator together on any ports (`dualtrack dev` does so several times in one
//! process); [`run`] serves it until it is asked to end; `main` connects the real ports.

mod assembly;
mod program;
mod settings;
mod upkeep;

pub use assembly::{Coordinator, Parts, assemble};
pub use program::{CoordinatorProgram, Deps, run};
pub use settings::{CoordinatorSection, Settings};
