//! One rule taken out at a time: of the owner (design.md §4) and of the fold. Each must be missed.

use coordinator::owner::OwnerRules;
use task_core::Rules;

use crate::plan::Plan;

/// The rules without one of them.
#[derive(Clone, Copy)]
pub struct Mutant {
    /// `owner.NAME` or `fold.NAME`.
    pub name: &'static str,
    owner: OwnerRules,
    fold: &'static Rules,
}

macro_rules! mutants {
    (owner: $($owner:ident)*; fold: $($fold:ident)*;) => {
        /// Names of all mutants.
        pub const NAMES: &[&str] =
            &[$(concat!("owner.", stringify!($owner)),)* $(concat!("fold.", stringify!($fold)),)*];

        impl Mutant {
            /// The mutant of this name. Its fold's rules live as long as the process, as
            /// production's do.
            pub fn named(name: &str) -> Option<Self> {
                $(if name == concat!("owner.", stringify!($owner)) {
                    let owner = OwnerRules { $owner: false, ..OwnerRules::STANDARD };
                    return Some(Self { name: concat!("owner.", stringify!($owner)), owner, fold: &task_core::STANDARD });
                })*
                $(if name == concat!("fold.", stringify!($fold)) {
                    let fold = Box::leak(Box::new(Rules { $fold: false, ..Rules::STANDARD }));
                    return Some(Self { name: concat!("fold.", stringify!($fold)), owner: OwnerRules::STANDARD, fold });
                })*
                None
            }
        }

        // A new switch is a build error here until the table has it.
        const _: fn(OwnerRules, Rules) = |owner, fold| {
            let OwnerRules { $($owner: _,)* } = owner;
            let Rules { matrix: _, cancel_by_kind: _, $($fold: _,)* } = fold;
        };
    };
}

mutants! {
    owner: effects_after_read_back one_in_flight claim_again rejection_final proof leases_anew wait_lease_left
        lease_margin owed_first owed_again key_read one_closed_command stop_when_superseded wait_for_claim
        checkpoint_after_rows release_assigned_only mint_above_highest parameters_by_hash one_per_key;
    fold: fence claim_order owner_seq sequence run exec_epoch execution_id cancel counters id_order carried key;
}

impl Mutant {
    /// The rules of its fold.
    pub fn fold(self) -> &'static Rules {
        self.fold
    }

    /// Takes its rule out of a plan.
    pub fn apply(self, plan: &mut Plan) {
        (plan.owner_rules, plan.fold_rules) = (self.owner, self.fold);
    }
}

/// Mutants that no seed of the table catches, and what stands in their way.
pub const EQUIVALENT: &[(&str, &str)] = &[
    (
        "owner.rejection_final",
        "what is rejected here is rejected in every later copy too: an event_sequence never comes back, and \
         owner_seq and epoch only rise; a copy could count only if a foreign record made the first one wrong and a \
         later one made it right again. coordinator/tests/owner/mutants.rs writes that history down",
    ),
    (
        "owner.release_assigned_only",
        "in EXECUTING the matrix refuses a TaskReleased whatever the owner wants; what is left is an optimistic \
         attempt whose STARTING is lost while an old copy of its poll arrives, which no seed of the table draws. \
         coordinator/tests/owner/mutants.rs writes that history down",
    ),
    (
        "owner.parameters_by_hash",
        "two owners must mint one id, within a ms of each other or both behind the highest one, and both with \
         parameters, which no seed of the table draws. coordinator/tests/owner/mutants.rs writes that history down",
    ),
];
