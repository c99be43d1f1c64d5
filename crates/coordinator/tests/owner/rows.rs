//! design.md §4.9, §7: owed rows.

use coordinator::owner::{Effect, OwnerConfig};
use snapshot_store::SnapshotStore as _;
use task_core::MAX_HISTORY;
use task_core::decide::Draft;
use task_events::Offset;

use crate::kit::World;

fn rows_equal_fold(w: &World) {
    for row in w.store.rows() {
        if let Some(slot) = w.fold.tasks.get(row.core.id) {
            assert_eq!((row.core, Some(&row.row)), (slot.core, slot.row.as_ref()), "invariant 16");
        }
    }
    let open = w.store.rows().iter().filter(|r| !r.core.state.is_terminal()).count();
    assert_eq!(open, w.fold.tasks.len());
}

#[test]
pub fn a_short_task_costs_one_row() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | wait 400ms | step t1 e=1 a | complete t1 e=1 | wait 5s");
    assert_eq!(w.writes, ["row t1 SUCCESS"]);
}

#[test]
pub fn rows_are_a_second_behind_at_most_and_less_where_the_pen_changes_hands() {
    let mut w = World::new();
    w.play("submit t1 | wait 999ms");
    assert_eq!(w.writes.len(), 0);
    w.play("wait 2ms");
    assert_eq!(w.writes, ["row t1 CREATED"]);
    w.play("poll w1 | start t1 e=1 | fail t1 e=1 | wait 101ms");
    assert_eq!(w.writes[1..], ["row t1 FAILED"]);
    w.play("approve t1 | wait 101ms | plan t1 | wait 101ms | wait 2s");
    assert_eq!(w.writes[2], "row t1 RETRY_APPROVED");
    rows_equal_fold(&w);
}

#[test]
pub fn what_changes_while_it_is_written_is_written_again() {
    let mut w = World::new();
    w.play("submit t1");
    w.hold_store = true;
    w.play("wait 1s | poll w1 => t1 e=1");
    w.release_call(|c| matches!(c, Effect::WriteRows(..)));
    assert_eq!(w.owner().fold().tasks.len(), 1);
    w.hold_store = false;
    w.play("wait 1001ms");
    rows_equal_fold(&w);
    assert_eq!(w.acked(), Offset(w.members["a"].put_acked.last().unwrap().0));
}

#[test]
pub fn a_successor_writes_again_only_what_was_not_acknowledged() {
    let mut w = World::new();
    w.play("submit t1 | submit t2 key=k | wait 3s");
    assert!(w.acked() >= Offset(3), "{:?}", w.acked());
    w.store_away = true;
    w.play("submit t3 | poll w1 => t1 e=1");
    let written = w.writes.len();
    w.store_away = false;
    w.play("crash | wait 3s");
    let again: Vec<_> = w.writes[written..].iter().filter(|l| !l.contains("t1")).collect();
    assert_eq!(again, ["row t3 CREATED"], "t2 and its key were acknowledged");
    rows_equal_fold(&w);
}

#[test]
pub fn acked_never_passes_a_row_that_is_owed() {
    let mut w = World::new();
    w.play("submit t1 | wait 2s");
    let acked = w.acked();
    w.store_away = true;
    w.play("submit t2 | poll w1 => t1 e=1 | wait 20s");
    assert!(w.acked() <= Offset(acked.0.max(2)), "{:?}", w.acked());
    assert!(w.ticks < 2_000, "{} ticks in 25 s with the store away", w.ticks);
    w.store_away = false;
    w.play("wait 3s");
    assert!(w.acked().0 + 3 > w.fold.next_offset.0, "{:?} of {:?}", w.acked(), w.fold.next_offset);
    rows_equal_fold(&w);
}

#[test]
pub fn a_slow_store_makes_no_busy_loop() {
    let mut w = World::new();
    w.hold_store = true;
    for i in 0..700 {
        w.step(&format!("submit t{i}"));
    }
    w.play("wait 10s");
    assert!(w.ticks < 400, "{} ticks in 10 s of a store that does not answer", w.ticks);
    w.hold_store = false;
    w.play("wait 3s");
    rows_equal_fold(&w);
}

#[test]
pub fn every_record_with_the_key_is_in_the_history_also_after_the_close_and_beyond_the_row() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | submit t2");
    let (id, epoch) = (w.id("t1"), w.fold.epoch.0);
    let stray = |w: &World| {
        let slot = w.fold.tasks.get(w.id("t2")).unwrap();
        let view = task_core::decide::View { core: &slot.core, row: slot.row.as_deref().unwrap() };
        let draft = task_core::decide::cancel_request(view, "x".into(), "x".into()).unwrap();
        Draft { task_id: Some(id), ..draft }
    };
    for _ in 0..MAX_HISTORY {
        let draft = stray(&w);
        w.forge(draft, epoch + 7, 1);
    }
    w.play("complete t1 e=1 => accepted | wait 2s");
    let draft = stray(&w);
    w.forge(draft, epoch + 7, 1);
    w.play("wait 2s");
    let row = w.store.rows().into_iter().find(|r| r.core.id == id).unwrap();
    let mut offsets: Vec<u64> = row.row.history.entries().iter().map(|e| e.offset.0).collect();
    offsets.extend(w.store.overflow(id).iter().map(|e| e.offset.0));
    offsets.sort_unstable();
    let expected: Vec<u64> = (0..w.log.len())
        .filter(|i| w.log[*i].key.as_deref() == Some(id.to_string().as_bytes()))
        .map(|i| i as u64)
        .collect();
    assert_eq!(offsets, expected);
}

#[test]
pub fn rows_never_go_back_when_a_zombie_writes() {
    let mut w = World::new();
    w.play("submit t1");
    w.hold_store = true;
    w.play("wait 1s");
    w.me().frozen = true;
    w.join("b");
    w.settle();
    w.hold_store = false;
    w.on = "b";
    w.me().frozen = false;
    w.play(
        "poll w1 => t1 e=1 | start t1 e=1 => accepted | complete t1 e=1 => accepted | wait 3s | get t1 => SUCCESS v4",
    );
    w.on = "a";
    w.me().frozen = false;
    w.settle();
    w.play("wait 5s");
    w.on = "b";
    let row = futures::FutureExt::now_or_never(w.store.snapshots(vec![w.id("t1")])).unwrap().unwrap();
    assert_eq!(row[0].as_ref().unwrap().core.state.as_str(), "SUCCESS");
}

#[test]
pub fn a_replayed_task_is_owed_as_open_and_closed_again() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | complete t1 e=1");
    w.hold_store = true;
    w.play("wait 1s | replay t1 => run 2");
    w.hold_store = false;
    w.play("wait 2s");
    rows_equal_fold(&w);
    w.play("plan t1 | poll w1 => t1 e=2 | complete t1 e=2 => accepted | wait 2s | get t1 => SUCCESS v8");
    assert_eq!(w.writes.last().unwrap(), "row t1 SUCCESS");
}

#[test]
pub fn rows_of_many_are_acknowledged_in_any_order() {
    let mut w = World::with(OwnerConfig { row_lag_ms: 10, ..OwnerConfig::default() });
    w.hold_store = true;
    for i in 0..300 {
        w.step(&format!("submit t{i}"));
        if i % 100 == 99 {
            w.wait(20);
        }
    }
    w.me().calls.rotate_left(1);
    w.hold_store = false;
    w.play("wait 2s");
    rows_equal_fold(&w);
    assert!(w.acked().0 > 300);
}
