//! Two handlers of one task never act at the same time: several worker processes with clocks of
//! their own, an owner that follows its waiting rule, and a network that loses, doubles, delays and
//! reorders. Owners are taken over, zombies go on answering for 2 s, workers freeze and crash.

mod network;
mod owner;
mod world;

use proptest::prelude::*;
use world::{Link, Links, Setting, World};

fn links() -> impl Strategy<Value = Links> {
    let link = || {
        (prop_oneof![Just(0u64), 0..60u64], 0..30u64, prop_oneof![Just(0u64), 0..100u64]).prop_map(
            |(lost_percent, doubled_percent, slow_percent)| Link { lost_percent, doubled_percent, slow_percent },
        )
    };
    (link(), link()).prop_map(|(requests, answers)| Links { requests, answers })
}

fn settings() -> impl Strategy<Value = Setting> {
    let longest = prop_oneof![Just(20u64), Just(500), Just(4_000), Just(8_000)];
    let clocks = (950..=1_050u64, 950..=1_050u64);
    (any::<u64>(), (links(), links()), longest, 0..30u64, any::<bool>(), any::<bool>(), clocks).prop_map(
        |(seed, (a, b), longest_delay_ms, faults, optimistic, freezes, (rate_a, rate_b))| Setting {
            seed,
            links: [a, b],
            longest_delay_ms,
            faults_per_minute: faults,
            optimistic,
            freezes,
            rates: [rate_a, rate_b],
            owner_waits: true,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_handlers_never_act_at_once(setting in settings()) {
        let mut world = World::new(setting);
        world.run(180_000);
        prop_assert_eq!(world.overlaps(), &[] as &[String]);
    }
}

fn both(lost_percent: u64) -> [Links; 2] {
    let link = Link { lost_percent, doubled_percent: 5, slow_percent: 20 };
    [Links { requests: link, answers: link }; 2]
}

#[test]
fn a_quiet_network_finishes_tasks_and_a_hostile_one_still_does() {
    for (lost, longest_delay_ms, least) in [(0, 20, 15), (25, 2_000, 1)] {
        for optimistic in [false, true] {
            let setting = Setting { links: both(lost), longest_delay_ms, optimistic, ..Setting::quiet(7) };
            let mut world = World::new(setting);
            world.run(600_000);
            assert!(world.successes() >= least, "{} with {lost} % lost", world.successes());
            assert_eq!(world.overlaps(), &[] as &[String]);
        }
    }
}

#[test]
fn without_the_owners_wait_they_would_meet() {
    let meets = (0..40).any(|seed| {
        let setting = Setting { owner_waits: false, links: both(30), ..Setting::quiet(seed) };
        let mut world = World::new(setting);
        world.run(180_000);
        !world.overlaps().is_empty()
    });
    assert!(meets, "the check does not see what it is there for");
}
