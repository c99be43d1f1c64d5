//! Histories of the owner: each line is an input, what follows is what it must (not) do.
//!
//! One file per part of design.md; the kit is in `kit`.

mod awaits;
mod basics;
mod checkpoints;
mod clocks;
mod closed;
mod creates;
mod dispatch;
mod drains;
mod forwarding;
mod hostile;
mod identities;
mod keys;
mod kit;
mod leases;
mod lists;
mod mutants;
mod overdue;
mod ownership;
mod rows;
mod silence;
mod traces;
