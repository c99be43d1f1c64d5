//! `fuzz-log --seconds 60`: mutated records against a reader of the log, deterministic by seed.

use std::alloc::System;

use clap::Parser;
use fuzz_log::decoder::Decoder;
use fuzz_log::{Limits, run};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(Parser)]
#[command(about = "mutated records against a reader of the log")]
struct Args {
    /// how long to run; 0 runs one round
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// what all rounds follow from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// round to begin with; with the seed of a finding it comes first
    #[arg(long, default_value_t = 0)]
    round: u64,
}

#[expect(clippy::print_stdout, reason = "a tool for the terminal")]
fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let allocated = || {
        let stats = ALLOCATOR.stats();
        stats.bytes_allocated
    };
    match run(&mut Decoder::default(), args.seed, args.round, Limits::seconds(args.seconds), Some(&allocated)) {
        Ok(report) => {
            print!("seed {}: {report}", args.seed);
            Ok(())
        }
        Err(finding) => {
            for record in &finding.records {
                println!("{record:?}");
            }
            anyhow::bail!(
                "{}\nagain with: fuzz-log --seconds 0 --seed {} --round {}",
                finding.what,
                args.seed,
                finding.round
            )
        }
    }
}
