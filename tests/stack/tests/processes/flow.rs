//! A task from its creation to its end, through four processes and three engines.

use rest_client::Client;
use service_host::{ProgramSettings as _, Sources};
use snapshot_store::SnapshotStore as _;
use stack_control::Member;
use stack_tests::{Scene, metric, owned, until};
use task_events::TaskId;

use crate::load::{Working, all_succeed, request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_go_through_separate_processes() {
    let scene = Scene::new(4, 2, &[("task_engine.backoff_base_ms", "50")]).await;
    let mut cluster = scene.start().await;
    let urls = cluster.urls();
    let shares = (owned(&urls[0]).await, owned(&urls[1]).await);
    assert_eq!(shares.0.len() + shares.1.len(), 4, "each partition has one owner: {shares:?}");
    assert!(shares.0.is_disjoint(&shares.1) && !shares.0.is_empty() && !shares.1.is_empty(), "{shares:?}");

    let worker = Working::start(&urls, &scene.plan.dir.join("outbox"));
    let mut tasks: Vec<TaskId> = Vec::new();
    for n in 0..40 {
        // Keys spread over all partitions, so every edge passes some of them on.
        let payload = if n % 4 == 0 { "fail-once" } else { "once" };
        let (client, key) = (Client::new(&urls[n % 2]).expect("a URL"), format!("flow-{n}"));
        let created = client.create(&request(payload), Some(&key)).await.expect("created");
        tasks.push(created.task_id);
    }
    for url in &urls {
        all_succeed(url, tasks.clone()).await;
    }
    worker.stop().await;

    // Those that failed once went through the other two services.
    for member in [Member::TaskEngine, Member::AutoReplay] {
        let url = cluster.member(member).expect("it runs").url.clone();
        until(&format!("{member:?} wrote a verdict for each task that failed once"), || async {
            (metric(&url, "projection_verdicts_accepted_total").await == 10).then_some(())
        })
        .await;
        until("it has folded everything", || async {
            (metric(&url, "partition_lag_records").await == 0).then_some(())
        })
        .await;
    }
    let environment = scene.plan.environment().into_iter().collect();
    let settings: dualtrack_coordinator::Settings =
        Sources { environment, ..Sources::default() }.load().expect("settings");
    settings.validate().expect("valid");
    let store = settings.store.connect().await.expect("the keyspace");
    until("every row tells the end", || async {
        let rows = store.snapshots(tasks.clone()).await.expect("rows");
        rows.iter().all(|row| row.as_ref().is_some_and(|row| row.core.state.is_terminal())).then_some(())
    })
    .await;
    let took = cluster.stop().await.expect("a clean end");
    assert!(took.values().all(|ms| *ms < 15_000), "each ends within 15 s: {took:?}");
}
