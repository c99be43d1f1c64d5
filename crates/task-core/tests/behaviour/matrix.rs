//! The matrix of design.md §5, written down once more and held against the fold cell by cell.

use crate::kit::play;

// Each with an attempt behind it, so that no record fails for want of one.
pub const STATES: [(&str, &str); 8] = [
    ("CREATED", "submit t1 | assign t1 | release t1"),
    ("ASSIGNED", "submit t1 | assign t1"),
    ("EXECUTING", "submit t1 | assign t1 | start t1"),
    ("FAILED", "submit t1 | assign t1 | fail t1"),
    ("LOST", "submit t1 | assign t1 | lose t1"),
    ("RETRY_APPROVED", "submit t1 | assign t1 | fail t1 | approve t1"),
    ("REPLAY_PLANNED", "submit t1 | assign t1 | fail t1 | approve t1 | plan t1"),
    ("RETRYING", "submit t1 | assign t1 | fail t1 | approve t1 | plan t1 | retry t1"),
];

// Who, where, and whether a cancel request forbids it (-), is needed (+) or does not matter.
pub const CELLS: [(&str, &str, &str); 20] = [
    ("assign", "CREATED RETRYING", "-"),
    ("start", "ASSIGNED", ""),
    ("step", "EXECUTING", ""),
    ("release", "ASSIGNED", ""),
    ("complete", "ASSIGNED EXECUTING LOST", ""),
    ("fail", "ASSIGNED EXECUTING", ""),
    ("lose", "ASSIGNED EXECUTING", ""),
    ("timeout", "CREATED RETRYING ASSIGNED EXECUTING", ""),
    ("approve", "FAILED LOST", "-"),
    ("giveup", "FAILED LOST", "-"),
    ("plan", "RETRY_APPROVED", "-"),
    ("retry", "REPLAY_PLANNED", "-"),
    ("cancel", "CREATED ASSIGNED EXECUTING FAILED LOST RETRY_APPROVED REPLAY_PLANNED RETRYING", "-"),
    ("cancelled", "CREATED ASSIGNED EXECUTING FAILED LOST RETRY_APPROVED REPLAY_PLANNED RETRYING", "+"),
    ("overdue", "CREATED ASSIGNED EXECUTING FAILED LOST RETRY_APPROVED REPLAY_PLANNED RETRYING", ""),
    ("analyse", "ASSIGNED EXECUTING", ""),
    ("skip", "FAILED LOST", "-"),
    ("quarantine", "FAILED LOST", "-"),
    ("replay", "", ""),
    ("review", "", ""),
];

fn cell(verb: &str, allowed: &str, cancel: &str, state: &str, requested: bool) -> &'static str {
    if matches!(verb, "replay" | "review") {
        return "rejected(task_open)";
    }
    if !allowed.split(' ').any(|s| s == state) {
        return "rejected(not_allowed)";
    }
    match cancel {
        "-" if requested => "rejected(cancel_requested)",
        "+" if !requested => "rejected(cancel_requested)",
        _ => "ok",
    }
}

/// Plays one cell, with and without a cancel request before.
pub fn hold(state: &str, path: &str, verb: &str, allowed: &str, cancel: &str) {
    for requested in ["", "| cancel t1"] {
        let expected = cell(verb, allowed, cancel, state, !requested.is_empty());
        play(&format!("claim | {path} => {state} {requested} | {verb} t1 => {expected}"));
    }
}

#[test]
fn every_cell_of_the_matrix() {
    for (state, path) in STATES {
        for (verb, allowed, cancel) in CELLS {
            hold(state, path, verb, allowed, cancel);
        }
        for requested in ["", "| cancel t1"] {
            play(&format!("claim | {path} {requested} | submit t1 => rejected(id_order) | reject t1"));
        }
    }
    for (verb, ..) in CELLS.into_iter().filter(|(verb, ..)| !matches!(*verb, "replay" | "review")) {
        play(&format!("claim | {verb} t1 => rejected(unknown_task) | submit t2 | {verb} t1 => rejected(unknown_task)"));
    }
}
