//! design.md §4.8: whatever concerns a closed task is answered from owed rows, then from the row.

use coordinator::owner::{Command, Effect};
use task_core::decide::Replay;
use task_events::{ReplayFrom, RunNo, TASK_ID_EPOCH_MS, TaskId};

use crate::kit::{P, World};

fn done() -> World {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | complete t1 e=1 => accepted");
    w
}

#[test]
pub fn owed_first_then_the_row() {
    let mut w = World::new();
    w.store_away = true;
    w.play(
        "submit t1 | poll w1 => t1 e=1 | start t1 e=1 | complete t1 e=1 => accepted | wait 2s | get t1 => SUCCESS v4",
    );
    w.play("cancel t1 => closed SUCCESS | complete t1 e=1 => duplicate | beat t1 e=1 => fenced");
    w.store_away = false;
    w.play("wait 2s");
    w.store_away = true;
    w.play("get t1 => unavailable(StoreUnavailable)");
    w.store_away = false;
    w.play("get t1 => SUCCESS v4 | cancel t1 => closed SUCCESS | complete t1 e=1 => duplicate");
}

#[test]
pub fn replays_rest_on_what_is_owed_also_after_a_take_over() {
    let mut w = done();
    w.store_away = true;
    w.play("wait 1s | replay t1 => run 2 | plan t1 | poll w1 => t1 e=2 | complete t1 e=2 => accepted | wait 1s");
    w.play("replay t1 run=1 => refused: run 1 was named, the task's last run is 2 | replay t1 run=2 => run 3");
    w.play("plan t1 | poll w1 => t1 e=3 | complete t1 e=3 | crash | get t1 => SUCCESS v14 | replay t1 run=3 => run 4");
    w.store_away = false;
    w.play("plan t1 | poll w1 => t1 e=4 | complete t1 e=4 => accepted | wait 3s | replay t1 run=4 => run 5");
}

#[test]
pub fn one_closed_task_command_in_flight() {
    let mut w = done();
    w.play("wait 2s");
    w.hold_log = true;
    let first = w.step("replay t1").unwrap();
    let second = w.step("replay t1").unwrap();
    let review = w.step("review t1").unwrap();
    w.land();
    assert_eq!(w.heard(w.answer(first)), "run 2");
    assert_eq!(w.heard(w.answer(second)), "open RETRY_APPROVED");
    assert_eq!(w.heard(w.answer(review)), "open RETRY_APPROVED");
    assert_eq!(w.count("replay"), 1);
    // Both read the row before either is written.
    let mut w = done();
    w.play("wait 2s");
    w.hold_store = true;
    let first = w.step("replay t1").unwrap();
    let second = w.step("replay t1").unwrap();
    w.hold_log = true;
    w.release_call(|c| matches!(c, Effect::ReadRow(..)));
    w.release_call(|c| matches!(c, Effect::ReadRow(..)));
    w.hold_store = false;
    w.land();
    assert_eq!(w.heard(w.answer(first)), "run 2");
    assert_eq!((w.heard(w.answer(second)), w.count("replay")), ("open RETRY_APPROVED".into(), 1));
}

#[test]
pub fn reviews_count_and_replays_go_on_from_them() {
    let mut w = done();
    w.play("review t1 => reviewed | get t1 => SUCCESS v5 | review t1 => reviewed | wait 2s | get t1 => SUCCESS v6");
    let stands = "the decision ACCEPTED is on record, and another one takes its place only if it names it";
    w.play(&format!("review t1 abandoned= => refused: {stands} | review t1 abandoned= instead= => reviewed"));
    w.play("wait 2s | get t1 => SUCCESS v7 | replay t1 => run 2");
    w.play("crash | plan t1 | poll w1 => t1 e=2 | complete t1 e=2 => accepted | review t1 run=1 => refused: run 1 was named, the task's last run is 2");
    let mut w = done();
    w.store_away = true;
    w.play("review t1 => reviewed | crash | get t1 => SUCCESS v5 | replay t1 => run 2");
}

#[test]
pub fn open_tasks_are_neither_replayed_nor_reviewed() {
    let mut w = World::new();
    w.play("submit t1 | replay t1 => open CREATED | review t1 => open CREATED | get t1 => CREATED v1");
}

#[test]
pub fn no_row_is_404_while_it_may_be_and_410_after() {
    let mut w = World::new();
    w.play("submit t1");
    let ms = w.now.wall_ms - TASK_ID_EPOCH_MS;
    let day = 24 * 60 * 60 * 1000;
    for (ms, expected) in [(ms + day, "not found"), (ms - 29 * day, "not found"), (ms - 31 * day, "gone")] {
        let task = TaskId::from_parts(ms, P, 9).unwrap();
        let t = w.ask(Command::Get { task });
        assert_eq!(w.heard(w.answer(t)), expected);
        let ask = Replay {
            run_no: RunNo(1),
            replay_from: ReplayFrom::Start,
            from_step: None,
            actor: "me".into(),
            reason: "x".into(),
        };
        let t = w.ask(Command::Replay { task, ask });
        assert_eq!(w.heard(w.answer(t)), expected);
    }
    let other = TaskId::from_parts(ms, task_events::PartitionId(4), 9).unwrap();
    let t = w.ask(Command::Get { task: other });
    assert_eq!(w.heard(w.answer(t)), "not found");
}

#[test]
pub fn a_result_that_does_not_count_is_noted_once_per_execution() {
    let mut w = World::new();
    w.play(
        "submit t1 max=3 | poll w1 => t1 e=1 | start t1 e=1 | fail t1 e=1 | approve t1 | plan t1 | poll w2 => t1 e=2",
    );
    w.play("complete t1 e=1 => fenced | complete t1 e=1 => fenced | start t1 e=1 => fenced | step t1 e=1 a => fenced");
    assert_eq!(w.count("noted t1 e=1"), 1);
    w.play("complete t1 e=2 => accepted | complete t1 e=2 hash=another => fenced | crash | complete t1 e=1 => fenced | complete t1 e=2 hash=another => fenced");
    assert_eq!((w.count("noted t1 e=1"), w.count("noted t1 e=2")), (1, 1), "also by the next owner");
    assert_eq!(w.count("complete t1"), 1);
}

#[test]
pub fn an_owner_whose_successor_opened_the_task_again_does_not_call_it_unknown() {
    let mut w = done();
    w.play("wait 3s | get t1 => SUCCESS v4");
    w.me().frozen = true;
    w.join("b");
    w.settle();
    w.play("replay t1 => run 2 | wait 200ms");
    w.on = "a";
    w.me().frozen = false;
    w.hold_read = true;
    let t = w.step("get t1").unwrap();
    assert_eq!(w.heard(w.answer(t)), "unavailable(NotOwner)", "the row is of a run that it has not folded");
}

#[test]
pub fn a_note_that_died_is_written_again() {
    let mut w = done();
    w.hold_log = true;
    let t = w.step("fail t1 e=1").unwrap();
    w.unknown();
    w.land();
    assert_eq!((w.heard(w.answer(t)), w.count("noted t1")), ("fenced".into(), 1));
}

#[test]
pub fn a_row_read_during_a_claim_is_read_again() {
    let mut w = done();
    w.play("wait 2s");
    w.hold_store = true;
    let get = w.step("get t1").unwrap();
    let replay = w.step("replay t1").unwrap();
    w.hold_log = true;
    w.step("submit x");
    w.unknown();
    w.hold_store = false;
    w.settle();
    w.land();
    assert_eq!(w.heard(w.answer(replay)), "run 2");
    assert_ne!(w.heard(w.answer(get)), "nothing");
}

#[test]
pub fn ids_that_were_never_minted_fill_no_log() {
    let mut w = World::new();
    w.play("submit t1");
    let lines = w.lines.len();
    for n in 0..20 {
        let task = TaskId::from_parts(w.now.wall_ms - TASK_ID_EPOCH_MS + 1_000 + n, P, 1).unwrap();
        let t = w.ask(crate::kit::report(task, 1, 1, crate::kit::complete("x")));
        // Another owner may have minted it within the time of this one's proof.
        assert!(["fenced", "unavailable"].contains(&w.heard(w.answer(t)).as_str()));
    }
    assert_eq!(w.lines.len(), lines, "{}", w.tail(5));
}

#[test]
pub fn a_late_success_counts_until_the_next_attempt_is_out() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | wait 68s");
    assert_eq!(w.count("lost t1"), 1);
    w.play("fail t1 e=1 => fenced | approve t1 | complete t1 e=1 => accepted");
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | wait 68s | approve t1 | plan t1 | poll w2 => t1 e=2 | complete t1 e=1 => fenced");
}
