//! Dev only: mutated records against whatever reads the log.
//!
//! libFuzzer needs a nightly compiler, so this is a mutator of our own: blind to coverage, but it
//! knows the frame, the checksum, the headers and varints, so that most mutations get past the
//! doors and reach the datum. A round is a pure function of (seed, number), so every finding can be
//! run again. Targets take a round's records in order: the decoder one by one, the fold as a log.

pub mod decoder;
pub mod driver;
pub mod fold;
pub mod mutate;
pub mod record;

pub use driver::{Finding, Limits, Report, run};
use rand_chacha::ChaCha8Rng;
pub use record::Record;

/// What is fuzzed.
pub trait Target {
    /// Valid records to start from.
    fn corpus(&self) -> Vec<Record>;

    /// Makes the records of one round, which follow from `rng` alone.
    fn write(&mut self, corpus: &[Record], rng: &mut ChaCha8Rng, records: &mut Vec<Record>) {
        driver::stretch(corpus, rng, records);
    }

    /// Reads the records of one round. Starts from scratch each time, notes in `outcomes` what
    /// became of each record, and gives `Err` with what is wrong. A panic is a finding as well.
    fn read(&mut self, records: &[Record], outcomes: &mut Outcomes) -> Result<(), String>;
}

/// How often each outcome was seen: an outcome that never comes up was never tested.
pub type Outcomes = std::collections::BTreeMap<&'static str, u64>;
