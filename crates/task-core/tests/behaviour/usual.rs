//! A task's life when all goes as it should, and the first things that do not.

use crate::kit::play;

#[test]
fn an_attempt_fails_and_the_next_one_completes() {
    play(
        "claim | submit t1 max=2 | assign t1 w1 e=1 => ASSIGNED | start t1 e=1 => EXECUTING | step t1 hash e=1
          fail t1 e=1 => FAILED | approve t1 => RETRY_APPROVED | plan t1 => REPLAY_PLANNED | retry t1 => RETRYING
          assign t1 w2 e=2 | complete t1 e=1 => rejected(wrong_attempt) | complete t1 e=2 => SUCCESS",
    );
}

#[test]
fn what_the_search_prints_plays_by_paste() {
    play("claim | submit t1 max=1 key=K | assign t1 e=1 | claim by=2 | start t1 e=1 p=1.3 => rejected(stale_epoch)
          lose t1 e=1 | approve t1 | complete t1 e=1 | replay t1 c=SUCCESS/1/4/1/1 => rejected(carried_state) | reject t1 e=1");
}

#[test]
fn what_the_simulator_prints_plays_by_paste() {
    let w = play(
        "claim p=3.0 by=coordinator-2  @118
         | submit t402371327584923648 s=1 r=1 p=3.12 by=coordinator-2  @131
         | assign t402371327584923648 s=2 r=1 e=1 p=3.13 by=coordinator-2  @132
         | claim p=4.0 by=coordinator-1  @140
         | start t402371327584923648 s=3 r=1 e=1 p=3.14 by=coordinator-2 => rejected(stale_epoch)  @141
         | start t402371327584923648 s=3 r=1 e=1 p=4.1 by=coordinator-1 => quarantined(crc_mismatch)  @142
         | start t402371327584923648 s=3 r=1 e=1 p=4.2 by=coordinator-1  @143",
    );
    assert_eq!(w.core(1).state, task_events::TaskState::Executing);
}
