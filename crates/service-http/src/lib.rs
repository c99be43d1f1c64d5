//! What every program of ours that answers HTTP shares, and that knows no endpoint of anybody's:
//! [`serve`] accepts connections, bounds what each of them may cost and drains them at the end;
//! [`probes`] tells whether a program is alive, gets on, and what it counts.

pub mod metrics;
pub mod probes;
mod server;

pub use server::{Limits, Server, serve};
