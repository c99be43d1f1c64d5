//! While a partition has no owner, reads say what the rows say, and that it may be behind.

use coordinator_edge::EdgeConfig;
use serde_json::json;
use service_kit::{Clock as _, SystemClock};
use task_events::TaskState;

use crate::upstream::kit::{World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_owner_a_task_is_read_from_its_row() {
    let world = World::new(1);
    let one = world.start("a", EdgeConfig::default());
    until("it owns it", || one.surface.owned().len() == 1).await;
    let done = one.task(json!({"task_type": "t", "payload": 1})).await;
    let handed = one.poll("t").await;
    one.finish(&handed.body["assignments"][0], "7").await;
    let open = one.task(json!({"task_type": "t", "payload": 2})).await;
    let fresh = one.get(&format!("/api/v1/task/{done}?wait=10s")).await;
    assert_eq!((&fresh.body["status"], &fresh.body["stale"]), (&json!("SUCCESS"), &json!(false)), "{fresh:?}");
    let states = || world.store.rows().into_iter().map(|row| row.core.state).collect::<Vec<_>>();
    until("both rows are written", || states().contains(&TaskState::Success) && states().contains(&TaskState::Created))
        .await;
    drop(one);

    let two = world.start_without_owners("b");
    let of = async |task: &str, what: &str| two.get(&format!("/api/v1/task/{task}{what}")).await;
    let read = of(&done, "").await;
    assert_eq!((&read.body["status"], &read.body["stale"]), (&json!("SUCCESS"), &json!(true)), "{read:?}");
    let mut same = read.body.clone();
    (same["stale"], same["as_of"]) = (fresh.body["stale"].clone(), fresh.body["as_of"].clone());
    assert_eq!(same, fresh.body);
    let position = |body: &serde_json::Value| body["as_of"]["offset"].as_u64().expect("an offset");
    assert!((1..=position(&fresh.body)).contains(&position(&read.body)), "{read:?}");
    let result = of(&done, "/result").await;
    assert_eq!((&result.body["result"], &result.body["stale"]), (&json!(7), &json!(true)), "{result:?}");
    let waiting = of(&open, "").await;
    assert_eq!((&waiting.body["status"], &waiting.body["stale"]), (&json!("CREATED"), &json!(true)), "{waiting:?}");
    of(&open, "/result").await.is_problem("owner_unavailable");
    // An end that is on record is what was waited for, at once; what is open has not come to one.
    let asked = SystemClock.boot_ms();
    assert_eq!(of(&done, "?wait=60s").await.body["status"], "SUCCESS");
    assert!(SystemClock.boot_ms() - asked < 30_000, "{} ms", SystemClock.boot_ms() - asked);
    of(&open, "?wait=1s").await.is_problem("owner_unavailable");
    // Nothing is said of what has no row: it may be owed.
    let unknown = task_events::TaskId::from_raw(done.parse::<i64>().expect("a number") + 1).expect("an id");
    of(&unknown.to_string(), "").await.is_problem("owner_unavailable");
    two.post(&format!("/api/v1/task/{open}/cancel"), "{}").await.is_problem("owner_unavailable");
}

/// What no row tells is waited for like everything else, 5 s; a new owner that comes meanwhile answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_row_tells_is_waited_for_until_an_owner_comes() {
    let world = World::new(1);
    let two = world.start_without_owners("b");
    let one = world.start("a", EdgeConfig::default());
    until("it owns it", || one.surface.owned().len() == 1).await;
    let open = one.task(json!({"task_type": "t", "payload": 1})).await;
    until("its row is written", || !world.store.rows().is_empty()).await;
    drop(one);

    let unknown = task_events::TaskId::from_raw(open.parse::<i64>().expect("a number") + 1).expect("an id");
    let of = async |path: String| {
        let asked = SystemClock.boot_ms();
        (two.get(&format!("/api/v1/task/{path}")).await, SystemClock.boot_ms() - asked)
    };
    let owner_comes = async {
        SystemClock.sleep_until(SystemClock.boot_ms() + 3_000).await;
        world.start("c", EdgeConfig::default())
    };
    let (row, result, nobody, ended, _three) = tokio::join!(
        of(open.clone()),
        of(format!("{open}/result")),
        of(unknown.to_string()),
        of(format!("{open}?wait=5s")),
        owner_comes
    );
    assert_eq!(row.0.body["stale"], true, "{row:?}");
    result.0.is_problem("no_result");
    nobody.0.is_problem("task_unknown");
    assert_eq!((&ended.0.body["status"], &ended.0.body["stale"]), (&json!("CREATED"), &json!(false)), "{ended:?}");
    for (answer, took_ms) in [&result, &nobody] {
        assert!(*took_ms >= 2_500, "before there was an owner: {answer:?} after {took_ms} ms");
    }
}
