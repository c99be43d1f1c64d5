//! How often a task may run again.

use crate::kit::play;

const AGAIN: &str = "| plan t1 | retry t1 | assign t1";

#[test]
pub fn retries_after_failures_are_limited_by_the_task() {
    play(
        "claim | submit t1 max=0 | assign t1 | fail t1 | approve t1 => rejected(retries_exhausted) | giveup t1 => FAILED_PERMANENTLY",
    );
    let w = play(&format!(
        "claim | submit t1 max=2 | assign t1 | fail t1 | approve t1 {AGAIN} | timeout t1 | approve t1 {AGAIN} | fail t1"
    ));
    assert_eq!((w.core(1).retry_count, w.core(1).lost_count), (2, 0));
    w.then("approve t1 => rejected(retries_exhausted) | skip t1 | giveup t1 => FAILED_PERMANENTLY | approve t1 => rejected(unknown_task)");
}

#[test]
pub fn losses_count_apart_and_five_are_forgiven() {
    let lost = format!("| lose t1 | approve t1 {AGAIN}").repeat(5);
    let w = play(&format!("claim | submit t1 max=0 | assign t1 {lost}"));
    assert_eq!((w.core(1).retry_count, w.core(1).lost_count, w.core(1).exec_epoch.0), (0, 5, 6));
    w.then("lose t1 | approve t1 => rejected(retries_exhausted) | complete t1 => SUCCESS");
    let w = play(&format!("claim | submit t1 max=1 | assign t1 {lost} | fail t1 | approve t1 {AGAIN}"));
    assert_eq!((w.core(1).retry_count, w.core(1).lost_count), (1, 5));
    w.then("lose t1 | approve t1 => rejected(retries_exhausted) | giveup t1 => FAILED_PERMANENTLY");
}

#[test]
pub fn verdict_plan_and_retry_each_have_their_state() {
    play("claim | submit t1 | approve t1 => rejected(not_allowed) | plan t1 => rejected(not_allowed) | retry t1 => rejected(not_allowed)
          giveup t1 => rejected(not_allowed) | assign t1 | approve t1 => rejected(not_allowed) | fail t1
          plan t1 => rejected(not_allowed) | retry t1 => rejected(not_allowed) | assign t1 => rejected(not_allowed)
          approve t1 | approve t1 => rejected(not_allowed) | giveup t1 => rejected(not_allowed)
          retry t1 => rejected(not_allowed) | plan t1 | plan t1 => rejected(not_allowed) | assign t1 => rejected(not_allowed)
          retry t1 | retry t1 => rejected(not_allowed) | assign t1 => ASSIGNED");
}

#[test]
pub fn a_lost_task_is_given_up_or_tried_again() {
    play(
        "claim | submit t1 | assign t1 | lose t1 | giveup t1 => FAILED_PERMANENTLY | complete t1 e=1 => rejected(unknown_task)",
    );
}

#[test]
pub fn the_engine_goes_on_over_a_change_of_owners() {
    play("claim | submit t1 | assign t1 | fail t1 | claim | approve t1 | claim | plan t1 | retry t1 p=2.1 => rejected(stale_epoch)
          retry t1 p=3.1 | assign t1 => ASSIGNED");
}
