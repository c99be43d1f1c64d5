//! Rounds: each a pure function of (seed, number), run until the time is over.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;

use crate::{Outcomes, Record, Target, mutate};

/// How long and how much.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Wall time.
    pub time: Duration,
    /// Bytes that a target may allocate in a round beyond what its records justify.
    pub memory_base: usize,
    /// Bytes that a target may allocate per byte of the round's records. The dearest honest item is
    /// an empty text in a list: 24 bytes in memory for one byte on the wire, doubled while growing.
    pub memory_per_byte: usize,
}

impl Limits {
    /// The decoder's limits for so long.
    pub fn seconds(seconds: u64) -> Self {
        Self { time: Duration::from_secs(seconds), memory_base: 64 * 1024, memory_per_byte: 80 }
    }
}

/// What a run without a finding did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Rounds run.
    pub rounds: u64,
    /// Records read.
    pub records: u64,
    /// Wall time.
    pub time: Duration,
    /// Most bytes allocated in a round per byte of its records.
    pub dearest: f64,
    /// What became of the records.
    pub outcomes: Outcomes,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.records as f64 / self.time.as_secs_f64().max(1e-9);
        writeln!(f, "{} rounds, {} records, {rate:.0} execs/s", self.rounds, self.records)?;
        writeln!(f, "at most {:.1} bytes allocated per byte read", self.dearest)?;
        self.outcomes.iter().try_for_each(|(outcome, n)| writeln!(f, "{n:>12}  {outcome}"))
    }
}

/// A round that went wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Number of the round: with the seed, all that is needed to run it again.
    pub round: u64,
    /// What went wrong.
    pub what: String,
    /// The round's records.
    pub records: Vec<Record>,
}

#[expect(clippy::disallowed_methods, reason = "how long to fuzz is the one thing that is not a function of the seed")]
fn now() -> Instant {
    Instant::now()
}

/// Runs rounds from `first` on until the time is over or something is found. `allocated` gives the
/// bytes allocated by the process so far, if somebody counts them.
pub fn run(
    target: &mut dyn Target,
    seed: u64,
    first: u64,
    limits: Limits,
    allocated: Option<&dyn Fn() -> usize>,
) -> Result<Report, Finding> {
    let corpus = target.corpus();
    let start = now();
    let mut report = Report::default();
    let mut records = Vec::new();
    loop {
        let round = first + report.rounds;
        target.write(&corpus, &mut rng_of(seed, round), &mut records);
        let before = allocated.map(|count| count());
        let result = catch_unwind(AssertUnwindSafe(|| target.read(&records, &mut report.outcomes)));
        let spent = allocated.zip(before).map_or(0, |(count, before)| count() - before);
        let size: usize = records.iter().map(Record::size).sum();
        let found = match result {
            Err(panic) => Some(format!("panic: {}", message(panic.as_ref()))),
            Ok(Err(what)) => Some(what),
            Ok(Ok(())) if spent > limits.memory_base + limits.memory_per_byte * size => {
                Some(format!("{spent} bytes allocated for {size} bytes read"))
            }
            Ok(Ok(())) => None,
        };
        if let Some(what) = found {
            return Err(Finding { round, what, records });
        }
        report.rounds += 1;
        report.records += records.len() as u64;
        report.dearest = report.dearest.max(spent.saturating_sub(limits.memory_base) as f64 / size.max(1) as f64);
        if start.elapsed() >= limits.time {
            report.time = start.elapsed();
            return Ok(report);
        }
    }
}

fn rng_of(seed: u64, round: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(round);
    rng
}

/// A stretch of the corpus in its order, nine of ten mutated; now and then one comes from elsewhere.
pub fn stretch(corpus: &[Record], rng: &mut ChaCha8Rng, records: &mut Vec<Record>) {
    records.clear();
    let Some(last) = corpus.len().checked_sub(1) else { return };
    let from = rng.random_range(0..=last);
    for offset in 0..rng.random_range(1..=16) {
        let mut record = corpus[(from + offset) % corpus.len()].clone();
        if rng.random_bool(0.1) {
            record = corpus.choose(rng).cloned().unwrap_or(record);
        }
        if rng.random_bool(0.9) {
            mutate::record(&mut record, corpus, rng);
        }
        records.push(record);
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}
