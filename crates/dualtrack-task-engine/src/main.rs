//! `dualtrack-task-engine`: see the library.

use std::process::ExitCode;

/// The allocator of all our programs (docs/benchmarks.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    service_host::run::<dualtrack_task_engine::EngineProgram>()
}
