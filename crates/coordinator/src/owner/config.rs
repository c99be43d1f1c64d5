//! Settings of an owner, and the rules of design.md §4 as switches.

use task_events::{Incarnation, Text};

/// Who this process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Instance name, stable over restarts.
    pub instance: Text,
    /// This start of the process.
    pub incarnation: Incarnation,
    /// Where the edge answers.
    pub url: Text,
}

/// Settings. Durations in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerConfig {
    /// Lease at hand-out.
    pub lease_ms: u64,
    /// Largest lease an attempt can get.
    pub lease_max_ms: u64,
    /// Heartbeat interval asked of workers; lease ≥ 3 × heartbeat.
    pub heartbeat_ms: u64,
    /// Margin the owner adds to a lease, percent (design.md §9: 10).
    pub lease_margin_percent: u64,
    /// And ms (design.md §9: 2 s).
    pub lease_margin_ms: u64,
    /// ASSIGNED but not started for this long: released (design.md §5: 10 s).
    pub not_started_ms: u64,
    /// After a cancel request a live attempt gets this long to stop.
    pub cancel_grace_ms: u64,
    /// An own record read back as accepted proves currency for this long (design.md §4.6: 2 s).
    pub proof_ms: u64,
    /// Pause between renewals (design.md §4.6: 1/s).
    pub renew_ms: u64,
    /// Requests are answered within this (design.md §4.5: 10 s).
    pub request_ms: u64,
    /// Records in flight per partition (design.md §4.3: 4,096).
    pub max_in_flight: usize,
    /// Owed rows per partition, bytes (design.md §4.9: 64 MiB).
    pub owed_bytes: usize,
    /// Longest a row is behind (design.md §7: 1 s).
    pub row_lag_ms: u64,
    /// Longest where the pen changes hands (design.md §7: 100 ms).
    pub pen_lag_ms: u64,
    /// Offsets between checkpoints (design.md §4.10: 65,536).
    pub checkpoint_every: u64,
    /// Superseded but still assigned: claims again after this (design.md §4.1: 2 s) …
    pub superseded_ms: u64,
    /// … and a random back-off that doubles from this …
    pub claim_backoff_ms: u64,
    /// … to this (1 s to 30 s).
    pub claim_backoff_max_ms: u64,
    /// First back-off after three equal rejections of one task (design.md §4.7: 100 ms) …
    pub reject_backoff_ms: u64,
    /// … doubling to this (30 s).
    pub reject_backoff_max_ms: u64,
    /// Disagreement of clocks that stops creates (design.md §4.11: 5 s).
    pub clock_tolerance_ms: i64,
    /// Open tasks per creator in this partition; beyond, 429.
    pub max_open_tasks: usize,
    /// Attempts may enter their handler before STARTING is answered.
    pub optimistic_start: bool,
    /// What to do while the lock server is away (design.md §6).
    pub lock_unavailable: LockUnavailablePolicy,
    /// Time to live of a lock: min(this, lease).
    pub lock_ttl_ms: u64,
}

/// `lock.on-unavailable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockUnavailablePolicy {
    /// Hand out, fenced by the log, and raise an alarm.
    FenceOnly,
    /// Hand out nothing until it is back.
    Pause,
}

impl Default for OwnerConfig {
    fn default() -> Self {
        Self {
            lease_ms: 60_000,
            lease_max_ms: 120_000,
            heartbeat_ms: 10_000,
            lease_margin_percent: 10,
            lease_margin_ms: 2_000,
            not_started_ms: 10_000,
            cancel_grace_ms: 30_000,
            proof_ms: 2_000,
            renew_ms: 1_000,
            request_ms: 10_000,
            max_in_flight: 4_096,
            owed_bytes: 64 * 1024 * 1024,
            row_lag_ms: 1_000,
            pen_lag_ms: 100,
            checkpoint_every: task_core::checkpoint::EVERY,
            superseded_ms: 2_000,
            claim_backoff_ms: 1_000,
            claim_backoff_max_ms: 30_000,
            reject_backoff_ms: 100,
            reject_backoff_max_ms: 30_000,
            clock_tolerance_ms: 5_000,
            max_open_tasks: 100_000,
            optimistic_start: false,
            lock_unavailable: LockUnavailablePolicy::FenceOnly,
            lock_ttl_ms: 30_000,
        }
    }
}

/// Two settings that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{first} = {first_value} contradicts {second} = {second_value}: {rule}")]
pub struct ConfigConflict {
    /// Key.
    pub first: &'static str,
    /// Its value.
    pub first_value: u64,
    /// Other key.
    pub second: &'static str,
    /// Its value.
    pub second_value: u64,
    /// What must hold.
    pub rule: &'static str,
}

impl OwnerConfig {
    /// Every rule that holds between settings, with the values it is held against, and whether it holds.
    pub fn rules(&self) -> [(bool, ConfigConflict); 4] {
        let rule = |ok: bool, first: (&'static str, u64), second: (&'static str, u64), rule: &'static str| {
            let ((first, first_value), (second, second_value)) = (first, second);
            (ok, ConfigConflict { first, first_value, second, second_value, rule })
        };
        let (lease, proof) = (("lease_ms", self.lease_ms), ("proof_ms", self.proof_ms));
        [
            rule(
                self.lease_ms >= self.heartbeat_ms.saturating_mul(3),
                lease,
                ("heartbeat_ms", self.heartbeat_ms),
                "a lease lasts at least three heartbeats",
            ),
            rule(
                self.lease_max_ms >= self.lease_ms,
                ("lease_max_ms", self.lease_max_ms),
                lease,
                "the largest lease is not below the first one",
            ),
            rule(
                self.lease_margin_ms >= self.proof_ms,
                ("lease_margin_ms", self.lease_margin_ms),
                proof,
                "a superseded owner may answer heartbeats for proof_ms, so the margin must cover it",
            ),
            rule(
                self.renew_ms < self.proof_ms,
                ("renew_ms", self.renew_ms),
                proof,
                "a proof must be renewed before it ends",
            ),
        ]
    }

    /// Checks the rules that hold between settings; the first broken one is named with both keys.
    pub fn validate(&self) -> Result<(), ConfigConflict> {
        self.rules().into_iter().find(|(ok, _)| !ok).map_or(Ok(()), |(_, conflict)| Err(conflict))
    }
}

/// The rules of design.md §4 that live in the owner, one switch each. Production runs
/// [`OwnerRules::STANDARD`]; the simulator takes one out at a time to see that it is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerRules {
    /// §4.4: answers and effects only after read-back.
    pub effects_after_read_back: bool,
    /// §4.3: one state-changing record of a task in flight.
    pub one_in_flight: bool,
    /// §4.5: an unknown outcome claims again (else the record is sent once more).
    pub claim_again: bool,
    /// §4.4: a rejection is an answer only when no copy can still be accepted.
    pub rejection_final: bool,
    /// §4.6: nothing is answered from memory, no lease judged without a fresh own record.
    pub proof: bool,
    /// §4.6: after a claim each lease runs anew, with the largest lease.
    pub leases_anew: bool,
    /// §9: the next attempt waits for `lease_left_ms`.
    pub wait_lease_left: bool,
    /// §9: the owner adds its margin to a lease.
    pub lease_margin: bool,
    /// §4.8: owed rows before the row.
    pub owed_first: bool,
    /// §4.8: owed rows are derived again after a take-over.
    pub owed_again: bool,
    /// §7: a key's row is read before every keyed create.
    pub key_read: bool,
    /// §4.8: one closed-task command per task in flight.
    pub one_closed_command: bool,
    /// §4.1: stop at once when superseded.
    pub stop_when_superseded: bool,
    /// §4.1: decide only after the own claim was read back.
    pub wait_for_claim: bool,
    /// §4.10: a checkpoint is published only when all rows owed below it are acknowledged.
    pub checkpoint_after_rows: bool,
    /// §9: only ASSIGNED attempts that are not listed are handed out again.
    pub release_assigned_only: bool,
    /// §3: ids are minted above the highest accepted one.
    pub mint_above_highest: bool,
    /// §7: parameters are stored under their hash, not under the task's id alone.
    pub parameters_by_hash: bool,
    /// §10: one task of a concurrency key at a time.
    pub one_per_key: bool,
}

impl OwnerRules {
    /// All rules.
    pub const STANDARD: Self = Self {
        effects_after_read_back: true,
        one_in_flight: true,
        claim_again: true,
        rejection_final: true,
        proof: true,
        leases_anew: true,
        wait_lease_left: true,
        lease_margin: true,
        owed_first: true,
        owed_again: true,
        key_read: true,
        one_closed_command: true,
        stop_when_superseded: true,
        wait_for_claim: true,
        checkpoint_after_rows: true,
        release_assigned_only: true,
        mint_above_highest: true,
        parameters_by_hash: true,
        one_per_key: true,
    };
}
