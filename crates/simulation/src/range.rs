//! Running ranges of seeds, over several threads if wanted: each world stays on one of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::mutants::Mutant;
use crate::plan::Plan;
use crate::report::Report;
use crate::rng::Rng;
use crate::totals::Totals;
use crate::world::{World, run};

/// A seed that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What the run came to.
    pub report: Report,
    /// History of the task concerned.
    pub history: String,
}

/// The plan of a seed, without the mutant's rule if there is one.
pub fn plan(seed: u64, mutant: Option<Mutant>) -> Plan {
    let mut plan = Plan::of(seed, &mut Rng::new(seed));
    if let Some(mutant) = mutant {
        mutant.apply(&mut plan);
    }
    plan
}

/// Runs seeds `first..=last` on `jobs` threads. `seen` hears of every run; with `stop` the first
/// failure ends the range.
pub fn run_range(
    (first, last): (u64, u64),
    jobs: usize,
    mutant: Option<Mutant>,
    stop: bool,
    seen: impl Fn(&Report, &World) + Sync,
) -> (Totals, Vec<Failure>) {
    let (next, over) = (AtomicU64::new(first), AtomicBool::new(false));
    let sum = Mutex::new((Totals::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                let mut totals = Totals::default();
                let mut failures = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > last {
                        break;
                    }
                    let (report, world) = run(plan(seed, mutant));
                    totals.add(&report);
                    if report.finding.is_some() {
                        over.fetch_or(stop, Ordering::Relaxed);
                        failures.push(Failure { report: report.clone(), history: world.history() });
                    }
                    seen(&report, &world);
                }
                let mut sum = sum.lock();
                sum.0.merge(&totals);
                sum.1.extend(failures);
            });
        }
    });
    let (totals, mut failures) = sum.into_inner();
    failures.sort_by_key(|f| f.report.seed);
    (totals, failures)
}

/// The first seed up to `limit` that catches a mutant, and how.
pub fn caught(mutant: Mutant, limit: u64) -> Option<Failure> {
    (1..=limit).find_map(|seed| {
        let (report, world) = run(plan(seed, Some(mutant)));
        report.finding.is_some().then(|| Failure { report, history: world.history() })
    })
}
