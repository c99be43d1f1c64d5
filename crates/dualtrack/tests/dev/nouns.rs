//! The other nouns against a server that says what the test wants: pages, streams, answers per partition.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use rest_client::contract::{Code, Problem};
use serde_json::{Value, json};

use crate::kit::{Said, program};
use crate::request;

/// Starts a server that answers each request line with a status and a body.
fn server(answer: impl Fn(&str) -> (u16, Value) + Send + 'static) -> String {
    serve(move |socket, request| {
        let (status, body) = answer(request);
        request::answer(socket, status, &body.to_string());
    })
}

fn serve(answer: impl Fn(&mut TcpStream, &str) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.expect("a connection");
            let (head, _) = request::read(&socket);
            answer(&mut socket, head.lines().next().unwrap_or_default());
        }
    });
    url
}

fn ask(url: &str, args: &[&str]) -> Said {
    program().args(args).args(["--url", url]).output().expect("the program starts").into()
}

fn task(id: u64) -> Value {
    json!({"task_id": id.to_string(), "status": "FAILED_PERMANENTLY", "run_no": 1, "task_type": "订单", "queue": "q",
        "creator": "default", "created_at": 0, "error_code": "E", "error_summary": "why"})
}

#[test]
fn lists_go_on_page_by_page() {
    let url = server(|request| {
        assert!(request.contains("state=FAILED_PERMANENTLY"), "filters stay the same: {request}");
        if request.contains("cursor=two") {
            (200, json!({"tasks": [task(4_194_306)], "looked_at": 1}))
        } else {
            let tasks = [task(4_194_304), task(4_194_305)];
            (207, json!({"tasks": tasks, "next_cursor": "two", "looked_at": 2, "unanswered": [3]}))
        }
    });
    let list = ["task", "list", "--state", "failed_permanently"];
    let first = ask(&url, &list).ended(0);
    assert!(
        first.out.contains("4194305") && !first.out.contains("4194306") && first.out.contains("订单"),
        "{}",
        first.out
    );
    assert!(first.err.contains("--cursor two") && first.err.contains("did not answer: 3"), "{}", first.err);
    let all = ask(&url, &[&list[..], &["--all", "--output", "json"]].concat()).ended(0);
    let ids: Vec<_> =
        all.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["task_id"].clone()).collect();
    assert_eq!(ids, ["4194304", "4194305", "4194306"]);
    assert!(ask(&url, &["task", "list", "--state", "DONE"]).ended(2).err.contains("FAILED_PERMANENTLY"));
}

#[test]
fn what_goes_to_every_partition_says_where_it_did_not() {
    let url = server(|request| {
        let problem = Problem::new(Code::OwnerUnavailable, "partition 1 has no owner");
        let problem = if request.contains("resume") { Value::Null } else { json!(problem) };
        (207, json!({"partitions": [{"partition": 0}, {"partition": 1, "problem": problem}]}))
    });
    let paused = ask(&url, &["queue", "pause", "q"]).ended(4);
    assert!(
        paused.out.contains("1 of 2") && paused.err.contains("partition 1") && paused.err.contains("again"),
        "{}",
        paused.err
    );
    assert_eq!(ask(&url, &["queue", "resume", "q"]).ended(0).out, "q: resumed");
}

#[test]
fn rules_are_activated_or_it_is_said_who_lags() {
    let url = server(|request| {
        if request.starts_with("GET") {
            let member = json!({"group": "coordinator", "client_id": "c", "instance": "c", "rules_from": 1, "rules_to": 1,
                "partitions": [0]});
            let partitions = json!([{"partition": 0, "active": 1}]);
            return (207, json!({"known": 1, "partitions": partitions, "unanswered": [1], "members": [member]}));
        }
        (
            409,
            json!(Problem::new(
                Code::RulesUnsupported,
                "these members do not know rules 2: c of coordinator (up to 1)"
            )),
        )
    });
    let shown = ask(&url, &["rules", "show"]).ended(0);
    assert!(shown.out.starts_with("rules 1 are active\nthe server knows rules up to 1"), "{}", shown.out);
    assert!(shown.out.contains("coordinator") && shown.err.contains("did not answer"), "{}", shown.err);
    let refused = ask(&url, &["rules", "activate", "2"]);
    assert!(refused.code != 0 && refused.err.contains("c of coordinator (up to 1)"), "{}", refused.err);
    ask(&url, &["rules", "activate", "two"]).ended(2);
}

fn record(n: u64) -> String {
    let event = json!({"kind": "TaskCreated", "task_id": "4194304", "body": {"queue": "q"}});
    let record = json!({"partition": 0, "offset": n, "broker_time": 0, "verdict": "accepted", "event": event});
    format!("event: record\nid: c{n}\ndata: {record}\n\n")
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

#[test]
fn a_tail_ends_with_its_reader() {
    // Writes until nobody listens any more.
    let url = serve(|socket, _| {
        let mut alive = socket.write_all(STREAM.as_bytes()).is_ok();
        for n in 0.. {
            if !alive {
                break;
            }
            alive = socket.write_all(record(n).as_bytes()).is_ok();
        }
    });
    for output in ["table", "json"] {
        let mut command = program();
        command.args(["events", "tail", "--follow", "--output", output, "--url", &url]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("UTF-8");
        assert!(line.contains("TaskCreated"), "{line}");
        drop(out);
        let ended = Said::from(child.wait_with_output().expect("it ended")).ended(0);
        assert_eq!(ended.err, "");
    }
}

#[test]
fn a_tail_that_does_not_follow_ends_with_what_was_there() {
    // A log that never falls silent, as one whose owners renew: only the server knows where its end was.
    let url = serve(|socket, request| {
        assert!(request.contains("until=now") && request.contains("from=start"), "{request}");
        let reached = "event: reached\nid: c2\ndata: {}\n\n";
        let mut alive = socket.write_all(format!("{STREAM}{}{}{reached}", record(0), record(1)).as_bytes()).is_ok();
        for n in 2.. {
            if !alive {
                break;
            }
            alive = socket.write_all(record(n).as_bytes()).is_ok();
        }
    });
    let said = ask(&url, &["events", "tail", "--from", "start", "--output", "json"]).ended(0);
    assert_eq!((said.out.lines().count(), said.err.as_str()), (2, ""));
}

#[test]
fn a_result_that_is_no_json_is_printed_as_the_bytes_it_is() {
    let url = server(|request| {
        let result = if request.contains("/4194304/") {
            json!({"result": {"n": 1}})
        } else {
            json!({"result_base64": "/wANCmE="})
        };
        let mut view = json!({"task_id": "4194304", "run_no": 1, "result_data_hash": "0".repeat(64)});
        view.as_object_mut().expect("an object").extend(result.as_object().expect("an object").clone());
        (200, view)
    });
    let out = |task: &str, more: &[&str]| {
        let output = program().args(["task", "result", task, "--url", &url]).args(more).output().expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    assert_eq!(out("4194304", &[]), b"{\"n\":1}\n");
    assert_eq!(out("4194305", &[]), b"\xff\x00\r\na");
    let view: Value = serde_json::from_slice(&out("4194305", &["--output", "json"])).expect("JSON");
    assert_eq!(view["result_base64"], "/wANCmE=");
}

#[test]
fn a_tail_that_breaks_goes_on_behind_the_last_record() {
    let url = serve(|socket, request| {
        let from: u64 = request.split("cursor=c").nth(1).map_or(0, |rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().expect("a cursor of ours") + 1
        });
        let text = format!("{STREAM}{}{}", record(from), record(from + 1));
        let _ = socket.write_all(text.as_bytes());
        if from >= 4 {
            // A refusal that no repetition changes ends it.
            let problem = json!(Problem::new(Code::PositionGone, "the log begins later"));
            let _ = socket.write_all(format!("event: end\ndata: {problem}\n\n").as_bytes());
        } else {
            let problem = json!(Problem::new(Code::Draining, "hands over"));
            let _ = socket.write_all(format!("event: end\ndata: {problem}\n\n").as_bytes());
        }
    });
    let said = ask(&url, &["events", "tail", "--follow", "--from", "start", "--output", "json"]).ended(3);
    let offsets: Vec<_> =
        said.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["offset"].as_u64()).collect();
    assert_eq!(offsets, (0..6).map(Some).collect::<Vec<_>>(), "none twice, none left out");
    assert!(said.err.contains("going on behind") && said.err.contains("position_gone"), "{}", said.err);
}
