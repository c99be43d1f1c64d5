//! Workers die and stand still (faults.md rows 13 to 15; cases 2, 3 and 6 from the field).

use std::collections::BTreeSet;

use service_kit::{Clock as _, SystemClock};
use stack_tests::{Drill, LEASE_MS, Way, lines, until};
use task_events::{Kind, TaskId, TaskState};

use crate::{PARTITIONS, tell};

/// Attempts that die at once. The case's 5,000 run against one process (crates/dualtrack/tests/cases);
/// here they are as many as two worker processes start in a while.
const STARTED: u64 = 300;

/// Tasks whose handlers write lines until they are stopped.
const WRITING: u64 = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_die_and_stand_still_and_each_death_is_processed_once() {
    let mut drill = Drill::without_workers(PARTITIONS, Way::Direct, &[]).await;
    all_die(&mut drill).await;
    one_stands_still(&mut drill).await;
    drill.end().await;
}

// Thousands that run for months: not one stays assigned, and each death is one loss and one retry, by
// whichever coordinator.
async fn all_die(drill: &mut Drill) {
    for id in ["doomed-1", "doomed-2"] {
        let plan = stack_tests::WorkerPlan { slots: STARTED as u32 / 2, ..drill.worker(id) };
        drill.workers.push(plan.start());
    }
    let tasks = drill.create_long(STARTED, 3_600_000).await;
    drill.all_in(&tasks, TaskState::Executing).await;
    for worker in drill.workers.drain(..) {
        worker.kill().expect("it dies");
    }
    all_wait_for_a_worker(drill, &tasks).await;
    let (lost, approved) =
        (drill.journal.by_attempt(Kind::TaskLost), drill.journal.by_attempt(Kind::TaskRetryApproved));
    assert_eq!(lost.keys().map(|(task, _)| *task).collect::<BTreeSet<_>>(), tasks);
    assert!(lost.iter().all(|((_, epoch), times)| (*epoch, *times) == (1, 1)), "{lost:?}");
    // Nobody works, so there is no second attempt that could die as well.
    assert!(approved.values().all(|times| *times == 1), "{approved:?}");
    for task in &tasks {
        drill.client(1).cancel(*task, &Default::default()).await.expect("cancelled");
        drill.history.cancel(*task, Some(stack_tests::Outcome::Ok(())));
    }
    let load = drill.load();
    drill.workers = ["worker-1", "worker-2"].map(|id| drill.worker(id).start()).into();
    drill.answered(20).await;
    let took = drill.finish(load).await;
    tell(&format!("{STARTED} attempts died"), drill, took);
}

// Lost, judged, planned, and waiting for a worker.
async fn all_wait_for_a_worker(drill: &mut Drill, tasks: &BTreeSet<TaskId>) {
    // The lease, its margin of a tenth and a second, and what four services take for so many.
    let limit = LEASE_MS * 11 / 10 + 1_000 + 30_000;
    let began = SystemClock.boot_ms();
    drill.all_in(tasks, TaskState::Retrying).await;
    let took = SystemClock.boot_ms() - began;
    assert!(took < limit, "not one of {} attempts may be live after {limit} ms, but that took {took}", tasks.len());
}

// A worker stands still for longer than its lease: what it writes afterwards is refused by the sink, what
// it reports by the owner.
async fn one_stands_still(drill: &mut Drill) {
    let tasks = drill.create_writing(WRITING).await;
    let sink = drill.sink();
    let wrote = |epoch: u32| {
        let (sink, tasks) = (&sink, &tasks);
        async move {
            until("lines of each task", || async {
                let of: BTreeSet<_> = lines(sink)
                    .into_iter()
                    .filter(|(_, at, _)| *at >= epoch)
                    .filter_map(|(task, ..)| task.parse::<TaskId>().ok())
                    .collect();
                tasks.is_subset(&of).then_some(())
            })
            .await;
        }
    };
    wrote(1).await;
    let load = drill.load();
    drill.workers.iter_mut().for_each(|worker| worker.freeze().expect("it stands still"));
    let next = drill.worker("worker-3").start();
    wrote(2).await;
    drill.workers.iter_mut().for_each(|worker| worker.thaw().expect("it goes on"));
    drill.workers.push(next);
    drill.answered(30).await;
    let took = drill.finish(load).await;
    let lost = drill.journal.by_attempt(Kind::TaskLost);
    assert!(tasks.iter().all(|task| lost.get(&(*task, 1)) == Some(&1)), "each was lost once");
    tell("workers frozen beyond their lease", drill, took);
}
