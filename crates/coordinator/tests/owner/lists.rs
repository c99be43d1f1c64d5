//! Lists as one owner shows them: open tasks and owed closed ones, in order, bounded; queues; verdicts.

use coordinator::owner::{ACCEPTED, Answer, Command, Look, Looked, reason_of};
use task_core::Reason;
use task_events::Offset;

use crate::kit::World;

#[test]
fn open_and_owed_tasks_are_listed_once_in_order_and_page_by_page() {
    let mut w = World::new();
    w.play("submit t1 | submit t2 | submit t3 | list x => [t1 t2 t3] of 3 | list x limit=2 => [t1 t2] of 2, more behind t2");
    w.play("list x behind=t2 => [t3] of 1 | list x look=1 => [t1] of 1, more behind t1");
    w.play("poll w1 => t1 e=1 | start t1 e=1 | complete t1 e=1 => accepted");
    w.play("list x => [t1 t2 t3] of 3 | list x state=SUCCESS => [t1] of 3 | list x state=CREATED => [t2 t3] of 3");
    w.play("stands t1 => [t1] of 1 | list review => [] of 1");
}

#[test]
fn what_the_store_has_leaves_the_memory_and_a_replay_comes_back() {
    let mut w = World::new();
    w.play("submit t1 | submit t2 | poll w1 => t1 e=1 | start t1 e=1 | complete t1 e=1 => accepted | wait 2s");
    w.play("list x => [t2] of 1 | stands t1 => [] of 0");
    w.play("replay t1 | list x => [t1 t2] of 2 | list x state=SUCCESS => [] of 2 | stands t1 => [t1] of 1");
}

fn looked(w: &mut World, look: Look) -> Looked {
    let token = w.ask(Command::Look(look));
    match w.answer(token).cloned() {
        Some(Answer::Looked(looked)) => *looked,
        other => panic!("{other:?}"),
    }
}

fn queues(w: &mut World) -> Vec<(String, bool, u64, u64, u64)> {
    let Looked::Queues(queues) = looked(w, Look::Queues) else { panic!("no queues") };
    queues.into_iter().map(|q| (q.queue.to_string(), q.paused, q.ready, q.running, q.open)).collect()
}

#[test]
fn queues_are_told_with_what_waits_and_runs_in_them() {
    let mut w = World::new();
    w.play("submit t1 | submit t2 queue=other | pause q => changed | poll w1 wait=0s => no work");
    assert_eq!(queues(&mut w), [("other".into(), false, 1, 0, 1), ("q".into(), true, 1, 0, 1)]);
    w.play("resume q => changed | poll w1 => t1 e=1");
    assert_eq!(queues(&mut w), [("other".into(), false, 1, 0, 1), ("q".into(), false, 0, 1, 1)]);
    let Looked::Attempts { all, attempts } = looked(&mut w, Look::Worker("w1".into())) else { panic!("no attempts") };
    assert_eq!((all, attempts.len(), attempts[0].queue.as_str()), (1, 1, "q"));
    assert_eq!(looked(&mut w, Look::Workers), Looked::Workers(vec![("w1".into(), 1)]));
    w.play("start t1 e=1 | complete t1 e=1 => accepted");
    assert_eq!(queues(&mut w), [("other".into(), false, 1, 0, 1), ("q".into(), false, 0, 0, 0)]);
    let token = w.ask(Command::Release { worker: "w1".into(), actor: "me".into(), reason: "why not".into() });
    assert_eq!(w.answer(token), Some(&Answer::WorkerReleased));
}

#[test]
fn verdicts_are_told_as_the_fold_found_them() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | start t1 e=1 | complete t1 e=1 => accepted");
    let told = |w: &mut World, from, limit| {
        let Looked::Verdicts { remembered, verdicts } = looked(w, Look::Verdicts { from: Offset(from), limit }) else {
            panic!("no verdicts")
        };
        (remembered, verdicts)
    };
    let (remembered, all) = told(&mut w, 0, 1_000);
    assert_eq!(remembered, Offset(0));
    assert!(all.len() >= 5 && all.iter().all(|byte| *byte == ACCEPTED && reason_of(*byte) != Some(Reason::StaleEpoch)));
    assert_eq!(told(&mut w, 2, 2).1, all[2..4]);
    assert!(told(&mut w, all.len() as u64, 9).1.is_empty());
}
