//! Plumbing that every service shares and that names no task concept: the clock, random numbers,
//! shutdown, counters and alarms, standings, fail points, and the loop that keeps a projection of the log and
//! acts on it.
//!
//! Nothing in here spawns or sleeps by itself except [`SystemClock`]: a simulator brings its own
//! clock and entropy and drives the loops on one thread.

mod clock;
mod entropy;
mod fail_points;
pub mod metrics;
pub mod projection;
mod shutdown;
mod standing;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use clock::{Clock, SystemClock, within};
pub use entropy::{Entropy, SystemEntropy};
pub use metrics::{Alarm, Counter, Described, Gauge, Histogram, Measure, Metrics};
pub use shutdown::{Requested, Shutdown};
pub use standing::{Standing, Standings};

/// The crate behind the fail points, for tests that turn them on.
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub use fail as __fail;
