//! TaskOverdue (design.md §5): once per state and run, and a backlog is told as one.

use crate::kit::World;

#[test]
fn each_pen_that_is_waited_for_is_named_once() {
    let mut w = World::new();
    w.play("submit t1 | wait 29s");
    assert_eq!(w.count("overdue"), 0);
    w.play("wait 1s | wait 100s");
    assert_eq!(w.count("overdue t1 worker"), 1);
    w.play("poll w1 => t1 e=1 | start t1 e=1 | fail t1 e=1 | wait 31s");
    assert_eq!(w.count("overdue t1 task-engine"), 1);
    w.play("approve t1 backoff=1000 | wait 31s");
    assert_eq!(w.count("overdue t1 auto-replay"), 1);
    w.play("plan t1 | wait 31s | crash | wait 100s");
    assert_eq!(w.count("overdue t1 worker"), 2, "another state");
    assert_eq!(w.count("overdue"), 4);
}

#[test]
fn what_holds_a_task_back_from_every_worker_is_named() {
    let mut w = World::new();
    w.play("submit a one=k | submit b one=k | poll w1 => a e=1 | start a e=1");
    for _ in 0..4 {
        w.play("wait 10s | beat a e=1");
    }
    assert_eq!(w.count("overdue b concurrency_key"), 1);
    w.play("pause q | submit c | wait 10s | beat a e=1 | wait 10s | beat a e=1 | wait 11s");
    assert_eq!((w.count("overdue c paused_queue"), w.count("worker")), (1, 0));
}

#[test]
fn what_is_not_due_is_not_overdue() {
    let mut w = World::new();
    w.play("submit t1 not_before=100s | wait 129s");
    assert_eq!(w.count("overdue"), 0);
    w.play("wait 2s");
    assert_eq!(w.count("overdue"), 1);
}

#[test]
fn more_than_a_hundred_a_minute_are_one_alarm() {
    let mut w = World::new();
    for i in 0..150 {
        w.step(&format!("submit t{i}"));
    }
    w.play("wait 32s");
    assert_eq!((w.count("overdue"), w.count("backlog 150")), (100, 1));
    w.play("wait 120s");
    assert_eq!((w.count("overdue"), w.count("backlog")), (100, 1));
    for i in 0..150 {
        w.step(&format!("submit u{i}"));
    }
    w.play("wait 32s");
    assert_eq!((w.count("overdue"), w.count("backlog")), (200, 2), "another minute");
}
