//! The stream of events: accepted records in their order, resumable, filtered, ended with a reason.

use bytes::Bytes;
use coordinator_edge::EdgeConfig;
use event_log::{EventLog as _, OutRecord};
use serde_json::{Value, json};
use task_events::PartitionId;

use crate::upstream::kit::{Instance, World, alone, until};

/// A message: its type, its id and its data.
type Message = (String, String, Value);

struct Stream {
    response: reqwest::Response,
    text: String,
}

impl Stream {
    async fn open(one: &Instance, query: &str, last: Option<&str>) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut request = client.get(format!("http://{}/api/v1/events/stream?{query}", one.address));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The next message; comments are passed over.
    async fn next(&mut self) -> Option<Message> {
        loop {
            while let Some((message, rest)) = self.text.split_once("\n\n") {
                let (message, rest) = (message.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let found = message.lines().find_map(|line| line.strip_prefix(name));
                    found.unwrap_or_default().trim().to_owned()
                };
                if !field("data:").is_empty() {
                    let data = serde_json::from_str(&field("data:")).expect("JSON");
                    return Some((field("event:"), field("id:"), data));
                }
            }
            let chunk = self.response.chunk().await.expect("readable")?;
            self.text += std::str::from_utf8(&chunk).expect("UTF-8");
        }
    }

    /// Records up to the one of this kind.
    async fn until(&mut self, kind: &str) -> Vec<Message> {
        let mut found = Vec::new();
        loop {
            let message = self.next().await.expect("it has no end");
            assert_eq!(message.0, "record", "{message:?}");
            let last = message.2["event"]["kind"] == kind;
            found.push(message);
            if last {
                return found;
            }
        }
    }
}

fn kinds(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|(_, _, record)| record["event"]["kind"].as_str().unwrap_or("?")).collect()
}

async fn done(one: &Instance) -> String {
    let id = one.task(json!({"task_type": "t", "payload": 1})).await;
    let handed = one.poll("t").await;
    one.finish(&handed.body["assignments"][0], "1").await;
    id
}

const LIFE: [&str; 4] = ["TaskCreated", "TaskAssigned", "TaskStarted", "TaskCompleted"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_life_is_streamed_in_order_and_goes_on_behind_any_message() {
    let (_world, one) = alone().await;
    let mut live = Stream::open(&one, "kind=TaskCreated,TaskAssigned,TaskStarted,TaskCompleted", None).await;
    let id = done(&one).await;
    let seen = live.until("TaskCompleted").await;
    assert_eq!(kinds(&seen), LIFE);
    assert!(seen.iter().all(|(_, _, record)| record["verdict"] == "accepted" && record["event"]["task_id"] == id));
    for (n, (_, cursor, _)) in seen.iter().enumerate().take(3) {
        for by_header in [true, false] {
            let query = if by_header { String::new() } else { format!("cursor={cursor}") };
            let mut again = Stream::open(&one, &query, by_header.then_some(cursor)).await;
            let rest: Vec<_> = again.until("TaskCompleted").await;
            let rest: Vec<_> = rest.into_iter().filter(|(_, _, record)| record["event"]["task_id"] == id).collect();
            assert_eq!(kinds(&rest), LIFE[n + 1..], "behind {cursor}");
        }
    }
    let mut by_task = Stream::open(&one, &format!("task={id}&from=start"), None).await;
    assert_eq!(kinds(&by_task.until("TaskCompleted").await), LIFE);
    let mut by_worker = Stream::open(&one, "from=start&worker=w", None).await;
    assert_eq!(by_worker.next().await.expect("one").2["event"]["kind"], "TaskAssigned");
    let at = seen[1].2["broker_time"].as_i64().expect("a time");
    let mut by_time = Stream::open(&one, &format!("from={at}&kind=TaskCompleted"), None).await;
    assert_eq!(by_time.next().await.expect("one").2["offset"], seen[3].2["offset"]);
    let (partition, offset) = (&seen[2].2["partition"], &seen[2].2["offset"]);
    let mut by_offset = Stream::open(&one, &format!("partition={partition}&offset={offset}"), None).await;
    let first = by_offset.next().await.expect("one");
    assert_eq!(
        (&first.2["offset"], first.1),
        (offset, format!("{partition}:{}", offset.as_u64().expect("a number") + 1))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_count_is_shown_to_those_who_want_it() {
    let (world, one) = alone().await;
    let id: task_events::TaskId = done(&one).await.parse().expect("an id");
    let junk = OutRecord { key: Bytes::from(id.to_string()), headers: Vec::new(), value: Bytes::from_static(b"junk") };
    world.log.append(id.partition(), vec![junk]).await;
    one.task(json!({"task_type": "t", "payload": 2, "same_partition_as": id.to_string()})).await;
    let only = format!("partition={}", id.partition());
    let mut all = Stream::open(&one, &format!("from=start&verdict=all&{only}"), None).await;
    let found = loop {
        let (_, _, record) = all.next().await.expect("it has no end");
        if record["verdict"] != "accepted" {
            break record;
        }
    };
    assert_eq!((&found["verdict"], &found["event"]), (&json!("quarantined"), &Value::Null), "{found}");
    assert!(found["reason"].is_string());
    let mut accepted = Stream::open(&one, &format!("from=start&{only}"), None).await;
    let (_, _, behind) = loop {
        let message = accepted.next().await.expect("it has no end");
        assert_eq!(message.2["verdict"], "accepted");
        if message.2["offset"].as_u64() > found["offset"].as_u64() {
            break message;
        }
    };
    assert!(behind["event"].is_object());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_owner_has_forgotten_is_judged_anew() {
    let world = World::new(1);
    let a = world.start("a", EdgeConfig::default());
    until("it owns it", || a.surface.owned().len() == 1).await;
    let first = done(&a).await;
    drop(a);
    // It starts from the hand-over's checkpoint and folded nothing of what lies before.
    let b = world.start("b", EdgeConfig::default());
    until("the next owns it", || b.surface.owned().len() == 1).await;
    let second = done(&b).await;
    let mut stream = Stream::open(&b, "from=start&kind=TaskCompleted", None).await;
    for id in [&first, &second] {
        assert_eq!(stream.next().await.expect("one").2["event"]["task_id"], **id);
    }
    let end = world.log.range(PartitionId(0)).await.expect("a range").end.0;
    for (query, code) in [
        (format!("partition=0&offset={}", end + 1_000), "position_gone"),
        ("cursor=x".to_owned(), "invalid_parameter"),
        ("cursor=1,2".to_owned(), "invalid_parameter"),
        ("offset=1".to_owned(), "invalid_parameter"),
        ("partition=9".to_owned(), "invalid_parameter"),
        ("kind=Bored".to_owned(), "invalid_parameter"),
        ("verdict=maybe".to_owned(), "invalid_parameter"),
        ("from=-1".to_owned(), "invalid_parameter"),
        ("until=later".to_owned(), "invalid_parameter"),
    ] {
        b.get(&format!("/api/v1/events/stream?{query}")).await.is_problem(code);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_is_old_comes_in_every_stream_though_nobody_writes_and_others_do_not_read() {
    let world = World::new(4);
    let a = world.start("a", EdgeConfig::default());
    until("it owns all", || a.surface.owned().len() == 4).await;
    // 4 MB, of which a stream shows each record: more than a stream and its connection hold.
    let labels: serde_json::Map<_, _> = (0..32).map(|n| (format!("l{n}"), json!("v".repeat(250)))).collect();
    let task = json!({"task_type": "u", "queue": "u", "payload": 1, "labels": labels});
    for _ in 0..10 {
        let batch = json!({"tasks": vec![task.clone(); 50]}).to_string();
        assert_eq!(a.post("/api/v1/task/create-batch", batch).await.status, 207);
    }
    drop(a);
    let b = world.start("b", EdgeConfig::default());
    until("the next owns all", || b.surface.owned().len() == 4).await;
    let mut unread = Vec::new();
    for _ in 0..3 {
        unread.push(Stream::open(&b, "from=start&verdict=all", None).await);
    }
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(Stream::open(&b, "from=start&kind=TaskCreated", None).await);
    }
    for mut stream in streams {
        let mut partitions = std::collections::BTreeSet::new();
        for _ in 0..500 {
            let (kind, _, record) = stream.next().await.expect("it has no end");
            assert_eq!((kind.as_str(), &record["verdict"]), ("record", &json!("accepted")), "{record}");
            partitions.insert(record["partition"].as_u64());
        }
        assert_eq!(partitions.len(), 4);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_last_event_id_that_is_none_begins_nowhere() {
    let (_world, one) = alone().await;
    for bad in ["x", "1,2,x", ""] {
        let got = one.send(reqwest::Method::GET, "/api/v1/events/stream", &[("last-event-id", bad)], "").await;
        got.is_problem("invalid_parameter").at("cursor");
    }
    let got = one.send(reqwest::Method::GET, "/api/v1/events/stream", &[("last-event-id", "\u{e9}")], "").await;
    got.is_problem("invalid_parameter").at("Last-Event-ID");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_until_now_ends_with_what_was_there_and_its_last_cursor_goes_on_behind_it() {
    let (world, one) = alone().await;
    let id: task_events::TaskId = done(&one).await.parse().expect("an id");
    let partition = id.partition();
    let mut everything = Stream::open(&one, "from=start&until=now", None).await;
    let mut seen = Vec::new();
    let behind = loop {
        let (kind, cursor, record) = everything.next().await.expect("its end");
        if kind == "reached" {
            break cursor;
        }
        seen.push((kind, cursor, record));
    };
    assert_eq!(everything.next().await, None, "nothing follows");
    let of_task: Vec<_> =
        seen.into_iter().filter(|(_, _, record)| record["event"]["task_id"] == *id.to_string()).collect();
    assert_eq!(kinds(&of_task), LIFE);
    // A filter that shows nothing, no record at all, and a position at the end come to their end too.
    for query in [
        "from=start&kind=TaskLost&until=now",
        "from=now&until=now",
        &format!("cursor={behind}&kind=TaskLost&until=now"),
    ] {
        let mut nothing = Stream::open(&one, query, None).await;
        assert_eq!(nothing.next().await.expect("its end").0, "reached", "{query}");
    }
    // What comes while it is read is not waited for: it would be for ever.
    let end = world.log.range(partition).await.expect("a range").end.0;
    let mut one_partition = Stream::open(&one, &format!("partition={partition}&from=start&until=now"), None).await;
    let next = one.task(json!({"task_type": "t", "payload": 2, "same_partition_as": id.to_string()})).await;
    let reached = loop {
        let (kind, cursor, record) = one_partition.next().await.expect("its end");
        if kind == "reached" {
            break cursor;
        }
        assert_ne!(record["event"]["task_id"], next);
    };
    let offset: u64 = reached.split(':').nth(1).unwrap_or(&reached).parse().expect("an offset");
    assert!(offset >= end, "{reached}");
    let mut after = Stream::open(&one, &format!("cursor={reached}&kind=TaskCreated"), None).await;
    assert_eq!(after.next().await.expect("one").2["event"]["task_id"], next);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_says_so_and_waits_for_nobody() {
    let (_world, one) = alone().await;
    let mut stream = Stream::open(&one, "kind=TaskLost", None).await;
    let ended = tokio::task::spawn_blocking(move || drop(one));
    let (kind, _, why) = stream.next().await.expect("its end");
    assert_eq!((kind.as_str(), &why["code"]), ("end", &json!("draining")));
    assert_eq!(stream.next().await, None);
    ended.await.expect("it ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_are_only_so_many_streams_and_a_place_is_given_back() {
    let (_world, one) = alone().await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(Stream::open(&one, "", None).await);
    }
    one.get("/api/v1/events/stream").await.is_problem("overloaded");
    streams.clear();
    let limit = service_kit::Clock::boot_ms(&service_kit::SystemClock) + 30_000;
    loop {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let got = client.get(format!("http://{}/api/v1/events/stream", one.address)).send().await.expect("an answer");
        if got.status() == 200 {
            break;
        }
        assert!(service_kit::Clock::boot_ms(&service_kit::SystemClock) < limit, "no place is given back");
    }
}
