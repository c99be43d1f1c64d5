//! `dualtrack-coordinator`: see the library.

use std::process::ExitCode;

/// The system's allocator took a fifth of the server's CPU time (docs/benchmarks.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    service_host::run::<dualtrack_coordinator::CoordinatorProgram>()
}
