//! What a worker and the coordinator say to each other (design.md §8, §9), without a transport.
//!
//! REST parses into these, the SDK's state machine speaks them, the owner answers them. Times are
//! Unix ms by the speaker's wall clock unless the name ends in `_left_ms` or `lease_ms`: those are
//! durations, and each side measures them on its own boot clock.

mod answer;
mod poll;
mod report;

pub use answer::*;
pub use poll::*;
pub use report::*;
