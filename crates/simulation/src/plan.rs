//! What a seed's world is made of.

use coordinator::owner::{LockUnavailablePolicy, OwnerConfig, OwnerRules};
use task_core::Rules;

use crate::faults::{Fault, Faults};
use crate::rng::Rng;

/// The world of a seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed.
    pub seed: u64,
    /// Partitions.
    pub partitions: u16,
    /// Coordinator instances.
    pub coordinators: usize,
    /// task-engine instances.
    pub engines: usize,
    /// auto-replay instances.
    pub replayers: usize,
    /// Workers.
    pub workers: usize,
    /// Faults of the first phase.
    pub faults: Faults,
    /// Settings of owners.
    pub owner: OwnerConfig,
    /// Rules of owners; standard outside the mutation table.
    pub owner_rules: OwnerRules,
    /// Rules of the fold; standard outside the mutation table.
    pub fold_rules: &'static Rules,
    /// Largest difference of a boot clock's rate from true time, millionths.
    pub skew_ppm: i64,
    /// How often a step lasts as long as a lease, millionths. In every fourth world every other one
    /// does: what is live at a take-over is what leases are for.
    pub long_steps_ppm: u32,
    /// Mean pause between requests of upstream clients, µs.
    pub client_us: u64,
    /// The first phase lasts until this many records.
    pub records: u64,
    /// And this many take-overs.
    pub takeovers: u64,
    /// And this many tasks.
    pub tasks: u64,
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64, rng: &mut Rng) -> Self {
        let faults = Faults::draw(rng);
        let optimistic_start = rng.chance(150_000);
        let owner = OwnerConfig {
            lease_ms: 3_000,
            lease_max_ms: 4_000,
            heartbeat_ms: 900,
            lease_margin_percent: 10,
            lease_margin_ms: 600,
            not_started_ms: 1_500,
            cancel_grace_ms: 1_200,
            proof_ms: 500,
            renew_ms: 200,
            request_ms: 2_000,
            max_in_flight: *rng.pick(&[64, 256, 4_096]).unwrap_or(&4_096),
            owed_bytes: *rng.pick(&[30_000, 200_000, 4_000_000]).unwrap_or(&4_000_000),
            row_lag_ms: 200,
            pen_lag_ms: *rng.pick(&[20, 100]).unwrap_or(&100),
            checkpoint_every: *rng.pick(&[32, 64, 128]).unwrap_or(&64),
            superseded_ms: 400,
            claim_backoff_ms: 200,
            claim_backoff_max_ms: 2_000,
            reject_backoff_ms: 20,
            reject_backoff_max_ms: 1_000,
            clock_tolerance_ms: 5_000,
            max_open_tasks: *rng.pick(&[6, 40, 10_000]).unwrap_or(&10_000),
            optimistic_start,
            lock_unavailable: if rng.chance(300_000) {
                LockUnavailablePolicy::Pause
            } else {
                LockUnavailablePolicy::FenceOnly
            },
            lock_ttl_ms: 1_500,
        };
        let skew_ppm = if faults.on(Fault::Skew) { 1_000 } else { 0 };
        Self {
            seed,
            partitions: rng.between(1, 3) as u16,
            coordinators: rng.between(2, 3) as usize,
            engines: rng.between(1, 2) as usize,
            replayers: rng.between(1, 2) as usize,
            workers: rng.between(3, 4) as usize,
            faults,
            owner,
            owner_rules: OwnerRules::STANDARD,
            fold_rules: &task_core::STANDARD,
            skew_ppm,
            long_steps_ppm: if seed % 4 == 1 { 500_000 } else { 30_000 },
            client_us: rng.between(15_000, 60_000),
            records: 2_000,
            takeovers: 2,
            tasks: 8,
        }
    }
}

/// Longest second phase, true µs: what is open after it hangs. A world whose take-overs were long in
/// coming heals with a backlog of thousands, and its few workers take their time for each.
pub(crate) const fn healing_us(open: usize) -> u64 {
    240_000_000 + open as u64 * 500_000
}
