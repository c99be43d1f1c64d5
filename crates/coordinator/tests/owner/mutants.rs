//! Each rule of [`OwnerRules`] is missed: without it the history named beside it fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use coordinator::owner::OwnerRules;

use crate::kit::RULES;
use crate::{checkpoints, closed, creates, dispatch, keys, leases, ownership, rows};

type Without = (&'static str, fn(&mut OwnerRules), fn());

const MUTANTS: &[Without] = &[
    (
        "effects_after_read_back",
        |r| r.effects_after_read_back = false,
        ownership::answers_and_effects_come_only_after_read_back,
    ),
    ("one_in_flight", |r| r.one_in_flight = false, dispatch::nothing_is_handed_out_beside_a_record_in_flight),
    (
        "claim_again",
        |r| r.claim_again = false,
        ownership::an_unknown_outcome_that_did_not_land_is_dead_behind_the_claim_and_gets_a_new_id,
    ),
    ("rejection_final", |r| r.rejection_final = false, ownership::a_rejection_is_no_answer_while_a_copy_may_land),
    ("proof", |r| r.proof = false, ownership::without_a_proof_nothing_is_answered_from_memory),
    ("leases_anew", |r| r.leases_anew = false, leases::after_a_claim_leases_run_anew_with_the_largest_one),
    ("wait_lease_left", |r| r.wait_lease_left = false, leases::the_next_attempt_waits_for_what_is_left_of_the_lease),
    ("lease_margin", |r| r.lease_margin = false, leases::lost_is_silence_past_the_lease_and_the_margin_once),
    ("owed_first", |r| r.owed_first = false, closed::owed_first_then_the_row),
    ("owed_again", |r| r.owed_again = false, rows::a_successor_writes_again_only_what_was_not_acknowledged),
    ("key_read", |r| r.key_read = false, creates::one_key_one_task),
    ("one_closed_command", |r| r.one_closed_command = false, closed::one_closed_task_command_in_flight),
    (
        "stop_when_superseded",
        |r| r.stop_when_superseded = false,
        ownership::superseded_it_stops_at_once_and_claims_again_after_two_seconds_and_more,
    ),
    ("wait_for_claim", |r| r.wait_for_claim = false, ownership::nothing_is_decided_before_the_own_claim_is_read_back),
    (
        "checkpoint_after_rows",
        |r| r.checkpoint_after_rows = false,
        checkpoints::published_when_the_rows_below_are_acknowledged_and_not_before,
    ),
    ("release_assigned_only", |r| r.release_assigned_only = false, leases::an_optimistic_start_is_left_to_its_lease),
    ("mint_above_highest", |r| r.mint_above_highest = false, creates::ids_rise_whatever_the_clocks_do),
    (
        "parameters_by_hash",
        |r| r.parameters_by_hash = false,
        creates::an_owner_that_was_superseded_takes_no_parameters_away,
    ),
    ("one_per_key", |r| r.one_per_key = false, keys::one_task_of_a_key_runs_at_a_time_in_the_order_of_the_dispatch),
];

#[test]
fn every_rule_is_missed() {
    for (name, without, history) in MUTANTS {
        RULES.set(OwnerRules::STANDARD);
        history();
        let mut rules = OwnerRules::STANDARD;
        without(&mut rules);
        RULES.set(rules);
        let outcome = catch_unwind(AssertUnwindSafe(history));
        RULES.set(OwnerRules::STANDARD);
        assert!(outcome.is_err(), "nobody misses the rule {name}");
    }
}
