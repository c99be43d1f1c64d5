//! Lists of tasks: filters, pages, cursors, and what is refused.

use std::collections::BTreeSet;

use coordinator_edge::EdgeConfig;
use serde_json::{Value, json};

use crate::upstream::kit::{Instance, World, alone, until};

fn ids(page: &Value) -> Vec<String> {
    let tasks = page["tasks"].as_array().unwrap_or_else(|| panic!("{page}"));
    tasks.iter().map(|task| task["task_id"].as_str().expect("a text").to_owned()).collect()
}

/// Every page of a list, by cursors.
async fn whole(one: &Instance, query: &str, limit: usize) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let got = one.get(&format!("/api/v1/tasks?limit={limit}{query}{cursor}")).await;
        assert_eq!(got.status, 200, "{got:?}");
        let page = ids(&got.body);
        assert!(page.len() <= limit);
        found.extend(page);
        match got.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_filter_finds_what_it_names_open_or_closed_page_by_page() {
    let (_world, one) = alone().await;
    let mut all = Vec::new();
    for n in 0..12 {
        let task = json!({
            "task_type": format!("t{}", n % 3), "payload": n, "creator": format!("c{}", n % 2),
            "queue": if n % 4 == 0 { "slow" } else { "fast" }, "labels": {"n": n.to_string(), "team": "a=b"},
        });
        all.push(one.task(task).await);
    }
    let handed = one.poll("slow").await;
    let assignments = handed.body["assignments"].as_array().expect("a list").clone();
    assert!(!assignments.is_empty());
    let mut done = BTreeSet::new();
    for assignment in &assignments {
        one.finish(assignment, "1").await;
        done.insert(assignment["task_id"].as_str().expect("a text").to_owned());
    }
    let by_age = |ids: &mut Vec<String>| ids.sort_unstable_by_key(|id| id.parse::<i64>().expect("a number"));
    let of = |keep: &dyn Fn(usize) -> bool| {
        let mut ids: Vec<_> = all.iter().enumerate().filter(|(n, _)| keep(*n)).map(|(_, id)| id.clone()).collect();
        by_age(&mut ids);
        ids
    };
    let mut ended: Vec<_> = done.iter().cloned().collect();
    by_age(&mut ended);
    for (query, expected) in [
        ("", of(&|_| true)),
        ("&type=t1", of(&|n| n % 3 == 1)),
        ("&creator=c1&queue=fast", of(&|n| n % 2 == 1 && n % 4 != 0)),
        ("&label=n%3D7", of(&|n| n == 7)),
        ("&label=team%3Da%3Db&type=t0", of(&|n| n % 3 == 0)),
        ("&state=SUCCESS", ended.clone()),
        ("&worker=w", ended.clone()),
        ("&state=SUCCESS,CREATED", of(&|_| true)),
        ("&state=FAILED", Vec::new()),
        ("&code=X", Vec::new()),
        ("&from=0&to=1", Vec::new()),
        ("&queue=none", Vec::new()),
    ] {
        for limit in [1, 5, 1_000] {
            assert_eq!(whole(&one, &format!("&order=oldest{query}"), limit).await, expected, "{query} {limit}");
            let mut newest = expected.clone();
            newest.reverse();
            assert_eq!(whole(&one, query, limit).await, newest, "{query} {limit}");
        }
    }
    // Still so when the store has the rows, and after one of them is open again.
    until("the rows are written", || {
        _world.store.rows().iter().filter(|row| row.closed_at.is_some()).count() == done.len()
    })
    .await;
    assert_eq!(whole(&one, "&order=oldest&state=SUCCESS", 2).await, ended);
    let again = &ended[0];
    assert_eq!(one.post(&format!("/api/v1/task/{again}/replay"), r#"{"run_no":1}"#).await.status, 202);
    assert_eq!(whole(&one, "&order=oldest&state=SUCCESS", 1).await, ended[1..]);
    assert_eq!(whole(&one, "&state=RETRY_APPROVED", 7).await, ended[..1]);
    let mut everything = whole(&one, "&order=oldest", 5).await;
    assert_eq!(everything, of(&|_| true));
    everything.dedup();
    assert_eq!(everything.len(), 12);
    let page = one.get("/api/v1/tasks?limit=3").await.body;
    assert!(page["looked_at"].as_u64().is_some_and(|n| n >= 3) && page["looked_to"].is_i64(), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cursors_belong_to_their_list_and_to_every_instance() {
    let world = World::new(4);
    let a = world.start("a", EdgeConfig::default());
    let b = world.start("b", EdgeConfig::default());
    until("both own two", || a.surface.owned().len() == 2 && b.surface.owned().len() == 2).await;
    let tasks: Vec<_> =
        (0..40).map(|n| json!({"task_type": "t", "payload": n, "idempotency_key": format!("k{n}")})).collect();
    let made = a.post("/api/v1/task/create-batch", json!({"tasks": tasks}).to_string()).await;
    assert_eq!(made.body["items"].as_array().map(Vec::len), Some(40), "{made:?}");
    assert_eq!(whole(&a, "", 7).await, whole(&b, "", 11).await);
    let first = a.get("/api/v1/tasks?limit=7").await.body;
    let cursor = first["next_cursor"].as_str().expect("more").to_owned();
    let next = |limit: usize, cursor: &str| format!("/api/v1/tasks?limit={limit}&cursor={cursor}");
    let second = ids(&b.get(&next(5, &cursor)).await.body);
    assert_eq!(second, ids(&a.get(&next(5, &cursor)).await.body), "as often as one likes");
    let mut edited = cursor.clone().into_bytes();
    edited[5] = if edited[5] == b'A' { b'B' } else { b'A' };
    let edited = String::from_utf8(edited).expect("ASCII");
    for bad in [
        next(5, &edited),
        next(5, ""),
        next(5, "x"),
        format!("{}&order=oldest", next(5, &cursor)),
        format!("{}&type=t", next(5, &cursor)),
        format!("/api/v1/review?cursor={cursor}"),
    ] {
        a.get(&bad).await.is_problem("invalid_cursor").at("cursor");
    }
    let other = World::new(1);
    let foreign = other.start("a", EdgeConfig::default());
    until("it owns it", || foreign.surface.owned().len() == 1).await;
    foreign.get(&next(5, &cursor)).await.is_problem("invalid_cursor");
    // The other instance takes over; then all of them start anew.
    drop(a);
    until("the other owns all", || b.surface.owned().len() == 4).await;
    assert_eq!(ids(&b.get(&next(5, &cursor)).await.body), second);
    drop(b);
    let c = world.start("c", EdgeConfig::default());
    until("it owns all", || c.surface.owned().len() == 4).await;
    assert_eq!(ids(&c.get(&next(5, &cursor)).await.body), second);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_asked_is_refused_with_the_limit() {
    let (_world, one) = alone().await;
    for limit in ["0", "-1", "1000000000"] {
        for list in ["tasks", "review"] {
            let got = one.get(&format!("/api/v1/{list}?limit={limit}")).await;
            got.is_problem("invalid_field").at("limit");
            assert_eq!((got.status, &got.body["limit"]), (422, &json!(1000)), "{got:?}");
        }
    }
    one.get("/api/v1/tasks?state=BORED").await.is_problem("invalid_parameter").at("state");
    one.get("/api/v1/tasks?mood=1").await.is_problem("invalid_parameter").at("mood");
    one.get("/api/v1/review?label=a%3Db").await.is_problem("invalid_parameter").at("label");
    one.post("/api/v1/tasks", "{}").await.is_problem("method_not_allowed");
    let id = one.task(json!({"task_type": "t", "payload": 1})).await;
    let review = format!("/api/v1/review/{id}");
    one.post(&review, r#"{"run_no":1,"outcome":"ACCEPTED"}"#).await.is_problem("task_open");
    one.post(&review, r#"{"run_no":0,"outcome":"ACCEPTED"}"#).await.is_problem("invalid_field").at("/run_no");
    one.post(&review, r#"{"run_no":1,"outcome":"MAYBE"}"#).await.is_problem("invalid_field");
    assert_eq!(one.get("/api/v1/review").await.body["items"], json!([]));
}
