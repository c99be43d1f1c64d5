//! Dualtrack in one process: the composition behind `dualtrack dev`, for the command line, tests and
//! benchmarks, and [`rebuild`], which writes the rows of a log anew. The only shipped place that links several services.

pub mod dev;
pub mod rebuild;
#[cfg(test)]
mod reference;
