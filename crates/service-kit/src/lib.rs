//! Plumbing that every service shares and that names no task concept: the clock, random numbers,
//! shutdown, counters and alarms, fail points, and the loop that keeps a projection of the log and
//! acts on it.
//!
//! Nothing in here spawns or sleeps by itself except [`SystemClock`]: a simulator brings its own
//! clock and entropy and drives the loops on one thread.

mod clock;
mod entropy;
mod fail_points;
mod metrics;
pub mod projection;
mod shutdown;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use clock::{Clock, SystemClock, within};
pub use entropy::{Entropy, SystemEntropy};
pub use metrics::{Alarm, Counter, Metrics};
pub use shutdown::{Requested, Shutdown};

/// The crate behind the fail points, for tests that turn them on.
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub use fail as __fail;
