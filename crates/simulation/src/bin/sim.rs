//! `sim --seeds 1..500`: runs seeds and says what they came to; exit code 1 when one broke a
//! promise. The same seed gives the same world, so a failure is told by its seed.
#![expect(clippy::print_stdout, reason = "a command line tool")]

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget};
use service_kit::{Clock as _, SystemClock};
use simulation::{Mutant, caught, mutation_table, plan, run, run_range};

/// A world is millions of small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "Runs the production code in simulated worlds and reports broken promises")]
struct Args {
    /// One seed, or a range with both ends.
    #[arg(long, default_value = "1..500")]
    seeds: String,
    /// `without=NAME`: take one rule out, e.g. owner.proof or fold.fence.
    #[arg(long)]
    rules: Option<String>,
    /// Write every record of a failing seed to seed-N.trace in this folder.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Write logs and verdicts for the independent checker into this folder.
    #[arg(long)]
    dump: Option<PathBuf>,
    /// Threads; a world stays on one.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Stop at the first failure.
    #[arg(long)]
    stop: bool,
    /// End the first phase after so many records: short logs, for the checker's folder.
    #[arg(long)]
    records: Option<u64>,
    /// Print the mutation table: seeds tried for each mutant.
    #[arg(long)]
    mutations: Option<u64>,
}

fn range(text: &str) -> anyhow::Result<(u64, u64)> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |t: &str| t.trim_start_matches('=').parse().with_context(|| format!("{t:?} is no seed"));
    Ok((number(first)?, number(last)?))
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    if let Some(limit) = args.mutations {
        print!("{}", mutation_table(limit, caught));
        return Ok(ExitCode::SUCCESS);
    }
    let (first, last) = range(&args.seeds)?;
    let mutant = match &args.rules {
        None => None,
        Some(text) => {
            let name = text.strip_prefix("without=").context("--rules takes without=NAME")?;
            Some(Mutant::named(name).with_context(|| format!("{name:?} is no rule: {:?}", simulation::MUTANTS))?)
        }
    };
    if let Some(records) = args.records {
        let folder = args.dump.context("--records is for --dump")?;
        for seed in first..=last {
            let mut short = plan(seed, mutant);
            (short.records, short.takeovers) = (records, 1);
            let (report, world) = run(short);
            world.dump(&folder, &format!("simulated-{seed}"))?;
            println!("seed {seed}: {} records, finding {:?}", report.records, report.finding);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let bar = ProgressBar::new(last.saturating_sub(first) + 1);
    if !std::io::stdout().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let began = SystemClock.boot_ms();
    let (totals, failures) = run_range((first, last), args.jobs, mutant, args.stop, |report, world| {
        bar.inc(1);
        let name = format!("seed-{}", report.seed);
        if let Some(folder) = &args.dump {
            world.dump(folder, &name).expect("the dump can be written");
        }
        if let (Some(folder), true) = (&args.trace, report.finding.is_some()) {
            std::fs::create_dir_all(folder).expect("the folder can be made");
            std::fs::write(folder.join(format!("{name}.trace")), world.trace().join("\n"))
                .expect("the trace can be written");
        }
    });
    bar.finish_and_clear();
    let took = (SystemClock.boot_ms() - began).max(1);
    print!("{}", totals.to_text());
    println!("{} records/s, {} steps/s, {took} ms", totals.records * 1_000 / took, totals.polls * 1_000 / took);
    for failure in &failures {
        let Some(finding) = &failure.report.finding else { continue };
        println!(
            "\nseed {}: invariant {} at {} ms: {}\n{}",
            failure.report.seed,
            finding.invariant,
            finding.at_us / 1_000,
            finding.what,
            failure.history
        );
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
