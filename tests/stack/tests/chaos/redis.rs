//! The lock server forgets everything, stands still, dies, loses answers. Locks show who runs what, and
//! the log fences: nothing stops, nothing runs twice (faults.md rows 31, 33; case 10 from the field).

use std::collections::BTreeSet;

use event_log::fault_proxy::Fault;
use stack_tests::{Drill, Engine, Way, until};
use task_events::{Kind, TaskId, TaskState};

use crate::{PARTITIONS, tell};

const AWAY: &str = "lock_unavailable";

/// Handlers that run while the server forgets, and how long: some renewals, at a third of the lock's life.
const RUNNING: u64 = 60;
const RUN_MS: u64 = 8_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_redis_tasks_flow_and_none_runs_twice() {
    let mut drill = Drill::without_workers(PARTITIONS, Way::Proxied, &[]).await;
    for id in ["worker-1", "worker-2"] {
        let plan = stack_tests::WorkerPlan { slots: 64, ..drill.worker(id) };
        drill.workers.push(plan.start());
    }
    flushed(&mut drill).await;
    paused(&mut drill).await;
    killed(&mut drill).await;
    answers_lost(&mut drill).await;
    drill.end().await;
}

fn locks(drill: &Drill) -> BTreeSet<TaskId> {
    let keys = drill.stack.redis(&["--scan", "--pattern", "task:*:assignee"]);
    keys.lines().filter_map(|key| key.split(':').nth(1)?.parse().ok()).collect()
}

async fn flushed(drill: &mut Drill) {
    let running = drill.create_long(RUNNING, RUN_MS).await;
    drill.all_in(&running, TaskState::Executing).await;
    assert!(running.is_subset(&locks(drill)), "each has its lock");
    let before = drill.sum("lock_lost_total", None).await;
    drill.stack.redis(&["FLUSHALL"]);
    until("locks are seen to be lost", || async { (drill.sum("lock_lost_total", None).await > before).then_some(()) })
        .await;
    until("they are there again", || async { running.is_subset(&locks(drill)).then_some(()) }).await;
    let load = drill.load();
    let took = drill.finish(load).await;
    let assigned = drill.journal.by_attempt(Kind::TaskAssigned);
    let again: Vec<_> = assigned.keys().filter(|(task, epoch)| running.contains(task) && *epoch > 1).collect();
    assert!(again.is_empty(), "handed out a second time: {again:?}");
    tell("Redis flushed", drill, took);
}

async fn paused(drill: &mut Drill) {
    let load = drill.load();
    drill.answered(20).await;
    let before = drill.alarms(AWAY).await;
    drill.stack.redis(&["CLIENT", "PAUSE", "4000", "ALL"]);
    drill.felt(AWAY, before).await;
    drill.answered(20).await;
    back(drill).await;
    let took = drill.finish(load).await;
    tell("Redis paused", drill, took);
}

async fn killed(drill: &mut Drill) {
    let load = drill.load();
    drill.answered(20).await;
    let before = drill.alarms(AWAY).await;
    drill.stack.kill(Engine::Redis).await;
    drill.felt(AWAY, before).await;
    // Created, handed out, ended: without any lock.
    drill.more_completed(30).await;
    let stack = drill.stack;
    tokio::task::spawn_blocking(move || stack.restart(Engine::Redis)).await.expect("it is back");
    back(drill).await;
    let took = drill.finish(load).await;
    tell("Redis killed", drill, took);
}

async fn answers_lost(drill: &mut Drill) {
    let load = drill.load();
    drill.answered(20).await;
    let before = drill.alarms(AWAY).await;
    let proxy = drill.stack.proxy(Engine::Redis);
    let swallowed = proxy.swallowed();
    proxy.set(Fault::DropResponses);
    drill.felt(AWAY, before).await;
    drill.answered(20).await;
    assert!(proxy.swallowed() > swallowed, "nothing was lost");
    proxy.set(Fault::None);
    back(drill).await;
    let took = drill.finish(load).await;
    tell("answers of Redis lost", drill, took);
}

async fn back(drill: &Drill) {
    let label = format!("alarm=\"{AWAY}\"");
    until("the alarm is over", || async { (drill.sum("alarm_active", Some(&label)).await == 0).then_some(()) }).await;
}
