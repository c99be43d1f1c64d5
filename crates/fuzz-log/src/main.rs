//! `fuzz-log --seconds 60`: mutated records against the readers of the log, deterministic by seed.

use std::alloc::System;

use clap::{Parser, ValueEnum};
use fuzz_log::decoder::Decoder;
use fuzz_log::fold::Fold;
use fuzz_log::{Finding, Limits, Report, run};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// the decoder alone
    Codec,
    /// decoder and fold
    Fold,
    /// one after the other, each for half the time
    Both,
}

#[derive(Parser)]
#[command(about = "mutated records against the readers of the log")]
struct Args {
    /// what reads the records
    #[arg(long, value_enum, default_value_t = Which::Both)]
    target: Which,
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

fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

fn fuzz(target: &str, args: &Args, seconds: u64) -> Result<Report, Finding> {
    let limits = Limits::seconds(seconds);
    if target == "fold" {
        // It copies states to compare them: what it may hold is its own affair, not what it allocates.
        return run(&mut Fold::new(Some(held)), args.seed, args.round, limits, None);
    }
    let allocated = || ALLOCATOR.stats().bytes_allocated;
    run(&mut Decoder::default(), args.seed, args.round, limits, Some(&allocated))
}

#[expect(clippy::print_stdout, reason = "a tool for the terminal")]
fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let (targets, seconds) = match args.target {
        Which::Codec => (&["codec"][..], args.seconds),
        Which::Fold => (&["fold"][..], args.seconds),
        Which::Both => (&["codec", "fold"][..], args.seconds.div_ceil(2)),
    };
    for target in targets {
        match fuzz(target, &args, seconds) {
            Ok(report) => print!("{target}, seed {}: {report}", args.seed),
            Err(finding) => {
                for record in &finding.records {
                    println!("{record:?}");
                }
                anyhow::bail!(
                    "{}\nagain with: fuzz-log --target {target} --seconds 0 --seed {} --round {}",
                    finding.what,
                    args.seed,
                    finding.round
                )
            }
        }
    }
    Ok(())
}
