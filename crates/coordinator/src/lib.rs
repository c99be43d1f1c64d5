//! The coordinator: owner of partitions (who runs what?) and edge of the suite.
//!
//! [`owner`] holds the law of design.md §4 as a state machine without I/O and the shell that
//! connects it to the ports; [`service`] runs one per assigned partition; [`surface`] is the way in,
//! and [`forwarding`] the form in which instances pass requests on to each other; [`derived`] says which
//! rows a record leaves to be written.

pub mod board;
pub mod derived;
pub mod forwarding;
pub mod metrics;
pub mod owner;
pub mod service;
pub mod surface;
