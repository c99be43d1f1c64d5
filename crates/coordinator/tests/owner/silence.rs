//! design.md §4.6: nobody moves a partition that has work.

use crate::kit::World;

#[test]
fn somebody_silent_for_15_s_while_there_is_work_is_an_alarm() {
    let mut w = World::new();
    w.play("submit t1");
    w.foreign_claim();
    w.hold_log = true;
    w.wait(14_000);
    assert_eq!(w.alarms("owner_silent"), 0);
    w.wait(10_000);
    assert_eq!(w.alarms("owner_silent"), 1);
}

#[test]
fn an_owner_that_begins_has_not_been_listening_for_15_s() {
    let mut w = World::new();
    w.wait(20_000);
    w.play("submit t1 | crash | wait 3s");
    assert_eq!(w.alarms("owner_silent"), 0);
}

#[test]
fn tasks_that_only_wait_are_no_silence() {
    let mut w = World::new();
    w.play("submit t1 | wait 40s");
    let renewed = w.count("renew");
    w.wait(60_000);
    assert_eq!(w.alarms("owner_silent"), 0);
    assert!((10..=14).contains(&(w.count("renew") - renewed)), "every 5 s: {}", w.tail(20));
}
