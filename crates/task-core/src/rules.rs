//! The acceptance rules as one value: what `RulesActivated{1}` stands for. A mutant is the same
//! value with one rule taken out; only searches and simulations build those.

use task_events::Kind;

use crate::Matrix;
use crate::meaning::standard_cancel;

/// What a cancel request on record means for a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelRule {
    /// Nothing.
    Either,
    /// It is accepted only while there is none.
    Without,
    /// It is accepted only once there is one.
    With,
}

impl CancelRule {
    /// Whether the rule is kept.
    pub const fn allows(self, requested: bool) -> bool {
        match self {
            Self::Either => true,
            Self::Without => !requested,
            Self::With => requested,
        }
    }
}

/// Which checks the fold makes. Production uses [`Rules::STANDARD`] and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// States × kinds.
    pub matrix: Matrix,
    /// Owner kinds must carry the current partition epoch.
    pub fence: bool,
    /// A claim must carry current + 1.
    pub claim_order: bool,
    /// Owner kinds must carry a rising owner_seq.
    pub owner_seq: bool,
    /// event_sequence must continue the version.
    pub sequence: bool,
    /// run_no must match.
    pub run: bool,
    /// exec_epoch must match.
    pub exec_epoch: bool,
    /// execution_id must match.
    pub execution_id: bool,
    /// Nothing but its end after a cancel request, no cancel without one.
    pub cancel: bool,
    /// What that means, by kind (index of the enum symbol).
    pub cancel_by_kind: [CancelRule; Kind::ALL.len()],
    /// Retry and loss limits.
    pub counters: bool,
    /// Ids of new tasks rise.
    pub id_order: bool,
    /// A carried closed state must be terminal and continued.
    pub carried: bool,
    /// Key and partition must be those of the subject.
    pub key: bool,
}

impl Rules {
    /// Version 1 of the rules (design.md §4.2, §5).
    pub const STANDARD: Self = Self {
        matrix: Matrix::standard(),
        fence: true,
        claim_order: true,
        owner_seq: true,
        sequence: true,
        run: true,
        exec_epoch: true,
        execution_id: true,
        cancel: true,
        cancel_by_kind: standard_cancel_by_kind(),
        counters: true,
        id_order: true,
        carried: true,
        key: true,
    };
}

const fn standard_cancel_by_kind() -> [CancelRule; Kind::ALL.len()] {
    let mut rules = [CancelRule::Either; Kind::ALL.len()];
    let mut k = 0;
    while k < rules.len() {
        rules[k] = standard_cancel(Kind::ALL[k]);
        k += 1;
    }
    rules
}

/// The rules of production, for `&'static` use.
pub static STANDARD: Rules = Rules::STANDARD;
