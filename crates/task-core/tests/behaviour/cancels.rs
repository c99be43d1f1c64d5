//! A cancel request stops whatever would hand the task on; its attempt may still end.

use task_core::{Pen, pen_of};

use crate::kit::play;

const STATES: [&str; 8] = [
    "submit t1",
    "submit t1 | assign t1",
    "submit t1 | assign t1 | start t1",
    "submit t1 | assign t1 | fail t1",
    "submit t1 | assign t1 | lose t1",
    "submit t1 | assign t1 | fail t1 | approve t1",
    "submit t1 | assign t1 | fail t1 | approve t1 | plan t1",
    "submit t1 | assign t1 | fail t1 | approve t1 | plan t1 | retry t1",
];

#[test]
pub fn any_open_task_can_be_cancelled_once() {
    for state in STATES {
        let w = play(&format!("claim | {state} | cancelled t1 => rejected(cancel_requested) | cancel t1"));
        assert_eq!(pen_of(&w.core(1)), Pen::Owner, "from now on the pen is the owner's");
        w.then("cancel t1 => rejected(cancel_requested) | cancelled t1 => CANCELLED | cancelled t1 => rejected(unknown_task)
                cancel t1 => rejected(unknown_task)");
    }
}

#[test]
pub fn nothing_hands_a_cancelled_task_on() {
    for state in STATES {
        let next = ["assign", "approve", "giveup", "plan", "retry", "skip", "quarantine"];
        for verb in next {
            // Where the matrix allows it, the cancel request does not; elsewhere the matrix speaks first.
            let w = play(&format!("claim | {state}"));
            let before = w.core(1);
            let allowed = match verb {
                "assign" => ["CREATED", "RETRYING"].as_slice(),
                "plan" => &["RETRY_APPROVED"],
                "retry" => &["REPLAY_PLANNED"],
                _ => &["FAILED", "LOST"],
            };
            let reason = if allowed.contains(&before.state.as_str()) { "cancel_requested" } else { "not_allowed" };
            let w = w.then(&format!("cancel t1 | {verb} t1 => rejected({reason})"));
            assert_eq!((w.core(1).state, w.core(1).cancel_requested), (before.state, true));
        }
    }
}

#[test]
pub fn the_attempt_of_a_cancelled_task_may_still_end() {
    let live = "claim | submit t1 | assign t1 | start t1 | cancel t1";
    play(&format!("{live} | step t1 | complete t1 => SUCCESS | cancelled t1 => rejected(unknown_task)"));
    play(&format!(
        "{live} | analyse t1 | fail t1 => FAILED | approve t1 => rejected(cancel_requested) | cancelled t1 => CANCELLED"
    ));
    play(&format!("{live} | lose t1 => LOST | complete t1 => SUCCESS"));
    play(&format!("{live} | timeout t1 => FAILED | cancelled t1 => CANCELLED"));
    play(
        "claim | submit t1 | assign t1 | cancel t1 | start t1 => EXECUTING | cancelled t1 => CANCELLED | complete t1 e=1 s=6 => rejected(unknown_task)",
    );
    play(
        "claim | submit t1 | assign t1 | cancel t1 | release t1 => CREATED | assign t1 => rejected(cancel_requested) | cancelled t1",
    );
}

#[test]
pub fn a_wait_may_time_out_and_be_overdue_although_cancelled() {
    play("claim | submit t1 | cancel t1 | overdue t1 | timeout t1 => FAILED | cancelled t1 => CANCELLED");
}

#[test]
pub fn a_replay_forgets_the_cancel_request() {
    let w = play(
        "claim | submit t1 | cancel t1 | cancelled t1 | replay t1 => RETRY_APPROVED | plan t1 | retry t1 | assign t1 e=1 | complete t1 => SUCCESS",
    );
    assert!(!w.closed[&crate::kit::task(1)].core.cancel_requested);
}
