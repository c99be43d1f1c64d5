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
