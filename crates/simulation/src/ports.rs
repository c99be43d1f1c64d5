//! Simulated adapters of the ports.

pub mod groups;
pub mod lock;
pub mod log;
pub mod store;
