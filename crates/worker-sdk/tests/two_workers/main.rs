//! Two handlers of one task never act at the same time: several worker processes with clocks of
//! their own, an owner that follows its waiting rule, and a network that loses, doubles, delays and
//! reorders. Owners are taken over, zombies go on answering for 2 s, workers freeze and crash.

mod network;
mod owner;
mod world;

use proptest::prelude::*;
use world::{Setting, World};

fn settings() -> impl Strategy<Value = Setting> {
    let chances = (0..40u64, 0..30u64, 0..20u64, prop_oneof![Just(20u64), Just(500), Just(4_000)]);
    (any::<u64>(), chances, any::<bool>(), any::<bool>(), 950..=1_050u64, 950..=1_050u64).prop_map(
        |(seed, (lost, doubled, faults, longest_delay_ms), optimistic, freezes, rate_a, rate_b)| Setting {
            seed,
            lost_percent: lost,
            doubled_percent: doubled,
            faults_per_minute: faults,
            longest_delay_ms,
            optimistic,
            freezes,
            rates: [rate_a, rate_b],
            owner_waits: true,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_handlers_never_act_at_once(setting in settings()) {
        let mut world = World::new(setting);
        world.run(180_000);
        prop_assert_eq!(world.overlaps(), &[] as &[String]);
    }
}

#[test]
fn a_quiet_network_finishes_tasks_and_a_hostile_one_still_does() {
    for (lost, delay, least) in [(0, 20, 20), (25, 2_000, 3)] {
        for optimistic in [false, true] {
            let setting = Setting { lost_percent: lost, longest_delay_ms: delay, optimistic, ..Setting::quiet(7) };
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
        let setting = Setting { owner_waits: false, lost_percent: 30, ..Setting::quiet(seed) };
        let mut world = World::new(setting);
        world.run(180_000);
        !world.overlaps().is_empty()
    });
    assert!(meets, "the check does not see what it is there for");
}
