//! All rules of Dualtrack, pure: no I/O, no clock, no randomness, no threads.
//!
//! Two functions carry everything: [`PartitionState::apply`] folds a record that was read back and
//! never fails; the functions of [`decide`] propose events and may refuse. Services are shells
//! around them, and whoever audits folds with the very same code.

mod apply;
mod closed;
mod core_state;
mod hash_ring;
mod history;
mod matrix;
mod meaning;
mod noted;
mod partition;
mod pending;
mod reason;
mod row;
mod rules;
mod table;
mod transition;
mod verdict;

pub mod checkpoint;
pub mod decide;
pub mod invariants;
pub mod timers;

pub use closed::Closed;
pub use core_state::{CoreState, ENTITY_TASK, MAX_LOST};
pub use hash_ring::{HashDiffers, HashRing, KEPT as HASHES_KEPT};
pub use history::{History, HistoryEntry, MAX_HISTORY};
pub use matrix::{Cell, Column, Matrix};
pub use noted::{MAX_NOTED, NotedReports};
pub use partition::{Admission, Counters, LastRecord, Owner, PartitionState};
pub use pending::{Pen, pen_of, pending_work};
pub use reason::Reason;
pub use row::{Plan, Review, Row, StepEntry, timeout_error};
pub use rules::{CancelRule, Rules, STANDARD};
pub use table::{Frozen, Slot, TaskTable};
pub use verdict::{Change, ControlChange, Record, Verdict};
pub use worker_protocol::Attempt;
