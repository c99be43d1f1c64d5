//! The other nouns against a server that says what the test wants: pages, streams, answers per partition.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use rest_client::contract::{Code, Problem};
use serde_json::{Value, json};

use crate::kit::{Said, program};

/// Starts a server that answers each request line with a status and a body.
fn server(answer: impl Fn(&str) -> (u16, Value) + Send + 'static) -> String {
    serve(move |socket, request| {
        let (status, body) = answer(request);
        let text = body.to_string();
        let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", text.len());
        let _ = socket.write_all((head + &text).as_bytes());
    })
}

fn serve(answer: impl Fn(&mut TcpStream, &str) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.expect("a connection");
            let mut reader = BufReader::new(socket.try_clone().expect("a socket"));
            let (mut request, mut length) = (String::new(), 0);
            reader.read_line(&mut request).expect("a request line");
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = n.trim().parse().expect("a number");
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            reader.read_exact(&mut vec![0; length]).expect("a body");
            answer(&mut socket, request.trim_end());
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
