//! design.md §9: leases, releases, what the next attempt waits for.

use coordinator::owner::{Input, OwnerConfig};

use crate::kit::World;

// A lease lasts 6 s; the owner waits 6 × 1.1 + 2 = 8.6 s.
fn small() -> OwnerConfig {
    OwnerConfig { lease_ms: 6_000, lease_max_ms: 12_000, heartbeat_ms: 2_000, ..OwnerConfig::default() }
}

fn running() -> World {
    let mut w = World::with(small());
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 => accepted");
    w
}

#[test]
pub fn lost_is_silence_past_the_lease_and_the_margin_once() {
    let mut w = running();
    w.play("wait 8599ms");
    assert_eq!(w.count("lost"), 0);
    w.play("wait 1ms | wait 100s");
    assert_eq!(w.count("lost t1"), 1);
    w.play("beat t1 e=1 => fenced | complete t1 e=1 => accepted");
    assert_eq!(w.count("complete t1"), 1, "late, and not yet handed out again");
}

#[test]
pub fn every_answered_sign_of_life_renews_the_lease() {
    let mut w = running();
    w.play("wait 8s | beat t1 e=1 => accepted | wait 8s | step t1 e=1 a => accepted | wait 8s | start t1 e=1 => duplicate | wait 8599ms");
    assert_eq!(w.count("lost"), 0);
    w.play("wait 2ms");
    assert_eq!(w.count("lost"), 1);
}

#[test]
pub fn after_a_claim_leases_run_anew_with_the_largest_one() {
    let mut w = running();
    w.play("wait 8s | crash | wait 15199ms");
    assert_eq!(w.count("lost"), 0, "12 × 1.1 + 2 = 15.2 s from the read-back of the claim");
    w.play("wait 2ms");
    assert_eq!(w.count("lost"), 1);
}

#[test]
pub fn no_owner_grants_more_than_the_assignment_allows() {
    let mut w = running();
    w.cfg = OwnerConfig { lease_ms: 60_000, lease_max_ms: 120_000, heartbeat_ms: 10_000, ..small() };
    w.play("crash");
    let t = w.step("beat t1 e=1").unwrap();
    let answer = format!("{:?}", w.answer(t));
    assert!(answer.contains("lease_ms: 12000"), "a successor counts on 12 s at most: {answer}");
    w.cfg = small();
    w.play("crash | wait 15201ms");
    assert_eq!(w.count("lost"), 1);
}

#[test]
pub fn leases_are_kept_when_the_lock_server_was_away_or_is_another() {
    let mut w = running();
    w.play("wait 1s");
    w.lock_away = true;
    w.play("wait 5s");
    w.lock_away = false;
    w.play("wait 4s");
    assert_eq!(w.count("lost"), 0, "absence is not evidence: {}", w.tail(4));
    w.play("wait 10s | beat t1 e=1");
    let mut w = running();
    w.play("wait 5s");
    w.run_id = "redis-2".into();
    w.play("wait 6s");
    assert_eq!(w.count("lost"), 0, "another run of the lock server: leases start anew in full");
}

#[test]
pub fn a_key_that_is_no_lock_is_told_once_and_keeps_no_lease() {
    let mut w = running();
    w.lock_unusable = true;
    w.play("wait 8599ms");
    assert_eq!((w.count("lost"), w.alarms("lock_unusable"), w.alarms("lock_unavailable")), (0, 1, 0));
    assert!(w.me().locks.1 > 3, "it was renewed many times");
    w.play("wait 1ms");
    assert_eq!(w.count("lost"), 1, "the server is well: silence is silence");
}

#[test]
pub fn a_renewal_that_fails_says_that_the_lock_server_is_away() {
    let mut w = running();
    w.play("wait 1s");
    w.lock_away = true;
    w.play("wait 2s");
    assert_eq!(w.alarms("lock_unavailable"), 1);
    w.lock_away = false;
    w.play("wait 7s");
    assert_eq!(w.count("lost"), 0, "leases start anew in full when it is back: {}", w.tail(4));
}

#[test]
pub fn not_started_in_ten_seconds_comes_back_and_the_late_start_is_fenced() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | wait 9999ms");
    assert_eq!(w.count("release"), 0);
    w.play("wait 2ms | poll w2 => t1 e=2 | start t1 e=1 => fenced | start t1 e=2 => accepted");
    assert_eq!(
        w.history(),
        "create t1 | assign t1 w1 e=1 | release t1 e=1 NOT_STARTED | assign t1 w2 e=2 | start t1 e=2"
    );
}

#[test]
pub fn a_start_in_flight_is_not_overtaken_by_the_release() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | wait 9900ms");
    w.hold_log = true;
    let t = w.step("start t1 e=1").unwrap();
    w.wait(500);
    w.land();
    w.wait(1_000);
    assert_eq!(w.heard(w.answer(t)), "accepted");
    assert_eq!(w.count("release"), 0);
}

#[test]
pub fn undelivered_attempts_come_back_with_the_next_poll() {
    let mut w = World::new();
    w.play("submit t1 | submit t2 | poll w1 slots=2 => t1 e=1, t2 e=1 | start t2 e=1");
    w.play("poll w1 held=t1#1,t2#1 wait=0s => no work");
    assert_eq!(w.count("release"), 0, "listed");
    w.play("poll w2 wait=0s | wait 1s");
    assert_eq!(w.count("release"), 0, "another worker's poll says nothing");
    w.play("poll w1 inc=2 => t1 e=2");
    assert_eq!(w.count("release t1 e=1 NEVER_DELIVERED"), 1);
    assert_eq!(w.count("release t2"), 0, "its handler may have been entered");
    w.play("poll w1 inc=1 => superseded | complete t2 e=1 => accepted");
}

#[test]
pub fn a_hand_out_under_way_is_not_taken_for_undelivered() {
    let mut w = World::new();
    w.play("submit t1");
    w.hold_log = true;
    let first = w.step("poll w1").unwrap();
    let second = w.step("poll w1").unwrap();
    w.land();
    assert_eq!(w.heard(w.answer(first)), "t1 e=1");
    assert_eq!((w.count("release"), w.heard(w.answer(second))), (0, "nothing".into()));
}

#[test]
pub fn declined_and_drained_attempts_wait_again() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | decline t1 e=1 => accepted | poll w2 => t1 e=2 | decline t1 e=2 drain=1 => accepted");
    assert_eq!(w.count("release t1 e=1 DECLINED") + w.count("release t1 e=2 DRAIN"), 2);
    assert_eq!(w.fold.tasks.get(w.id("t1")).unwrap().core.retry_count, 0);
}

#[test]
pub fn five_releases_in_a_row_are_overdue_and_no_storm() {
    let mut w = World::new();
    w.play("submit t1");
    for e in 1..=4 {
        w.play(&format!("poll w{e} => t1 e={e} | decline t1 e={e} => accepted"));
    }
    assert_eq!(w.count("overdue"), 0);
    w.play("poll w5 => t1 e=5 | decline t1 e=5 => accepted | wait 100ms");
    assert_eq!(w.count("overdue t1 worker"), 1);
    w.play("wait 60s");
    assert_eq!(w.count("overdue t1"), 1, "once per state and run");
    // A worker that takes and never delivers.
    let from = w.lines.len();
    for _ in 0..500 {
        w.play("poll w9 wait=0s | wait 10ms");
    }
    assert!(w.lines.len() - from < 80, "{} records in 5 s of a broken worker", w.lines.len() - from);
}

#[test]
pub fn a_timeout_names_the_step_that_the_attempt_was_last_said_to_be_in() {
    let mut w = World::with(small());
    w.play(
        "submit t1 to_close=4s | poll w1 => t1 e=1 | start t1 e=1 | wait 3500ms \
         | beat t1 e=1 in=pay idem=false => accepted | wait 1s",
    );
    assert_eq!(w.count("timeout t1 START_TO_CLOSE in pay, once only"), 1, "the engine must know");
}

#[test]
pub fn a_timeout_does_not_name_a_step_that_is_on_record_as_done() {
    let mut w = World::with(small());
    w.play(
        "submit t1 to_close=4s | poll w1 => t1 e=1 | start t1 e=1 | wait 3s \
         | beat t1 e=1 in=pay idem=false => accepted | step t1 pay e=1 => accepted | wait 2s",
    );
    assert_eq!(w.count("timeout t1 START_TO_CLOSE"), 1);
    assert_eq!(w.count("timeout t1 START_TO_CLOSE in pay, once only"), 0, "its output is in the log");
}

#[test]
pub fn the_next_attempt_waits_for_what_is_left_of_the_lease() {
    let mut w = World::with(small());
    w.play(
        "submit t1 to_close=4s | poll w1 => t1 e=1 | start t1 e=1 | wait 3500ms | beat t1 e=1 => accepted | wait 1s",
    );
    assert_eq!(w.count("timeout t1 START_TO_CLOSE"), 1);
    w.play("approve t1 | plan t1");
    assert_eq!(w.count("retry t1"), 1);
    let p = w.step("poll w2 wait=20s").unwrap();
    w.wait(7_000);
    assert_eq!(w.heard(w.answer(p)), "nothing", "its worker may still be inside");
    w.wait(1_000);
    assert_eq!(w.heard(w.answer(p)), "t1 e=2");
}

#[test]
pub fn what_is_left_survives_a_take_over_and_a_replay() {
    let mut w = World::with(small());
    w.play("submit t1 to_close=4s | poll w1 => t1 e=1 | start t1 e=1 | wait 3500ms | beat t1 e=1 | wait 1s | approve t1 | plan t1 | crash");
    let p = w.step("poll w2 wait=20s").unwrap();
    w.wait(7_500);
    assert_eq!(w.heard(w.answer(p)), "nothing", "from the read-back of its own claim");
    w.wait(1_000);
    assert_eq!(w.heard(w.answer(p)), "t1 e=2");
    // Cancelled with a live attempt, then replayed: the grace is over, the lease is not.
    let mut w = World::with(OwnerConfig { cancel_grace_ms: 1_000, ..small() });
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | wait 1s | cancel t1 => cancel accepted | beat t1 e=1 => accepted, stop | wait 1100ms");
    assert_eq!(w.count("cancelled t1"), 1);
    w.play("replay t1 => run 2 | plan t1");
    let p = w.step("poll w2 wait=20s").unwrap();
    w.wait(7_000);
    assert_eq!(w.heard(w.answer(p)), "nothing");
    w.wait(1_000);
    assert_eq!(w.heard(w.answer(p)), "t1 e=2");
}

#[test]
pub fn grace_is_not_prolonged_by_a_worker_that_goes_on() {
    let mut w = World::with(OwnerConfig { cancel_grace_ms: 5_000, ..small() });
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | cancel t1 => cancel accepted");
    for i in 0..10 {
        w.play(&format!("wait 1s | step t1 e=1 s{i} i={i}"));
    }
    assert_eq!(w.count("cancelled t1"), 1, "{}", w.tail(12));
}

#[test]
pub fn a_heartbeat_waits_for_a_closing_record_that_dies() {
    let mut w = running();
    w.hold_log = true;
    // The renewals are held too, so let them land one by one while the lease runs out.
    for _ in 0..9 {
        w.wait(950);
        w.hold_read = false;
        while w.me().sent.front().is_some_and(|s| s.records[0].key.starts_with(b"#")) {
            w.land_one("a");
        }
        w.read_on("a");
    }
    w.wait(100);
    let lost = w.me().sent.iter().position(|s| !s.records[0].key.starts_with(b"#"));
    assert!(lost.is_some(), "a TaskLost is under way");
    let t = w.step("beat t1 e=1").unwrap();
    assert_eq!(w.heard(w.answer(t)), "nothing", "what is read back decides");
    let at = lost.unwrap();
    let dead = w.me().sent.remove(at).unwrap();
    w.feed("a", Input::Appended(dead.ticket, event_log::AppendOutcome::Unknown("?".into())));
    w.land();
    assert_eq!(w.heard(w.answer(t)), "accepted", "it never landed: the attempt lives");
    w.land_copy(&dead);
    w.settle();
    assert_eq!(w.count("lost t1 e=1 => rejected(stale_epoch)"), 1);
    w.play("beat t1 e=1 => accepted");
}

#[test]
pub fn a_poll_names_what_must_stop() {
    let mut w = World::with(small());
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | wait 9s");
    assert_eq!(w.count("lost t1"), 1);
    w.play("poll w1 held=t1#1 => stop t1 e=1");
    w.play("submit t2 | poll w2 => t2 e=1 | start t2 e=1 | cancel t2 | poll w2 held=t2#1 => stop t2 e=1");
}

#[test]
pub fn thousands_that_fall_silent_are_each_lost_once() {
    let mut w = World::with(OwnerConfig { max_in_flight: 100, ..small() });
    let mut held = String::new();
    for i in 0..300 {
        w.play(&format!("submit t{i}"));
    }
    for i in 0..300 {
        let h = if held.is_empty() { String::new() } else { format!(" held={held}") };
        w.play(&format!("poll w1{h} wait=0s | start t{i} e=1 => accepted"));
        held = format!("{held}{}t{i}#1", if held.is_empty() { "" } else { "," });
    }
    w.play("wait 30s");
    assert_eq!((w.count("lost"), w.count("release")), (300, 0));
    assert!(w.fold.tasks.iter().all(|s| !s.core.state.is_live()));
}

#[test]
pub fn an_optimistic_start_is_left_to_its_lease() {
    let mut w = World::with(OwnerConfig { optimistic_start: true, ..small() });
    w.play("submit t1 | poll w1 => t1 e=1 | poll w1 inc=2 wait=0s => no work | wait 8s");
    assert_eq!(w.count("release"), 0, "its handler may have been entered at once");
    w.play("wait 1s");
    assert_eq!(w.count("lost t1"), 1);
}
