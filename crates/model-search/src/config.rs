//! What is searched: where it starts, how far the adversary may go, which duties writers keep.

use crate::world::{B, Budget};

/// Duties of writers that the fold cannot check (design.md §4.2: "the writer's duty"). The
/// contract keeps them all; a variant without one shows what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duties {
    /// `accepted` is answered after the read-back, not after the append (§4.4).
    pub answer_after_read_back: bool,
    /// `fenced` is answered from memory only with a proof of being current (§4.6).
    pub proof_of_being_current: bool,
    /// A rejected record is no answer; the owner decides anew from its fold (§4.4, §4.5).
    pub rejection_is_no_answer: bool,
    /// One state-changing record of a task in flight, batches apart (§4.3, §4.7, §4.8).
    pub one_in_flight: bool,
    /// Closed tasks are read from owed rows first, then from the store (§4.8).
    pub owed_rows_first: bool,
    /// A new owner derives owed rows again before it answers (§4.8).
    pub owed_rows_derived_again: bool,
    /// Idempotency keys are looked up among owed rows too (§4.8).
    pub owed_keys_first: bool,
    /// A claimant waits for its own claim, known by event_id, not for one of its epoch (§4.1).
    pub own_claim_only: bool,
}

impl Duties {
    /// The contract.
    pub const ALL: Self = Self {
        answer_after_read_back: true,
        proof_of_being_current: true,
        rejection_is_no_answer: true,
        one_in_flight: true,
        owed_rows_first: true,
        owed_rows_derived_again: true,
        owed_keys_first: true,
        own_claim_only: true,
    };

    /// Every variant that leaves one duty out.
    pub fn without_one() -> Vec<(&'static str, Self)> {
        vec![
            ("answer_after_read_back", Self { answer_after_read_back: false, ..Self::ALL }),
            ("proof_of_being_current", Self { proof_of_being_current: false, ..Self::ALL }),
            ("rejection_is_no_answer", Self { rejection_is_no_answer: false, ..Self::ALL }),
            ("one_in_flight", Self { one_in_flight: false, ..Self::ALL }),
            ("owed_rows_first", Self { owed_rows_first: false, ..Self::ALL }),
            ("owed_rows_derived_again", Self { owed_rows_derived_again: false, ..Self::ALL }),
            ("owed_keys_first", Self { owed_keys_first: false, ..Self::ALL }),
            ("own_claim_only", Self { own_claim_only: false, ..Self::ALL }),
        ]
    }
}

/// One search.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name.
    pub name: &'static str,
    /// Histories it starts from, in the notation of [`crate::notation`].
    pub seeds: Vec<&'static str>,
    /// Budget of the adversary and of everything that would never end.
    pub budget: Budget,
    /// `max_retries` of created tasks.
    pub max_retries: u8,
    /// Creates bear the idempotency key.
    pub keyed: bool,
    /// Honest writers write too; else all there is are rogue records, which land at once.
    pub honest: bool,
    /// Moves after the seeds at most; `None` searches to the end.
    pub depth: Option<usize>,
    /// Rogue records may have one number wrong.
    pub twisted: bool,
    /// Duties writers keep.
    pub duties: Duties,
    /// A law that may be broken: what else breaks once it is?
    pub forgive: Option<&'static str>,
}

impl Config {
    /// A search from these histories with this budget.
    pub fn new(name: &'static str, seeds: &[&'static str], budget: &[(B, u8)]) -> Self {
        let mut left = [0; B::ALL.len()];
        for (b, n) in budget {
            left[*b as usize] = *n;
        }
        let seeds = seeds.to_vec();
        let duties = Duties::ALL;
        Self {
            name,
            seeds,
            budget: left,
            max_retries: 1,
            keyed: false,
            honest: true,
            depth: None,
            twisted: false,
            duties,
            forgive: None,
        }
    }

    /// The same without honest writers.
    #[must_use]
    pub fn rogue_only(mut self) -> Self {
        self.honest = false;
        self
    }

    /// The same, but only so many moves deep.
    #[must_use]
    pub fn deep(mut self, moves: usize) -> Self {
        self.depth = Some(moves);
        self
    }

    /// The same with rogue records that have one number wrong.
    #[must_use]
    pub fn twisted(mut self) -> Self {
        self.twisted = true;
        self
    }

    /// The same with keyed creates.
    #[must_use]
    pub fn keyed(mut self) -> Self {
        self.keyed = true;
        self
    }
}
