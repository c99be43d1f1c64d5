//! The suite as separate processes on real engines, and something is done to it: engines die, stand still
//! and lose answers; coordinators, task engine, auto-replay and workers die and stand still. Each run: what
//! clients were told is in the log, what was not done is not; everything finishes within a minute after
//! healing; a metric says that the fault was felt; the independent checker agrees.
//!
//! Tests run one after the other, each on a topic and a keyspace of its own, on one set of engines.

mod cassandra;
mod coordinators;
mod down;
mod field;
mod kafka;
mod rebuild;
mod redis;
mod storm;
mod workers;

/// Partitions of every drill.
const PARTITIONS: u16 = 4;

/// Not a test: a worker in a process of its own, if this process was told to be one.
#[test]
fn a_worker_process() {
    stack_tests::work_if_told();
}

/// What a case came to, for whoever reads a run with `--nocapture`.
#[expect(clippy::print_stderr, reason = "figures of a run")]
fn tell(case: &str, drill: &stack_tests::Drill, took_ms: u64) {
    let [ok, fail, info] = drill.history.told().counts();
    eprintln!("{case}: finished {took_ms} ms after healing; creates so far: {ok} ok, {fail} fail, {info} info");
}
