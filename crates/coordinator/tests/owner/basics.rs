//! The plain way of a task, and that it is the same after a crash at any step.

use crate::kit::World;

#[test]
fn from_create_to_success() {
    let mut w = World::new();
    w.play(
        "submit t1 => created t1 | poll w1 => t1 e=1 | start t1 e=1 => accepted | step t1 e=1 a => accepted \
         | beat t1 e=1 => accepted | complete t1 e=1 => accepted | get t1 => SUCCESS v5",
    );
    assert_eq!(w.history(), "create t1 | assign t1 w1 e=1 | start t1 e=1 | step t1 e=1 a | complete t1 e=1");
}

#[test]
fn failed_approved_planned_and_run_again() {
    let mut w = World::new();
    w.play(
        "submit t1 max=2 | poll w1 => t1 e=1 | start t1 e=1 | fail t1 e=1 => accepted | approve t1 | plan t1 \
         | poll w2 => t1 e=2 | complete t1 e=1 => fenced | start t1 e=2 | complete t1 e=2 => accepted",
    );
    assert_eq!(
        w.history(),
        "create t1 | assign t1 w1 e=1 | start t1 e=1 | analysis t1 | fail t1 e=1 BROKEN | approve t1 | plan t1 \
         | retry t1 | assign t1 w2 e=2 | noted t1 e=1 | start t1 e=2 | complete t1 e=2"
    );
}

// Each history again, with another owner taking over after every single step.
fn crashing(history: &str) {
    let steps: Vec<&str> = history.split('|').map(str::trim).collect();
    for at in 1..steps.len() {
        let mut w = World::new();
        w.play(&steps[..at].join(" | "));
        w.play("crash");
        assert_eq!(w.owner().fold().hash(), w.fold.hash(), "the fold of the log is the state");
        w.play(&steps[at..].join(" | "));
    }
}

#[test]
fn the_same_after_a_crash_at_any_step() {
    crashing(
        "submit t1 => created t1 | poll w1 => t1 e=1 | start t1 e=1 => accepted | step t1 e=1 a => accepted \
         | start t1 e=1 => duplicate | step t1 e=1 a => duplicate | beat t1 e=1 => accepted \
         | complete t1 e=1 => accepted | complete t1 e=1 => duplicate | get t1 => SUCCESS v5 | replay t1 => run 2",
    );
    crashing(
        "submit t1 max=1 | poll w1 => t1 e=1 | start t1 e=1 | fail t1 e=1 => accepted | fail t1 e=1 => duplicate \
         | approve t1 | plan t1 | poll w2 => t1 e=2 | beat t1 e=1 => fenced | start t1 e=2 => accepted \
         | complete t1 e=1 => fenced | fail t1 e=2 => accepted | approve t1 | get t1 => FAILED_PERMANENTLY v11 \
         | fail t1 e=2 => duplicate | review t1 => reviewed | get t1 => FAILED_PERMANENTLY v12",
    );
    crashing(
        "submit t1 key=k => created t1 | submit t2 key=k => duplicate t1 | poll w1 => t1 e=1 | start t1 e=1 \
         | cancel t1 => cancel accepted | cancel t1 => cancel accepted | beat t1 e=1 => accepted, stop \
         | fail t1 e=1 => accepted | submit t3 key=k => duplicate t1 | get t1 => CANCELLED v6 | cancel t1 => closed CANCELLED",
    );
}

#[test]
pub fn rules_are_activated_forward_and_only_known_ones() {
    let known = task_events::SUPPORTED_RULES.0;
    let mut w = World::new();
    w.play("activate 1 => active");
    assert_eq!(w.count("rules"), 0, "what is active already is not written again");
    w.play(&format!("activate {0} => rules {0} refused, 1 of {known}", known + 1));
    w.play(&format!("activate {known} => active | activate {known} => active"));
    assert_eq!(w.count("rules"), known as usize - 1);
    w.play(&format!("activate {0} => rules {0} refused, {known} of {known}", known - 1));
    w.play("submit t1 | poll w1 => t1 e=1 | complete t1 e=1 => accepted | crash | get t1 => SUCCESS v3");
}
