//! The history of a task, page by page.

use event_log::{EventLog as _, OutRecord};
use serde_json::{Value, json};
use task_events::{Offset, TaskId, encode};

use crate::upstream::kit::alone;

fn offsets(page: &Value) -> Vec<u64> {
    let events = page["events"].as_array().unwrap_or_else(|| panic!("{page}"));
    events.iter().map(|event| event["offset"].as_u64().expect("a number")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_history_is_read_page_by_page_and_each_record_once() {
    let (world, one) = alone().await;
    let id: TaskId = one.task(json!({"task_type": "t", "payload": 1})).await.parse().expect("an id");
    let partition = id.partition();
    let path = format!("/api/v1/task/{id}/events");
    let first = one.get(&path).await.body;
    assert_eq!((offsets(&first).len(), &first["next_cursor"]), (1, &Value::Null), "{first}");
    // Copies of its creation do not count, and are part of its history; more than a row has room for.
    let created = world.log.read_at(partition, vec![Offset(offsets(&first)[0])]).await.expect("its record");
    let encoded = encode(&created[0].event().expect("an event"), partition).expect("it can be written");
    let copy = OutRecord { key: encoded.key, headers: encoded.headers, value: encoded.value };
    for _ in 0..7 {
        world.log.append(partition, vec![copy.clone(); 100]).await;
    }
    // What the row has no room for stands beside it once the store has it, 1 s behind at most.
    let whole = loop {
        let whole = one.get(&format!("{path}?limit=1000")).await.body;
        if offsets(&whole).len() == 701 {
            break whole;
        }
    };
    let all = offsets(&whole);
    assert!(all.is_sorted() && whole["next_cursor"].is_null(), "{}", whole["next_cursor"]);
    assert_eq!(whole["events"][1]["verdict"], "rejected", "{}", whole["events"][1]);
    for limit in [1, 256, 300] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = one.get(&format!("{path}?limit={limit}{cursor}")).await.body;
            let some = offsets(&page);
            assert!(some.len() <= limit);
            seen.extend(some);
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
            if limit == 1 && seen.len() == 5 {
                break;
            }
        }
        assert_eq!(seen, all[..seen.len()], "limit {limit}");
        assert!(limit == 1 || seen.len() == all.len(), "limit {limit}");
    }
    let by_default = one.get(&path).await.body;
    assert_eq!(offsets(&by_default), all[..200]);
    // A cursor belongs to its task.
    let cursor = by_default["next_cursor"].as_str().expect("more");
    let other = one.task(json!({"task_type": "t", "payload": 1})).await;
    for bad in [format!("/api/v1/task/{other}/events?cursor={cursor}"), format!("{path}?cursor=x{cursor}")] {
        one.get(&bad).await.is_problem("invalid_cursor").at("cursor");
    }
    for limit in ["0", "-1", "1001"] {
        one.get(&format!("{path}?limit={limit}")).await.is_problem("invalid_field").at("limit");
    }
}
