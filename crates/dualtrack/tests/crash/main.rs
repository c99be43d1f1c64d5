//! `dualtrack dev` killed at fifty random moments under load: whatever was answered 201 is there, goes
//! on to its end, and the books add up.
//!
//! The seed is printed; `DUALTRACK_CRASH_SEED=N` runs the same moments again (not the same timing).

#[path = "../cases/book.rs"]
#[allow(dead_code, reason = "shared by several targets, none of which needs all of it")]
mod book;
#[path = "../cases/kit.rs"]
#[allow(dead_code, reason = "shared by several targets, none of which needs all of it")]
mod kit;
mod load;
mod torn;

use std::path::Path;

use service_kit::{Entropy as _, SystemEntropy};

use kit::{DevProcess, flags, pause};
use load::{Load, free_address, say};

const KILLS: usize = 50;
const LEASE_MS: u64 = 3_000;

/// SplitMix64.
pub struct Random(u64);

impl Random {
    #[expect(clippy::disallowed_methods, reason = "how whoever looks into a failure names its seed")]
    fn seeded() -> (u64, Self) {
        let given = std::env::var("DUALTRACK_CRASH_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| SystemEntropy::default().next_u64() >> 32);
        (seed, Self(seed))
    }

    /// Evenly from 0 to below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

#[test]
fn after_fifty_kills_everything_that_was_answered_is_there_and_ends() {
    let (seed, mut random) = Random::seeded();
    say(&format!("seed {seed}"));
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(fifty_kills(&data, &mut random));
}

async fn fifty_kills(data: &Path, random: &mut Random) {
    let listen = free_address();
    let mut load = Load::start(&listen, 8, 60);
    let (mut torn, mut in_recovery) = (0, 0);
    for kill in 0..KILLS {
        let mut dev = DevProcess::spawn(data, &listen, &flags(LEASE_MS), &[]);
        // One of five dies while it reads what the one before left behind. Some that were let go to
        // the end of it must lie in between, so that there is work to lose.
        if kill % 5 == 4 {
            in_recovery += 1;
            pause(random.below(120)).await;
        } else {
            dev.ready();
            pause(30 + random.below(500)).await;
        }
        dev.kill();
        if random.below(3) == 0 {
            torn += usize::from(torn::tear(data, random));
        }
    }
    let mut dev = DevProcess::spawn(data, &listen, &flags(LEASE_MS), &[]);
    dev.ready();
    let repaired = dev.log().matches("torn tail repaired").count();
    say(&format!("{KILLS} kills, {in_recovery} of them at starts, {torn} torn tails, {repaired} repairs"));
    assert!(torn > 0 && repaired >= torn, "{torn} torn tails, {repaired} repaired");
    load.stop_creating().await;
    say(&format!("{} tasks answered, {} without a key", load.answered().len(), load.without_key()));
    assert!(load.answered().len() > 300, "too little was done to mean anything");
    load.assert_all_is_well(data, &listen, dev).await;
}
