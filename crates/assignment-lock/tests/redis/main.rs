//! The Redis adapter against a real server, which `scripts/redis.sh` starts for this test process.

mod conformance;
mod faults;
mod refusals;
mod secure;
mod settings;
