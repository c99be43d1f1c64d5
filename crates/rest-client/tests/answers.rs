//! The client against sockets that say what the test wants: what was sent, what is made of each
//! answer, and what may be repeated after each failure.

#[path = "shared/request.rs"]
mod request;

use std::net::TcpListener;
use std::thread::JoinHandle;
use std::time::Duration;

use futures::StreamExt as _;
use rest_client::contract::{
    CancelRequest, Code, CreateRequest, ListOrder, Retry, StreamFrom, StreamMessage, StreamQuery, TasksQuery,
};
use rest_client::{Client, ClientError, Timeouts};
use task_events::{TaskId, TaskState};

const CREATED: &str = r#"{"task_id":"4194304","create_timestamp":7,"duplicate":false,"more":"from a newer server"}"#;

/// Answers one connection per text; `None` closes it once the request is there.
fn server(answers: Vec<Option<(u16, String)>>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let seen = std::thread::spawn(move || answers.into_iter().map(|answer| one(&listener, answer)).collect());
    (url, seen)
}

fn one(listener: &TcpListener, answer: Option<(u16, String)>) -> String {
    let (mut socket, _) = listener.accept().expect("a connection");
    let (head, body) = request::read(&socket);
    if let Some((status, text)) = answer {
        request::answer(&mut socket, status, &text);
    }
    head + &String::from_utf8_lossy(&body)
}

fn request() -> CreateRequest {
    CreateRequest { task_type: "t".into(), ..Default::default() }
}

fn problem(code: Code) -> Option<(u16, String)> {
    let problem = rest_client::contract::Problem::new(code, "because").fact("retry_after_ms", 1);
    Some((code.status(), serde_json::to_string(&problem).expect("JSON")))
}

fn task() -> TaskId {
    TaskId::from_raw(4_194_304).expect("an id")
}

#[tokio::test]
async fn a_create_carries_its_key_and_is_read_whatever_a_newer_server_adds() {
    let (url, seen) = server(vec![Some((201, CREATED.into()))]);
    let created = Client::new(&url).expect("a URL").create(&request(), Some("k-1")).await.expect("created");
    assert_eq!((created.task_id, created.duplicate), (task(), false));
    let sent = seen.join().expect("a request").remove(0);
    assert!(sent.starts_with("POST /api/v1/task/create HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains("idempotency-key: k-1\r\n") && sent.ends_with(r#"{"task_type":"t"}"#), "{sent}");
}

#[tokio::test]
async fn a_problem_is_a_value_and_says_whether_to_repeat() {
    for (code, retry) in
        [(Code::TaskUnknown, Retry::Never), (Code::StoreBehind, Retry::Later), (Code::OutcomeUnknown, Retry::AskFirst)]
    {
        let (url, seen) = server(vec![problem(code)]);
        let error = Client::new(&url).expect("a URL").get(task(), None).await.expect_err("a problem");
        assert_eq!((error.problem().map(|p| p.code), error.retry()), (Some(code), retry));
        seen.join().expect("a request");
    }
}

#[tokio::test]
async fn only_what_writes_and_may_have_arrived_is_unknown() {
    let (url, seen) = server(vec![None, None]);
    let client = Client::new(&url).expect("a URL");
    let written = client.cancel(task(), &CancelRequest::default()).await.expect_err("no answer");
    assert!(matches!(written, ClientError::UnknownOutcome { .. }) && written.retry() == Retry::AskFirst, "{written}");
    let read = client.why(task()).await.expect_err("no answer");
    assert!(matches!(read, ClientError::Unreachable { .. }), "{read}");
    seen.join().expect("two requests");
    // Nobody listens any more: nothing was sent, whatever it was.
    let written = client.create(&request(), None).await.expect_err("nobody there");
    assert!(matches!(written, ClientError::Unreachable { .. }) && written.retry() == Retry::Later, "{written}");
    assert!(written.to_string().contains("refused"), "{written}");
}

#[tokio::test]
async fn a_silent_server_is_waited_for_no_longer_than_asked() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = silent.local_addr().expect("an address").to_string();
    let timeouts = Timeouts { connect: Duration::from_millis(100), answer: Duration::from_millis(100) };
    let client = Client::with_timeouts(&url, timeouts).expect("a URL");
    let error = client.create(&request(), None).await.expect_err("silence");
    assert!(matches!(&error, ClientError::UnknownOutcome { why, .. } if why == "no answer in time"), "{error}");
}

#[tokio::test]
async fn a_create_is_repeated_with_its_key_until_it_is_known() {
    let answers =
        vec![problem(Code::OwnerUnavailable), None, problem(Code::OutcomeUnknown), Some((200, CREATED.into()))];
    let (url, seen) = server(answers);
    let client = Client::new(&url).expect("a URL");
    let mut pauses = Vec::new();
    let created = client
        .create_persistently(&request(), "k", |about: Duration, _: &ClientError| {
            pauses.push(about.as_millis());
            std::future::ready(true)
        })
        .await
        .expect("created");
    assert_eq!(created.task_id, task());
    let sent = seen.join().expect("requests");
    assert_eq!(sent.len(), 4);
    assert!(sent.iter().all(|s| s.contains("idempotency-key: k\r\n")));
    assert_eq!(pauses, [1, 100, 1], "what the server asks for, else its own");
}

#[tokio::test]
async fn a_refusal_is_not_repeated_and_nobody_is_asked_for_ever() {
    let (url, seen) = server(vec![problem(Code::IdempotencyConflict), problem(Code::Draining)]);
    let client = Client::new(&url).expect("a URL");
    let never = |_: Duration, _: &ClientError| std::future::ready(false);
    let refused = client.create_persistently(&request(), "k", never).await.expect_err("refused");
    assert_eq!(refused.problem().map(|p| p.code), Some(Code::IdempotencyConflict));
    let enough = client.create_persistently(&request(), "k", never).await.expect_err("enough");
    assert_eq!(enough.problem().map(|p| p.code), Some(Code::Draining));
    seen.join().expect("two requests");
}

#[tokio::test]
async fn what_is_no_answer_of_ours_is_shown() {
    let (url, seen) = server(vec![Some((502, "<html>Bad Gateway</html>".into())), Some((200, "[]".into()))]);
    let client = Client::new(&url).expect("a URL");
    let error = client.create(&request(), None).await.expect_err("HTML");
    assert!(error.to_string().contains("502") && error.to_string().contains("<html>"), "{error}");
    assert_eq!(error.retry(), Retry::AskFirst);
    let error = client.events(task()).await.expect_err("another shape");
    assert!(error.to_string().contains("GET /api/v1/task/4194304/events"), "{error}");
    assert_eq!(error.retry(), Retry::Later);
    seen.join().expect("two requests");
}

#[tokio::test]
async fn paths_and_queries_are_escaped() {
    let found = r#"{"tasks":[],"truncated":false,"unanswered":[]}"#;
    let (url, seen) = server(vec![Some((200, found.into())), Some((207, found.into()))]);
    let client = Client::new(&url).expect("a URL");
    client.business("订单/1 ?&#", Some("a&b")).await.expect("found");
    client.trace("0af7651916cd43dd8448eb211c80319c").await.expect("found");
    let sent = seen.join().expect("two requests");
    let path = "GET /api/v1/business/%E8%AE%A2%E5%8D%95%2F1%20%3F&%23?creator=a%26b ";
    assert!(sent[0].starts_with(path), "{}", sent[0]);
    assert!(sent[1].starts_with("GET /api/v1/trace/0af7651916cd43dd8448eb211c80319c "), "{}", sent[1]);
}

#[tokio::test]
async fn what_http_cannot_carry_is_refused_before_anything_is_sent() {
    for (url, why) in [("https://127.0.0.1:1", "only http://"), ("http://", "host"), ("http://[", "the URL")] {
        let error = Client::new(url).expect_err(url);
        assert!(error.to_string().contains(why) && error.retry() == Retry::Never, "{error}");
    }
    let client = Client::new("127.0.0.1:1").expect("a URL without its scheme");
    for key in ["", "ключ", "a\nb"] {
        let error = client.create(&request(), Some(key)).await.expect_err("no header value");
        assert!(matches!(error, ClientError::Unsendable { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_page_is_asked_for_with_every_filter() {
    let page = r#"{"tasks":[{"task_id":"4194304","status":"LOST","run_no":1,"task_type":"t","queue":"q","creator":"c",
        "created_at":5}],"next_cursor":"abc","looked_at":9,"looked_to":7,"unanswered":[3]}"#;
    let (url, seen) = server(vec![Some((207, page.to_owned()))]);
    let query = TasksQuery {
        states: vec![TaskState::Failed, TaskState::Lost],
        queue: Some("q".into()),
        labels: [("team".into(), "a=b&c".into()), ("x".into(), "".into())].into_iter().collect(),
        from: Some(5),
        order: ListOrder::Oldest,
        limit: Some(7),
        cursor: Some("a-b".into()),
        ..TasksQuery::default()
    };
    let page = Client::new(&url).expect("a client").tasks(&query).await.expect("a page");
    assert_eq!((page.tasks[0].task_id, page.page.next_cursor.as_deref()), (task(), Some("abc")));
    assert_eq!((page.page.looked_at, page.page.looked_to, page.page.unanswered), (9, Some(7), vec![3]));
    let line = seen.join().expect("a request").remove(0).lines().next().expect("a line").to_owned();
    let sent = "GET /api/v1/tasks?state=FAILED%2CLOST&queue=q&from=5&label=team%3Da%3Db%26c&label=x%3D&order=oldest\
                &limit=7&cursor=a-b HTTP/1.1";
    assert_eq!(line, sent);
}

#[tokio::test]
async fn a_stream_is_read_message_by_message_to_its_end() {
    let record = r#"{"partition":1,"offset":4,"broker_time":7,"verdict":"accepted"}"#;
    let end = serde_json::to_string(&rest_client::contract::Problem::new(Code::Draining, "ends")).expect("JSON");
    let body = format!(
        ": alive\n\nid: 1,5\nevent: record\ndata: {record}\n\nevent: newer\ndata: ?\n\n: alive\n\n\
                        event: end\ndata: {end}\n\nevent: record\ndata: never read\n\n"
    );
    let (url, seen) =
        server(vec![Some((200, body)), problem(Code::PositionGone), Some((200, "event: record\n\n".into()))]);
    let client = Client::new(&url).expect("a client");
    let query = StreamQuery { from: StreamFrom::Cursor("1,4".into()), ..StreamQuery::default() };
    let messages: Vec<_> = client.events_stream(&query).await.expect("a stream").collect().await;
    let [Ok(StreamMessage::Record { cursor, record }), Ok(StreamMessage::End(why))] = &messages[..] else {
        panic!("{messages:?}")
    };
    assert_eq!((cursor.as_str(), record.offset, why.code), ("1,5", 4, Code::Draining));
    let refused = client.events_stream(&query).await.err().expect("a problem");
    assert_eq!(refused.problem().map(|problem| problem.code), Some(Code::PositionGone));
    let broken: Vec<_> = client.events_stream(&query).await.expect("a stream").collect().await;
    assert!(broken.iter().all(Result::is_err), "{broken:?}");
    let asked = seen.join().expect("requests").remove(0);
    assert!(asked.starts_with("GET /api/v1/events/stream?cursor=1%2C4 "), "{asked}");
}

#[tokio::test]
async fn a_stream_until_now_is_over_when_its_end_is_reached() {
    let body = "id: 1,5\nevent: reached\ndata: {}\n\nevent: record\ndata: never read\n\n".to_owned();
    let (url, seen) = server(vec![Some((200, body))]);
    let client = Client::new(&url).expect("a client");
    let query = StreamQuery { until_now: true, ..StreamQuery::default() };
    let messages: Vec<_> = client.events_stream(&query).await.expect("a stream").collect().await;
    let [Ok(StreamMessage::Reached { cursor })] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(cursor, "1,5");
    let asked = seen.join().expect("requests").remove(0);
    assert!(asked.starts_with("GET /api/v1/events/stream?until=now "), "{asked}");
}
