//! The worker SDK: handlers run here, everywhere else they are only talked about.
//!
//! [`machine`] holds the rules of design.md §9 as a pure state machine: when a handler may be
//! entered, when it must stop, what is reported and for how long. It has no clock, no network and
//! no threads, so that a simulator can run it against a hostile network.

pub mod machine;
