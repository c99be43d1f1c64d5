//! Queues and workers over two instances.

use coordinator_edge::EdgeConfig;
use serde_json::{Value, json};

use crate::upstream::kit::{Instance, World, until};

async fn two() -> (World, Instance, Instance) {
    let world = World::new(2);
    let a = world.start("a", EdgeConfig::default());
    let b = world.start("b", EdgeConfig::default());
    until("each owns one", || a.surface.owned().len() == 1 && b.surface.owned().len() == 1).await;
    (world, a, b)
}

fn named<'a>(list: &'a Value, field: &str, name: &str) -> &'a Value {
    let found = list.as_array().and_then(|list| list.iter().find(|one| one[field] == name));
    found.unwrap_or_else(|| panic!("{name} is not in {list}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_is_paused_in_every_partition_until_it_is_resumed() {
    let (_world, a, b) = two().await;
    let tasks: Vec<_> = (0..8)
        .map(|n| json!({"task_type": "t", "payload": n, "queue": "q", "idempotency_key": format!("k{n}")}))
        .collect();
    assert_eq!(a.post("/api/v1/task/create-batch", json!({"tasks": tasks}).to_string()).await.status, 207);
    let paused = b.post("/api/v1/queues/q/pause", r#"{"actor":"me","reason":"disk"}"#).await;
    assert_eq!((paused.status, &paused.body["partitions"]), (200, &json!([{"partition": 0}, {"partition": 1}])));
    let id = a.task(json!({"task_type": "t", "payload": 1, "queue": "q"})).await;
    let why = b.get(&format!("/api/v1/task/{id}/why")).await;
    assert_eq!((&why.body["fact"], &why.body["waits_for"]), (&json!("queue_paused"), &json!("people")), "{why:?}");
    let seen = a.get("/api/v1/queues").await;
    let queue = named(&seen.body["queues"], "queue", "q");
    assert_eq!((seen.status, &queue["paused"], &queue["paused_partitions"]), (200, &json!(true), &json!([0, 1])));
    assert_eq!((&queue["ready"], &queue["running"], &queue["open"]), (&json!(9), &json!(0), &json!(9)), "{seen:?}");
    let body = json!({"incarnation": "7", "handler_version": "1", "queues": ["q"], "free_slots": 4, "wait_ms": 0});
    let none = a.post("/coordinator/v1/workers/w/poll", body.to_string()).await;
    assert_eq!(none.body["assignments"], json!([]), "{none:?}");
    assert_eq!(a.post("/api/v1/queues/q/resume", "{}").await.status, 200);
    let some = a.poll("q").await;
    assert_eq!(some.body["assignments"].as_array().map(Vec::len), Some(4), "{some:?}");
    let seen = b.get("/api/v1/queues").await;
    let queue = named(&seen.body["queues"], "queue", "q");
    assert_eq!(
        (&queue["paused"], &queue["ready"], &queue["running"]),
        (&json!(false), &json!(5), &json!(4)),
        "{seen:?}"
    );
    assert!(queue["polled_ms_ago"].is_u64());
    a.post("/api/v1/queues/q/pause", r#"{"mood":1}"#).await.is_problem("unknown_field");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_seen_drained_and_released() {
    let (_world, a, b) = two().await;
    assert_eq!(a.get("/api/v1/workers").await.body["workers"], json!([]));
    a.get("/api/v1/workers/w").await.is_problem("worker_unknown");
    a.post("/api/v1/workers/w/drain", "{}").await.is_problem("worker_unknown");
    let id = a.task(json!({"task_type": "t", "payload": 1})).await;
    let handed = a.poll("t").await;
    assert_eq!(handed.body["assignments"][0]["task_id"], id, "{handed:?}");
    for one in [&a, &b] {
        let seen = one.get("/api/v1/workers").await;
        let worker = named(&seen.body["workers"], "worker_id", "w");
        assert_eq!(
            (seen.status, &worker["incarnation"], &worker["instance"]),
            (200, &json!("7"), &json!("a")),
            "{seen:?}"
        );
        assert_eq!(
            (&worker["running"], &worker["queues"], &worker["draining"]),
            (&json!(1), &json!(["t"]), &json!(false))
        );
        let seen = one.get("/api/v1/workers/w").await;
        assert_eq!(
            (&seen.body["attempts"][0]["task_id"], &seen.body["attempts"][0]["status"]),
            (&json!(id), &json!("ASSIGNED"))
        );
        assert_eq!(seen.body["attempts"][0]["execution_id"], handed.body["assignments"][0]["execution_id"]);
    }
    // Asked of the one, told by the other, also to a poll that waits.
    let held = json!([handed.body["assignments"][0]["execution_id"]]);
    let poll = |incarnation: &str, wait_ms: u64| {
        json!({"incarnation": incarnation, "handler_version": "1", "queues": ["t"], "free_slots": 4, "wait_ms": wait_ms,
            "held": held})
        .to_string()
    };
    let path = "/coordinator/v1/workers/w/poll";
    let waits = a.post(path, poll("7", 30_000));
    let drains = async {
        until("the poll waits", || a.surface.status().assigned.values().all(|p| p.in_flight == 0)).await;
        b.post("/api/v1/workers/w/drain", r#"{"reason":"kernel"}"#).await
    };
    let (told, drained) = futures::join!(waits, drains);
    assert_eq!((told.status, &told.body["drain"]), (200, &json!(true)), "{told:?}");
    assert_eq!((drained.status, &drained.body["instances"]), (200, &json!(["b", "a"])), "{drained:?}");
    let seen = b.get("/api/v1/workers/w").await;
    assert_eq!(seen.body["draining"], true, "{seen:?}");
    assert_eq!(b.post(path, poll("7", 0)).await.body["drain"], true);
    a.task(json!({"task_type": "t", "payload": 2})).await;
    let next = a.post(path, poll("8", 2_000)).await;
    assert_eq!(
        (&next.body["drain"], next.body["assignments"].as_array().map(Vec::len)),
        (&json!(false), Some(1)),
        "{next:?}"
    );
    let released = a.post("/api/v1/workers/w/release", "{}").await;
    assert_eq!((released.status, &released.body["partitions"]), (200, &json!([{"partition": 0}, {"partition": 1}])));
    assert_eq!(b.get("/api/v1/workers/w").await.body["draining"], false);
}
