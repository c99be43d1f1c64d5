//! The timing wheel with a million timers, beside an ordered map of the same ones in the same run:
//! arming, arming again, cancelling, and firing while time passes in steps of one slot.
//! `cargo bench -p task-core --bench timers`.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark prints and reads clocks")]

use std::time::Instant;

use task_core::timers::{OrderedTimers, SLOT_MS, TimerWheel, Timers};

const TIMERS: u64 = 1_000_000;
/// Times are spread over so many ms: leases, timeouts and retries of ten minutes.
const SPREAD_MS: u64 = 600_000;

// A fixed sequence without a pattern (splitmix64), so that both see the same times.
fn mixed(n: u64) -> u64 {
    let z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11
}

fn timed(what: &str, name: &str, n: u64, work: impl FnOnce()) {
    let begin = Instant::now();
    work();
    println!("{name:8} {what:12} {:>7.1} ns each", begin.elapsed().as_nanos() as f64 / n as f64);
}

fn run<T: Timers<u64> + Default>(name: &str) {
    let mut timers = T::default();
    timed("arm", name, TIMERS, || (0..TIMERS).for_each(|n| timers.arm(n, mixed(n) % SPREAD_MS)));
    timed("arm again", name, TIMERS, || (0..TIMERS).for_each(|n| timers.arm(n, mixed(n + TIMERS) % SPREAD_MS)));
    timed("cancel half", name, TIMERS / 2, || (0..TIMERS / 2).for_each(|n| timers.cancel(&(n * 2))));
    let (mut fired, mut now) = (0, 0);
    timed("fire", name, TIMERS / 2, || {
        while now <= SPREAD_MS + SLOT_MS {
            while timers.pop_due(now).is_some() {
                fired += 1;
            }
            now += SLOT_MS;
        }
    });
    assert_eq!((fired, timers.len()), (TIMERS / 2, 0));
}

fn main() {
    println!("{TIMERS} timers within {} s", SPREAD_MS / 1_000);
    run::<OrderedTimers<u64>>("ordered");
    run::<TimerWheel<u64>>("wheel");
}
