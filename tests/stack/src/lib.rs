//! What tests with real processes stand on: the three engines with a fault proxy before each, started once
//! per test process; a cluster of the suite's programs on them ([`stack_control`]); and a drill: load with
//! the clients' side of its history, workers as processes, the log read and judged.
//!
//! A test that gets no engines fails: it is never skipped.

mod asking;
mod drill;
mod engines;
mod history;
mod journal;
pub mod judge;
mod load;
mod worker;
mod world;

pub use drill::{Drill, HEALED_MS, LEASE_MS, SETTINGS, Way};
pub use engines::{Engine, Stack};
pub use history::{History, Outcome, Told};
pub use journal::{Journal, Line};
pub use load::{Load, OP, elsewhere, request, told};
pub use worker::{TYPE, WorkerPlan, lines, work_if_told};
pub use world::{PATIENCE_MS, Scene, metric, owned, sample, until};
