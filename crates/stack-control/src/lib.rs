//! The product's programs as processes under somebody's hand: started, frozen, thawed, killed, stopped
//! and started again, with an address each and conditions to wait for. `dualtrack demo`, benchmarks and
//! the tests with real processes stand on it. It links no service: what runs is programs.
//!
//! Whatever happens, no process outlives who started it: dropping one kills it.

mod cluster;
mod process;
mod served;
mod until;

pub use cluster::{Cluster, Engines, Member, Plan, variable};
pub use process::{Process, program_beside};
pub use served::{Launch, Served};
pub use until::{LOOK_MS, until};
