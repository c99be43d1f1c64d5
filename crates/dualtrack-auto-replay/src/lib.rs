//! Auto-replay as a program of its own, on Kafka and Cassandra (rows, and the checkpoints that its
//! folds start from).

mod program;
mod settings;

pub use program::{Deps, ReplayProgram, run};
pub use settings::{ReplaySection, Settings};
