//! Two instances: whatever is asked of one that does not own the task's partition is answered as the
//! owner would answer.

use coordinator_edge::EdgeConfig;
use serde_json::json;

use crate::upstream::kit::{World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wrong_instance_answers_as_the_right_one() {
    let world = World::new(2);
    let a = world.start("a", EdgeConfig::default());
    let b = world.start("b", EdgeConfig::default());
    until("each owns one", || a.surface.owned().len() == 1 && b.surface.owned().len() == 1).await;
    let id = a.task(json!({"task_type": "t", "payload": 1, "business_key": "k", "concurrency_key": "c"})).await;
    let task: task_events::TaskId = id.parse().expect("an id");
    let (right, wrong) = if a.surface.owned().contains(&task.partition()) { (&a, &b) } else { (&b, &a) };
    let path = format!("/api/v1/task/{id}");
    for what in ["", "/why", "/events"] {
        let (here, there) = (right.get(&format!("{path}{what}")).await, wrong.get(&format!("{path}{what}")).await);
        assert_eq!((here.status, there.status), (200, 200), "{there:?}");
        assert_eq!(here.body["status"], there.body["status"]);
        assert_eq!(there.body["task_id"], id);
    }
    wrong.get(&format!("{path}/result")).await.is_problem("no_result");
    let found = wrong.get("/api/v1/business/k").await;
    assert_eq!((found.status, &found.body["tasks"][0]["task_id"]), (200, &json!(id)), "{found:?}");
    // A key's partition is one of the two, wherever it is asked.
    let keyed = wrong.keyed("k", r#"{"task_type":"t","payload":1,"concurrency_key":"c"}"#).await;
    assert_eq!(keyed.status, 201, "{keyed:?}");
    let again = right.keyed("k", r#"{"task_type":"t","payload":1,"concurrency_key":"c"}"#).await;
    assert_eq!((again.status, &again.body["task_id"]), (200, &keyed.body["task_id"]));

    let handed = wrong.poll("t").await;
    let assignment = handed.body["assignments"][0].clone();
    assert_eq!(assignment["task_id"], id, "{handed:?}");
    wrong.finish(&assignment, "{\"sum\":1}").await;
    let ended = wrong.get(&format!("{path}?wait=10s")).await;
    assert_eq!(ended.body["status"], "SUCCESS", "{ended:?}");
    let (here, there) = (right.get(&format!("{path}/result")).await, wrong.get(&format!("{path}/result")).await);
    assert_eq!((here.status, &here.body), (200, &there.body));
    wrong.post(&format!("{path}/cancel"), "{}").await.is_problem("task_closed");
    let replayed = wrong.post(&format!("{path}/replay"), r#"{"run_no":1}"#).await;
    assert_eq!((replayed.status, &replayed.body["run_no"]), (202, &json!(2)), "{replayed:?}");
    let cancelled = wrong.post(&format!("{path}/cancel"), "{}").await;
    assert_eq!(cancelled.status, 202, "{cancelled:?}");
    let other: Vec<_> =
        (0..8).map(|n| json!({"task_type": "u", "payload": n, "idempotency_key": format!("i{n}")})).collect();
    let batch = wrong.post("/api/v1/task/create-batch", json!({"tasks": other}).to_string()).await;
    let items = batch.body["items"].as_array().expect("a list");
    assert!(items.iter().all(|item| item["outcome"] == "created"), "{batch:?}");

    // When one leaves, the other goes on for both.
    let (right, wrong) = if a.surface.owned().contains(&task.partition()) { (a, b) } else { (b, a) };
    drop(right);
    until("the other owns both", || wrong.surface.owned().len() == 2).await;
    assert_eq!(wrong.get(&path).await.status, 200);
}
