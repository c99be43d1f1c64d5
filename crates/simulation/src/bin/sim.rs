//! `sim --seeds 1..500`: runs seeds and says what they came to.
#![expect(clippy::print_stdout, reason = "a command line tool")]

use clap::Parser;
use simulation::{Fault, Plan, Rng, run};

#[derive(Parser)]
struct Args {
    #[arg(long, default_value = "1..500")]
    seeds: String,
    #[arg(long)]
    calm: bool,
    #[arg(long)]
    trace: bool,
}

fn main() {
    let args = Args::parse();
    let (a, b) = args.seeds.split_once("..").unwrap_or((&args.seeds, ""));
    let a: u64 = a.parse().unwrap();
    let b: u64 = b.parse().unwrap_or(a);
    let (mut n, mut recs, mut polls) = (0, 0, 0);
    let mut tally = simulation::Tally::default();
    let mut rejected = [0u64; 16];
    let mut kinds = std::collections::BTreeMap::new();
    for seed in a..=b {
        let mut plan = Plan::of(seed, &mut Rng::new(seed));
        if args.calm {
            plan.faults = simulation::Faults::none();
        }
        let (report, world) = run(plan);
        n += 1;
        recs += report.records;
        polls += report.polls;
        tally.merge(&report.tally);
        rejected.iter_mut().zip(report.rejected).for_each(|(a, b)| *a += b);
        if let Some(f) = &report.finding {
            let e = kinds.entry((f.invariant, f.what.chars().filter(|c| !c.is_ascii_digit()).take(60).collect::<String>())).or_insert((0, seed, f.what.clone()));
            e.0 += 1;
        }
        if a == b {
            println!("{report:#?}\n{}", world.history());
            if args.trace { for l in world.trace() { println!("{l}"); } }
        }
    }
    println!("seeds {n} records {recs} polls {polls}");
    for f in Fault::ALL {
        println!("{:40} {}", f.as_str(), tally.of(*f));
    }
    println!("{rejected:?}");
    for ((inv, _), (count, seed, what)) in kinds {
        println!("I{inv} x{count} seed {seed}: {what}");
    }
}
