//! Each rule taken out is noticed by the history that is about it, each cell of the matrix and each
//! line of the cancel rules by its own line of the table.

use std::cell::Cell as Local;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use task_core::{CancelRule, Cell, Column, Rules, STANDARD};

use crate::kit::RULES;
use crate::matrix::{CELLS, STATES, hold};
use crate::notation::kind_of;
use crate::{acceptance, attempts, cancels, replays, retries};

thread_local! {
    static QUIET: Local<bool> = const { Local::new(false) };
}

type Mutant = (&'static str, fn(&mut Rules), fn());

const MUTANTS: [Mutant; 13] = [
    ("key", |r| r.key = false, acceptance::the_key_is_that_of_the_subject),
    ("partition", |r| r.key = false, acceptance::a_task_lives_in_the_partition_of_its_id),
    ("claim_order", |r| r.claim_order = false, acceptance::a_claim_is_the_next_epoch_and_starts_owner_seq_anew),
    ("fence", |r| r.fence = false, attempts::a_zombie_writes_behind_the_claim_of_its_successor),
    ("owner_seq", |r| r.owner_seq = false, acceptance::the_fence_hears_the_owner_alone_and_in_his_order),
    ("id_order", |r| r.id_order = false, acceptance::a_task_is_born_once_and_ids_rise),
    ("carried", |r| r.carried = false, replays::a_replay_continues_what_it_carries),
    ("sequence", |r| r.sequence = false, attempts::the_sequence_continues_the_version),
    ("run", |r| r.run = false, attempts::the_run_matches),
    ("exec_epoch", |r| r.exec_epoch = false, attempts::the_kth_assignment_has_epoch_k),
    ("execution_id", |r| r.execution_id = false, attempts::every_report_names_epoch_and_id_of_the_attempt),
    ("cancel", |r| r.cancel = false, cancels::nothing_hands_a_cancelled_task_on),
    ("counters", |r| r.counters = false, retries::retries_after_failures_are_limited_by_the_task),
];

// Whether this history breaks under these rules; what it says then is of no interest.
fn breaks(rules: Rules, history: impl FnOnce()) -> bool {
    RULES.set(Box::leak(Box::new(rules)));
    QUIET.set(true);
    let noticed = catch_unwind(AssertUnwindSafe(history)).is_err();
    QUIET.set(false);
    RULES.set(&STANDARD);
    noticed
}

fn be_quiet_about_mutants() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
}

#[test]
fn a_rule_left_out_is_noticed() {
    be_quiet_about_mutants();
    for (name, mutate, history) in MUTANTS {
        let mut rules = STANDARD.clone();
        mutate(&mut rules);
        assert!(breaks(rules, history), "nobody misses {name}");
    }
}

#[test]
fn a_flipped_cell_is_noticed() {
    be_quiet_about_mutants();
    for (state, path) in STATES {
        let column = *Column::ALL.iter().find(|c| c.as_str() == state).unwrap();
        for (verb, allowed, cancel) in CELLS {
            let kind = kind_of(verb).unwrap();
            let flipped = match STANDARD.matrix.cell(kind, column) {
                Cell::No => Cell::Yes,
                Cell::Yes => Cell::No,
                // Lost is always lost; elsewhere the table comes by a failure, and late is not allowed.
                Cell::Late if column == Column::Lost => Cell::No,
                Cell::Late => Cell::Yes,
            };
            let rules = Rules { matrix: STANDARD.matrix.with(kind, column, flipped), ..STANDARD.clone() };
            let noticed = breaks(rules, || hold(state, path, verb, allowed, cancel));
            assert!(noticed, "nobody misses {kind} in {state}");
        }
    }
}

#[test]
fn another_cancel_rule_is_noticed() {
    be_quiet_about_mutants();
    for (verb, allowed, cancel) in CELLS.into_iter().filter(|(_, allowed, _)| !allowed.is_empty()) {
        let kind = kind_of(verb).unwrap() as usize;
        for other in [CancelRule::Either, CancelRule::Without, CancelRule::With] {
            if STANDARD.cancel_by_kind[kind] != other {
                let mut rules = STANDARD.clone();
                rules.cancel_by_kind[kind] = other;
                let all = || STATES.iter().for_each(|(state, path)| hold(state, path, verb, allowed, cancel));
                assert!(breaks(rules, all), "nobody misses the cancel rule of {verb}");
            }
        }
    }
}
