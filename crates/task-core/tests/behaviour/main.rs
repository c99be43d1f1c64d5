//! Behaviour of fold and deciders, read as histories: each is played step by step, as a full replay
//! of its encoded bytes, with a checkpoint after every record, and by a reader without rows.
#![expect(clippy::wildcard_enum_match_arm, reason = "a test speaks of the kinds it is about")]

mod acceptance;
mod attempts;
mod boundaries;
mod cancels;
mod deciders;
mod kit;
mod matrix;
mod mutants;
mod notation;
mod policy;
mod properties;
mod replays;
mod reports;
mod retries;
mod rows;
mod usual;
mod walk;
