//! A world: the log as it was folded, what is still on its way to it, who holds an old view of it,
//! what was told to whom, and what the adversary may still do. A few numbers of a [`crate::lab::Lab`].

use task_events::OwnerSeq;

use crate::fold::Fold;
use crate::lab::{Lab, NONE};
use crate::subject::TASKS;

macro_rules! budgets {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What is limited in a search. Everything else happens as often as the state allows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum B { $($(#[$doc])* $name,)* }
        impl B {
            /// All of them.
            pub const ALL: &'static [B] = &[$(B::$name,)*];
        }
    };
}

budgets! {
    /// Claims.
    Claim,
    /// Times somebody stops reading and keeps the state he has.
    Freeze,
    /// Records decided on a frozen state.
    Zombie,
    /// Records that land a second time.
    Dup,
    /// Records that never land.
    Drop,
    /// Cancel requests.
    Cancel,
    /// Replays asked for.
    Replay,
    /// Reviews.
    Review,
    /// TaskLost.
    Lost,
    /// TaskTimedOut.
    Timeout,
    /// TaskReleased.
    Release,
    /// Success reports written.
    Complete,
    /// Failure reports written.
    Fail,
    /// Failure reports that are not to be retried.
    Fatal,
    /// Step reports.
    Step,
    /// TaskOverdue.
    Overdue,
    /// Verdicts with annotations.
    Annotate,
    /// Creates.
    Create,
    /// `fenced` answers and RejectedReports.
    Fence,
    /// Engines and replayers that do not know of a verdict already in flight.
    Takeover,
    /// OwnershipRenewed.
    Renew,
    /// Records of a writer that keeps no rule at all.
    Rogue,
}

/// One number for each [`B`].
pub type Budget = [u8; B::ALL.len()];

/// Records in flight at most.
pub const MAX_FLIGHT: usize = 12;
/// A copy: its original has landed, its writer does not wait for it.
pub const COPY: u32 = 1 << 31;
/// Written on a frozen state: nobody current waits for it.
pub const STALE: u32 = 1 << 30;

/// Written by an instance that takes itself for the owner and is not.
pub const RIVAL: u32 = 1 << 29;
/// The record's number, without flags.
pub const RECORD: u32 = RIVAL - 1;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    /// State of the log's reader.
    pub fold: u32,
    /// The auditor's memory of it.
    pub audit: u32,
    /// Frozen states.
    pub views: [u32; 2],
    flight: [u32; MAX_FLIGHT],
    flying: u8,
    /// Terminal reports answered `accepted`, by task (bits as in the audit).
    pub told_yes: [u16; TASKS],
    /// Terminal reports answered `fenced`.
    pub told_no: [u16; TASKS],
    /// Closed task in the row store.
    pub row: [u32; TASKS],
    /// Closed tasks whose rows are owed, oldest first.
    pub owed: [[u32; 2]; TASKS],
    /// The key's row is written.
    pub key_row: bool,
    /// The key's row is owed.
    pub key_owed: bool,
    /// An instance whose claim of this epoch was rejected takes itself for its owner.
    pub rival: bool,
    /// Replays asked for.
    pub asked: u8,
    /// Budget left.
    pub left: Budget,
}

impl World {
    /// A quiet world at this state.
    pub fn new(fold: u32, audit: u32, left: Budget) -> Self {
        Self {
            fold,
            audit,
            views: [NONE; 2],
            flight: [NONE; MAX_FLIGHT],
            flying: 0,
            told_yes: [0; TASKS],
            told_no: [0; TASKS],
            row: [NONE; TASKS],
            owed: [[NONE; 2]; TASKS],
            key_row: false,
            key_owed: false,
            rival: false,
            asked: 0,
            left,
        }
    }

    /// Records in flight: number and flags.
    pub fn flight(&self) -> &[u32] {
        &self.flight[..self.flying as usize]
    }

    /// Puts a record into flight. The order of a flight means nothing, so it is kept sorted.
    pub fn launch(&mut self, entry: u32) {
        let n = self.flying as usize;
        assert!(n < MAX_FLIGHT, "more records in flight than a search may have: raise MAX_FLIGHT");
        let at = self.flight[..n].partition_point(|e| *e < entry);
        self.flight.copy_within(at..n, at + 1);
        self.flight[at] = entry;
        self.flying += 1;
    }

    /// Takes the n-th record out of flight.
    pub fn take(&mut self, at: usize) -> u32 {
        let entry = self.flight[at];
        let n = self.flying as usize;
        self.flight.copy_within(at + 1..n, at);
        self.flight[n - 1] = NONE;
        self.flying -= 1;
        entry
    }

    /// Makes worlds equal that only differ in what nothing will ever look at: old states nobody
    /// may write on, and, where nothing ever is in flight, how far owner_seq has counted (it is
    /// compared with records in flight and nothing else).
    pub fn settle(&mut self, lab: &mut Lab, in_flight: bool) {
        if !self.has(B::Zombie) {
            self.views = [NONE; 2];
            self.left[B::Freeze as usize] = 0;
        }
        if !in_flight {
            let fold = *lab.fold(self.fold);
            if fold.owner_seq.0 > 0 {
                self.fold = lab.fold_id(&Fold { owner_seq: OwnerSeq(0), ..fold });
            }
        }
    }

    /// Whether some of a budget is left.
    pub fn has(&self, b: B) -> bool {
        self.left[b as usize] > 0
    }

    /// This world with one of a budget spent.
    #[must_use]
    pub fn spend(mut self, b: B) -> Self {
        self.left[b as usize] -= 1;
        self
    }

    /// A closed task's row is owed. Rows are coalesced: the newest two are enough to tell late
    /// from current.
    pub fn owe(&mut self, task: usize, closed: u32) {
        let owed = &mut self.owed[task];
        *owed = match *owed {
            [NONE, _] => [closed, NONE],
            [first, NONE] => [first, closed],
            [_, second] => [second, closed],
        };
    }

    /// The newest owed row.
    pub fn newest_owed(&self, task: usize) -> u32 {
        match self.owed[task] {
            [first, NONE] => first,
            [_, second] => second,
        }
    }

    /// The hash by which a world is known.
    pub fn fingerprint(&self) -> u128 {
        let mut bytes = [0u8; 256];
        let mut n = 0;
        let mut put = |b: &[u8]| {
            bytes[n..n + b.len()].copy_from_slice(b);
            n += b.len();
        };
        for number in [self.fold, self.audit, self.views[0], self.views[1]] {
            put(&number.to_le_bytes());
        }
        put(&[self.flying]);
        for entry in self.flight() {
            put(&entry.to_le_bytes());
        }
        for t in 0..TASKS {
            put(&self.told_yes[t].to_le_bytes());
            put(&self.told_no[t].to_le_bytes());
            for number in [self.row[t], self.owed[t][0], self.owed[t][1]] {
                put(&number.to_le_bytes());
            }
        }
        put(&[u8::from(self.key_row), u8::from(self.key_owed), u8::from(self.rival), self.asked]);
        put(&self.left);
        xxhash_rust::xxh3::xxh3_128(&bytes[..n])
    }
}
