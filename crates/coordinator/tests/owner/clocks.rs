//! design.md §4.11: broker time, and clocks that disagree.

use coordinator::owner::OwnerConfig;

use crate::kit::World;

#[test]
fn a_stepped_wall_clock_stops_creates_is_told_once_and_settles_also_when_idle() {
    let mut w = World::new();
    w.play("submit t1 => created t1 | wait 3s");
    w.now.wall_ms += 3_600_000;
    w.skew_ms -= 3_600_000;
    w.play("submit t2 => unavailable(ClockUnsettled) | poll w1 => t1 e=1 | start t1 e=1 => accepted | wait 20s");
    assert_eq!(w.alarms("clock_unsettled"), 1, "not once per record");
    assert_eq!(w.count("lost"), 0);
    w.play("submit t2 => unavailable(ClockUnsettled) | complete t1 e=1 => accepted | wait 5s");
    w.now.wall_ms -= 3_600_000;
    w.skew_ms += 3_600_000;
    w.play("submit t2 => unavailable(ClockUnsettled) | wait 100ms | submit t2 => created t2");
    w.now.wall_ms += 3_600_000;
    w.skew_ms -= 3_600_000;
    w.play("wait 1s");
    assert_eq!(w.alarms("clock_unsettled"), 2);
}

#[test]
fn timers_are_never_early_by_the_brokers_clock() {
    // The wall clock is an hour ahead of the broker, from the start.
    let mut w = World::bare(OwnerConfig::default());
    w.skew_ms = 0;
    w.join("a");
    w.settle();
    w.play("submit t1 not_before=100s | submit t2 deadline=100s | submit t3 to_start=100s");
    w.now.wall_ms += 3_600_000;
    w.skew_ms -= 3_600_000;
    w.play("crash");
    let p = w.step("poll w1 wait=1s queue=q").unwrap();
    assert_eq!(w.heard(w.answer(p)), "t2 e=1");
    w.play("start t2 e=1 | poll w2 => t3 e=1 | start t3 e=1");
    assert_eq!(w.count("assign t1"), 0, "not before 100 s of the broker's time");
    w.play("wait 50s | beat t2 e=1 | beat t3 e=1 | wait 49s | beat t2 e=1 | poll w3 wait=0s => no work");
    assert_eq!(w.count("timeout") + w.count("assign t1"), 0, "{}", w.tail(5));
    w.play("wait 2s | poll w4 => t1 e=1");
    assert_eq!(w.count("timeout t2 DEADLINE"), 1);
}

#[test]
fn a_broker_that_is_a_little_behind_makes_timers_late_not_early() {
    let mut w = World::bare(OwnerConfig::default());
    w.skew_ms = -4_000;
    w.join("a");
    w.settle();
    w.play("submit t1 not_before=10s deadline=20s | wait 9999ms | poll w1 wait=0s => no work | wait 20ms | poll w1 => t1 e=1 | start t1 e=1 | wait 9s");
    assert_eq!(w.count("timeout"), 0);
    w.play("wait 1100ms");
    assert_eq!(w.count("timeout t1 DEADLINE"), 1);
    assert_eq!(w.alarms("clock_unsettled"), 0);
}

#[test]
fn a_worker_whose_clock_is_wrong_ends_no_attempt() {
    use worker_protocol::ReportBody;
    let mut w = World::new();
    w.play("submit t1 to_close=100s | poll w1 => t1 e=1");
    let id = w.id("t1");
    let body = ReportBody::Starting { start_time: i64::MIN, memory_usage_percent: 1 };
    let t = w.ask(crate::kit::report(id, 1, 1, body));
    assert_eq!(w.heard(w.answer(t)), "accepted");
    for _ in 0..9 {
        w.play("wait 10s | beat t1 e=1 => accepted");
    }
    assert_eq!(w.count("timeout"), 0, "90 s of 100");
    w.play("wait 10s | wait 1s");
    assert_eq!(w.count("timeout t1 START_TO_CLOSE"), 1);
}

#[test]
fn far_times_overflow_nothing() {
    let mut w = World::new();
    for (name, deadline, not_before) in
        [("a", Some(i64::MAX), Some(i64::MIN)), ("b", Some(i64::MIN), Some(i64::MAX)), ("c", None, Some(-1))]
    {
        let mut new = crate::kit::task(name);
        new.task.created.deadline = deadline;
        new.task.created.not_before = not_before;
        new.task.created.timeouts.start_to_close_ms = i64::MAX as u64;
        new.task.created.timeouts.schedule_to_start_ms = Some(i64::MAX as u64);
        w.ask(coordinator::owner::Command::Create(Box::new(new)));
    }
    w.play("wait 1s | poll w1 slots=9 | wait 1s | crash | wait 1s");
    assert_eq!(w.count("timeout b DEADLINE"), 1);
    assert_eq!(w.count("assign b"), 0);
    let mut poll = crate::kit::poll("w9");
    poll.wait_ms = u64::MAX;
    w.ask(coordinator::owner::Command::Poll(poll));
    w.play("wait 1s");
}
