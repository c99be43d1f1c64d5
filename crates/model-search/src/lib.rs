//! Exhaustive search over the production fold (design.md §4, §5), and its mutation table.
//!
//! One task or two in one partition, honest writers that decide with the production deciders on
//! states that may be old, records that land in any order, twice or never, crashes, claims, rows
//! that are behind; and a rogue that keeps no rule. After every record the invariants of
//! `task_core::invariants` and an auditor of its own are asked. Development only: no service
//! depends on it.

mod audit;
mod brief;
mod config;
pub mod configs;
pub mod docs;
pub mod explain;
mod fold;
pub mod history;
mod honest;
mod lab;
mod landing;
mod liveness;
mod moves;
pub mod mutants;
pub mod notation;
mod plain;
mod rec;
mod retell;
mod right;
mod rogue;
mod search;
mod subject;
mod survey;
pub mod table;
mod task_audit;
mod world;
mod write;

pub use audit::{Audit, TaskAudit};
pub use config::{Config, Duties};
pub use fold::{Fold, Judged};
pub use lab::{Lab, Watch};
pub use rec::{Carried, Rec};
pub use retell::Retelling;
pub use search::{Finding, Outcome, search};
pub use world::{B, Budget, World};

/// The rules of production.
pub static STANDARD: task_core::Rules = task_core::Rules::STANDARD;
