//! Dualtrack in one process: the composition behind `dualtrack dev`, for the command line, tests and
//! benchmarks. The only shipped place that links several services.

pub mod dev;
pub mod signals;
