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
