//! The endpoints as anybody with curl sees them.

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use task_events::{TaskId, TaskState};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::checked::Exchange;
use crate::worker::kit::World;

struct Caller<'a> {
    world: &'a World,
    client: Client,
}

impl<'a> Caller<'a> {
    fn new(world: &'a World) -> Self {
        Self { world, client: Client::builder().no_proxy().build().expect("a client") }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let uri = format!("/coordinator/v1/{path}");
        let mut request = self.client.request(method.clone(), format!("{}{uri}", self.world.url()));
        let sent = body.map(Value::to_string).unwrap_or_default();
        if body.is_some() {
            request = request.header("content-type", "application/json").body(sent.clone());
        }
        let response = request.send().await.expect("an answer");
        let kind = response.headers().get("content-type").expect("a type").to_str().expect("a text").to_owned();
        let (status, bytes) = (response.status(), response.bytes().await.expect("a body"));
        let (method, sent) = (method.as_str(), sent.as_bytes());
        Exchange { method, uri: &uri, sent, status: status.as_u16(), kind: &kind, body: &bytes }.check();
        let value = serde_json::from_slice(&bytes);
        (status, value.unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())))
    }

    async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        self.send(Method::POST, path, Some(body)).await
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.send(Method::GET, path, None).await
    }

    /// The assignments of a poll.
    async fn poll(&self, worker: &str, wait_ms: u64) -> Vec<Value> {
        let (status, answer) = self.post(&format!("workers/{worker}/poll"), &poll(wait_ms)).await;
        assert_eq!(status, 200, "{answer}");
        answer["assignments"].as_array().expect("a list").clone()
    }
}

fn poll(wait_ms: u64) -> Value {
    json!({"incarnation": "7", "handler_version": "1", "queues": ["t"], "free_slots": 4, "wait_ms": wait_ms})
}

fn beat(assignment: &Value) -> Value {
    json!({
        "execution_id": assignment["execution_id"], "exec_epoch": assignment["exec_epoch"],
        "attempt_token": assignment["attempt_token"], "worker_id": "a", "incarnation": "7", "memory_usage_percent": 10,
    })
}

fn result(task: TaskId, assignment: &Value) -> Value {
    json!({
        "task_id": task.to_string(), "execution_id": assignment["execution_id"],
        "exec_epoch": assignment["exec_epoch"], "attempt_token": assignment["attempt_token"], "worker_id": "a",
        "status": "SUCCESS", "result": {"sum": 42}, "execution_time_ms": 5, "memory_usage_percent": 10,
    })
}

fn hash_of_result() -> task_events::Sha256Hash {
    task_events::Sha256Hash::of(b"{\"sum\":42}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_worked_on_by_hand() {
    let world = World::start().await;
    let caller = Caller::new(&world);
    let (status, pong) = caller.get("ping").await;
    assert_eq!((status.as_u16(), &pong["instance"]), (200, &json!("c1")));
    let register = json!({"worker_id": "a", "incarnation": "7", "handler_version": "1", "queues": ["t"], "slots": 4});
    let (status, registered) = caller.post("workers/register", &register).await;
    assert_eq!((status.as_u16(), &registered["max_payload_bytes"]), (200, &json!(262_144)));
    let task = world.create(r#"{"a":[1,2]}"#).await;
    let [assignment] = &caller.poll("a", 5_000).await[..] else { panic!("one assignment") };
    assert_eq!(assignment["payload"], json!({"a": [1, 2]}));
    assert!(assignment["attempt_token"].as_str().is_some_and(|token| token.starts_with("r1.")));
    let hash = assignment["payload_hash"].as_str().expect("a text");
    let (status, same) = caller.get(&format!("task/{task}/payload?item=parameters&hash={hash}")).await;
    assert_eq!((status.as_u16(), same), (200, json!({"a": [1, 2]})));

    let (status, early) = caller
        .post(&format!("task/{task}/result"), &{
            let mut early = result(task, assignment);
            early["attempt_token"] = json!("what is it");
            early
        })
        .await;
    assert_eq!((status.as_u16(), &early["field"]), (422, &json!("/attempt_token")));
    let (status, started) = caller.post(&format!("task/{task}/heartbeat?status=STARTING"), &beat(assignment)).await;
    assert_eq!((status.as_u16(), &started["answer"]), (200, &json!("accepted")));
    let (status, running) = caller.post(&format!("task/{task}/heartbeat?status=RUNNING"), &beat(assignment)).await;
    assert_eq!((status.as_u16(), running["lease_ms"].as_u64()), (200, Some(crate::worker::kit::LEASE_MS)));
    let step = json!({"payloads": [{"task_id": task.to_string(), "item": "step", "step": "s", "data": "InMi"}],
        "reports": [{"run_no": 1, "exec_epoch": 1, "execution_id": assignment["execution_id"],
            "attempt_token": assignment["attempt_token"], "worker_id": "a", "report": {"kind": "STEP", "done": {
                "step": "s", "index": 0, "is_idempotent": true,
                "output_hash": task_events::Sha256Hash::of(b"\"s\"").to_string()}}}],
        "heartbeats": [beat(assignment)]});
    let (status, answers) = caller.post("reports", &step).await;
    assert_eq!(status, 200, "{answers}");
    assert_eq!(answers["payloads_stored"], json!([true]));
    assert_eq!(answers["reports"][0]["answer"], "accepted");
    assert_eq!(answers["heartbeats"][0]["answer"], "accepted");
    // A late attempt's output of the same step takes nothing away.
    let late = json!({"payloads": [{"task_id": task.to_string(), "item": "step", "step": "s", "data": "IngiCg=="}]});
    assert_eq!(caller.post("reports", &late).await.0, 200);
    let hash = task_events::Sha256Hash::of(b"\"s\"");
    let (_, output) = caller.get(&format!("task/{task}/payload?item=step&step=s&hash={hash}")).await;
    assert_eq!(output, json!("s"));
    for expected in ["accepted", "duplicate"] {
        let (status, done) = caller.post(&format!("task/{task}/result"), &result(task, assignment)).await;
        assert_eq!((status.as_u16(), &done["answer"]), (200, &json!(expected)));
    }
    world.succeeded(task).await;
    let (_, stored) = caller.get(&format!("task/{task}/payload?item=result&hash={}", hash_of_result())).await;
    assert_eq!(stored, json!({"sum": 42}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_worker_is_told_that_it_is_fenced() {
    let world = World::start().await;
    let caller = Caller::new(&world);
    let task = world.create("1").await;
    let first = caller.poll("a", 5_000).await.remove(0);
    caller.post(&format!("task/{task}/heartbeat?status=STARTING"), &beat(&first)).await;
    // Silence: the attempt is lost, and another worker gets the task.
    let second = loop {
        if let Some(found) = caller.poll("b", 5_000).await.pop() {
            break found;
        }
    };
    assert_eq!(second["exec_epoch"], 2);
    let (status, told) = caller.post(&format!("task/{task}/heartbeat?status=RUNNING"), &beat(&first)).await;
    assert_eq!((status.as_u16(), &told["code"]), (409, &json!("fenced")));
    let mut failed = result(task, &first);
    failed["status"] = json!("FAILED");
    failed["error_code"] = json!("LATE");
    failed.as_object_mut().expect("an object").remove("result");
    let (status, told) = caller.post(&format!("task/{task}/result"), &failed).await;
    assert_eq!((status.as_u16(), &told["code"]), (409, &json!("fenced")));
    let batch = json!({"heartbeats": [beat(&first), beat(&second)]});
    let (_, told) = caller.post("reports", &batch).await;
    assert_eq!(told["heartbeats"][0]["answer"], "fenced");
    assert_eq!(told["heartbeats"][1]["answer"], "accepted");
    assert_eq!(world.seen(task).await.core.exec_epoch.get(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_whose_client_went_away_takes_no_work() {
    let world = World::start().await;
    let caller = Caller::new(&world);
    // Nothing is answered before the owners are there.
    let first = world.create("0").await;
    let [assignment] = &caller.poll("b", 5_000).await[..] else { panic!("it went to nobody") };
    // Left alone it would be handed out again.
    assert_eq!(caller.post(&format!("task/{first}/result"), &result(first, assignment)).await.0, 200);
    world.succeeded(first).await;
    let body = poll(30_000).to_string();
    let mut gone = TcpStream::connect(world.address).await.expect("a connection");
    let head = format!(
        "POST /coordinator/v1/workers/a/poll HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    gone.write_all(head.as_bytes()).await.expect("sent");
    let mut waited = [0; 1];
    tokio::select! {
        () = world.until_polls(2, 1) => {}
        _ = gone.read(&mut waited) => panic!("it waits"),
    }
    drop(gone);
    world.until_polls(2, 0).await;
    let task = world.create("1").await;
    let [found] = &caller.poll("b2", 5_000).await[..] else { panic!("it went to nobody") };
    assert_eq!(found["task_id"], json!(task.to_string()));
    assert_eq!(found["exec_epoch"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_handed_out_and_never_arrived_comes_again() {
    let world = World::start().await;
    let caller = Caller::new(&world);
    let task = world.create("1").await;
    let lost = caller.poll("a", 5_000).await.remove(0);
    // As if that answer had been lost: the next poll lists nothing, and brings it again, long before
    // it would be released because it did not start (10 s).
    let again = caller.poll("a", 5_000).await.remove(0);
    assert_eq!(again["task_id"], json!(task.to_string()));
    let (status, told) = caller.post(&format!("task/{task}/heartbeat?status=STARTING"), &beat(&again)).await;
    assert_eq!(status, 200, "{told}");
    if again["execution_id"] != lost["execution_id"] {
        let (status, _) = caller.post(&format!("task/{task}/heartbeat?status=STARTING"), &beat(&lost)).await;
        assert_eq!(status, 409, "only one of the two can start");
    }
    world.until(task, TaskState::Executing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_is_named() {
    let world = World::start().await;
    let caller = Caller::new(&world);
    let task = world.create("1").await;
    let assignment = caller.poll("a", 5_000).await.remove(0);
    let with = |of: &Value, name: &str, value: Value| {
        let mut changed = of.clone();
        changed[name] = value;
        changed
    };
    let (beat, done, poll) = (beat(&assignment), result(task, &assignment), poll(0));
    let (beats, results) = (format!("task/{task}/heartbeat?status=RUNNING"), format!("task/{task}/result"));
    let hash = "0".repeat(64);
    let payload = json!({"task_id": task.to_string(), "item": "parameters", "data": ""});
    let cases = [
        ("workers/a/poll", with(&poll, "free_slots", json!(1_001)), 422, "/free_slots"),
        ("workers/a/poll", with(&poll, "wait_ms", json!(60_001)), 422, "/wait_ms"),
        ("workers/a/poll", with(&poll, "queues", json!([])), 422, "/queues"),
        ("workers/a/poll", with(&poll, "queues", json!(["q".repeat(257)])), 422, "/queues/0"),
        ("workers/a/poll", with(&poll, "held", json!(["no"])), 422, "/held"),
        ("workers/a/poll", with(&poll, "incarnation", json!("-1")), 422, "/incarnation"),
        ("workers/a/poll", with(&poll, "mood", json!(1)), 422, "/mood"),
        (&beats, with(&beat, "exec_epoch", json!(9)), 422, "/exec_epoch"),
        (&beats, with(&beat, "memory_usage_percent", json!(101)), 422, "/memory_usage_percent"),
        (&beats, with(&beat, "attempt_token", json!("x")), 422, "/attempt_token"),
        (&beats, with(&beat, "worker_id", json!("")), 422, "/worker_id"),
        ("task/7/heartbeat?status=RUNNING", beat.clone(), 422, "/task_id"),
        ("task/x/heartbeat?status=RUNNING", beat.clone(), 400, "id"),
        ("task/7/heartbeat?status=SLEEPING", beat.clone(), 400, "status"),
        (&results, with(&done, "result_data_hash", json!(hash)), 422, "/result_data_hash"),
        (&results, with(&done, "error_code", json!("X")), 422, "/error_code"),
        (&results, with(&done, "status", json!("FAILED")), 422, "/result"),
        (&results, with(&done, "result", json!("x".repeat(262_143))), 413, "/result"),
        ("reports", json!({"payloads": [payload]}), 422, "/payloads/0/item"),
        (
            "reports",
            json!({"heartbeats": [beat, with(&beat, "exec_epoch", json!(3))]}),
            422,
            "/heartbeats/1/exec_epoch",
        ),
    ];
    for (path, body, status, field) in cases {
        let (found, problem) = caller.post(path, &body).await;
        assert_eq!(found.as_u16(), status, "{path}: {problem}");
        let named = problem["field"].as_str().unwrap_or_default();
        assert!(named.starts_with(field), "{path}: {field}: {problem}");
    }
    for (path, status) in [
        ("task/7/payload", 400),
        (&*format!("task/{task}/payload?item=step"), 400),
        (&*format!("task/{task}/payload?item=result&mood=1"), 400),
        (&*format!("task/{task}/payload?item=step&step=s"), 400),
        (&*format!("task/{task}/payload?item=result"), 400),
        (&*format!("task/{task}/payload?item=result&hash=12"), 400),
        (&*format!("task/{task}/payload?item=parameters"), 400),
        (&*format!("task/{task}/payload?item=parameters&hash={}", hash_of_result()), 404),
        (&*format!("task/{task}/payload?item=error_text&hash={}", hash_of_result()), 400),
        (&*format!("task/{task}/payload?item=result&hash={}", hash_of_result()), 404),
    ] {
        let (found, problem) = caller.get(path).await;
        assert_eq!(found.as_u16(), status, "{path}: {problem}");
    }
    assert_eq!(world.seen(task).await.core.state, TaskState::Assigned, "nothing of it was done");
}
