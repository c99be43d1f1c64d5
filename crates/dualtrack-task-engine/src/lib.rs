//! The task engine as a program of its own, on Kafka and Cassandra (which holds the checkpoints that its
//! folds start from).

mod program;
mod settings;

pub use program::{Deps, EngineProgram, run};
pub use settings::{EngineSection, Settings};
