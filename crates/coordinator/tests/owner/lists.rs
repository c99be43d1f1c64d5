//! Lists as one owner shows them: open tasks and owed closed ones, in order, bounded; queues; verdicts.

use std::collections::BTreeMap;

use coordinator::owner::{ACCEPTED, Answer, Command, ListAsk, Look, Looked, TaskFilter, reason_of};
use snapshot_store::TaskSummary;
use task_core::Reason;
use task_events::{Offset, TaskId};

use crate::kit::World;

#[test]
fn open_and_owed_tasks_are_listed_once_in_order_and_page_by_page() {
    let mut w = World::new();
    w.play("submit t1 | submit t2 | submit t3 | list x => [t1 t2 t3] of 3 | list x limit=2 => [t1 t2] of 2, more behind t2");
    w.play("list x behind=t2 => [t3] of 1 | list x look=1 => [t1] of 1, more behind t1");
    w.play("poll w1 => t1 e=1 | start t1 e=1 | complete t1 e=1 => accepted");
    w.play("list x => [t1 t2 t3] of 3 | list x state=SUCCESS => [t1] of 1 | list x state=CREATED => [t2 t3] of 3");
    w.play("stands t1 => [t1] of 1 | list review => [] of 1");
}

#[test]
fn what_the_store_has_leaves_the_memory_and_a_replay_comes_back() {
    let mut w = World::new();
    w.play("submit t1 | submit t2 | poll w1 => t1 e=1 | start t1 e=1 | complete t1 e=1 => accepted | wait 2s");
    w.play("list x => [t2] of 1 | stands t1 => [] of 0");
    w.play("replay t1 | list x => [t1 t2] of 2 | list x state=SUCCESS => [] of 0 | stands t1 => [t1] of 1");
}

fn looked(w: &mut World, look: Look) -> Looked {
    let token = w.ask(Command::Look(look));
    match w.answer(token).cloned() {
        Some(Answer::Looked(looked)) => *looked,
        other => panic!("{other:?}"),
    }
}

fn listed(w: &mut World, filter: &TaskFilter, oldest_first: bool) -> (Vec<TaskSummary>, Option<TaskId>) {
    let (filter, low) = (filter.clone(), TaskId::ZERO);
    let high = TaskId::from_raw(i64::MAX).expect("an id");
    let ask = ListAsk { review: false, filter, low, high, oldest_first, limit: 1_000, look: 1_000 };
    match looked(w, Look::List(Box::new(ask))) {
        Looked::Tasks { tasks, looked_to: None, settled_to, .. } => (tasks, settled_to),
        Looked::Tasks { .. }
        | Looked::Queues(_)
        | Looked::Workers(_)
        | Looked::Rules(_)
        | Looked::Facts(_)
        | Looked::Attempts { .. }
        | Looked::Verdicts { .. } => {
            panic!("no whole list")
        }
    }
}

// Filters that ask for one thing that some of the tasks have, or for two.
fn filters_of(tasks: &[TaskSummary]) -> Vec<TaskFilter> {
    let mut one = vec![TaskFilter { queue: Some("nobody's".into()), ..TaskFilter::default() }];
    for task in tasks {
        let none = TaskFilter::default;
        one.push(TaskFilter { states: vec![task.state], ..none() });
        one.push(TaskFilter { task_type: Some(task.task_type.clone()), ..none() });
        one.push(TaskFilter { queue: Some(task.queue.clone()), ..none() });
        one.push(TaskFilter { creator: Some(task.creator.clone()), ..none() });
        one.extend(
            Some(&task.worker_id)
                .filter(|worker| !worker.is_empty())
                .map(|worker| TaskFilter { worker: Some(worker.clone()), ..none() }),
        );
        one.extend(task.error_code.iter().map(|code| TaskFilter { code: Some(code.clone()), ..none() }));
        let label = |(name, value): (&_, &_)| BTreeMap::from([(Clone::clone(name), Clone::clone(value))]);
        one.extend(task.labels.iter().map(|pair| TaskFilter { labels: label(pair), ..none() }));
    }
    let with = |one: &TaskFilter, other: &TaskFilter| TaskFilter {
        queue: other.queue.clone().or_else(|| one.queue.clone()),
        states: if other.states.is_empty() { one.states.clone() } else { other.states.clone() },
        ..one.clone()
    };
    let two: Vec<_> = one.iter().flat_map(|first| one.iter().map(move |second| with(first, second))).collect();
    one.into_iter().chain(two).collect()
}

#[test]
fn whatever_becomes_of_tasks_a_filter_finds_those_that_it_takes() {
    let mut w = World::new();
    for steps in [
        "submit t1 | submit t2 type=q label=n:1 | submit t3 queue=other creator=me label=n:2 | submit t4 label=n:1",
        "poll w1 => t1 e=1 | start t1 e=1 | fail t1 e=1 => accepted",
        "poll w2 => t2 e=1 | start t2 e=1 | approve t1 | plan t1",
        "poll w2 => t1 e=2 | start t1 e=2",
        "poll w1 => t4 e=1 | decline t4 e=1 => accepted",
        "complete t1 e=2 => accepted | cancel t3",
        "wait 2s | replay t1 | crash | wait 20s",
    ] {
        w.play(steps);
        let (all, _) = listed(&mut w, &TaskFilter::default(), false);
        assert!(!all.is_empty(), "after {steps}");
        for filter in filters_of(&all) {
            let mut expected: Vec<_> = all.iter().filter(|task| filter.takes(task)).map(|task| task.id).collect();
            for oldest_first in [false, true] {
                let (found, _) = listed(&mut w, &filter, oldest_first);
                let found: Vec<_> = found.iter().map(|task| task.id).collect();
                assert_eq!(found, expected, "{filter:?} after {steps}");
                expected.reverse();
            }
        }
    }
}

#[test]
fn a_list_from_the_oldest_says_up_to_where_nothing_more_turns_up() {
    let mut w = World::new();
    w.play("submit t1 => created t1");
    let settled = |w: &mut World| listed(w, &TaskFilter::default(), true).1.expect("it begins with the oldest");
    assert!(settled(&mut w) >= w.id("t1"));
    // One that waits for its payload, and one on its way to the log behind it.
    w.hold_store = true;
    w.play("submit t2 payload=x => nothing | wait 1s");
    let held = settled(&mut w);
    (w.hold_store, w.hold_log) = (false, true);
    w.settle();
    w.play("submit t3 => nothing");
    let flying = settled(&mut w);
    w.land();
    assert!(held >= w.id("t1") && held < w.id("t2") && flying < w.id("t2"), "{held} {flying} {}", w.id("t2"));
    assert!(settled(&mut w) >= w.id("t3"));
    assert_eq!(listed(&mut w, &TaskFilter::default(), false).1, None);
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
