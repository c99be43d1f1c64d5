//! `task create --from` against a server that says what the test wants: what is sent again and with
//! which keys, what is halved, and what is refused because it was sent long ago.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rest_client::contract::{Code, Problem};
use serde_json::{Value, json};
use service_kit::{Clock as _, SystemClock};

use crate::kit::{Said, program};
use crate::request;

type Answer = Option<(u16, Value)>;

/// Answers each batch with the next of its answers (`None` closes the connection instead), the health
/// with an object, and every trace with what was found.
struct Server {
    url: String,
    batches: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    fn start(found: Value, answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let batches = Arc::new(Mutex::new(Vec::new()));
        let seen = batches.clone();
        std::thread::spawn(move || {
            let mut answers = answers.into_iter();
            for socket in listener.incoming() {
                one(&mut socket.expect("a connection"), &found, &mut answers, &seen);
            }
        });
        Self { url, batches }
    }

    /// The keys of the lines of each batch.
    fn keys(&self) -> Vec<Vec<String>> {
        let batches = self.batches.lock().expect("no panic");
        let key = |task: &Value| task["idempotency_key"].as_str().expect("a key").to_owned();
        batches.iter().map(|batch| batch["tasks"].as_array().expect("tasks").iter().map(key).collect()).collect()
    }
}

fn one(socket: &mut TcpStream, found: &Value, answers: &mut impl Iterator<Item = Answer>, seen: &Mutex<Vec<Value>>) {
    let (head, body) = request::read(socket);
    let answer = if head.starts_with("GET /api/v1/trace/") {
        Some((200, found.clone()))
    } else if head.starts_with("GET ") {
        Some((200, json!({})))
    } else {
        seen.lock().expect("no panic").push(serde_json::from_slice(&body).expect("JSON"));
        answers.next().expect("an answer is left")
    };
    if let Some((status, body)) = answer {
        request::answer(socket, status, &body.to_string());
    }
}

fn nothing() -> Value {
    json!({"tasks": [], "truncated": false, "unanswered": []})
}

fn refusal(code: Code) -> Value {
    json!(Problem::new(code, "because").fact("retry_after_ms", 1))
}

fn item(index: usize, outcome: &str, more: Value) -> Value {
    let mut item = json!({"index": index, "outcome": outcome, "status": 200});
    item.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    item
}

struct Import {
    _dir: tempfile::TempDir,
    file: PathBuf,
}

impl Import {
    fn of(lines: usize) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("tasks.jsonl");
        std::fs::write(&file, "{\"task_type\":\"t\"}\n".repeat(lines)).expect("a file");
        Self { _dir: dir, file }
    }

    fn run(&self, server: &Server, more: &[&str]) -> Said {
        let mut command = program();
        command.args(["task", "create", "--output", "json", "--parallel", "1", "--url", &server.url, "--from"]);
        command.arg(&self.file).args(more).output().expect("the program starts").into()
    }
}

#[test]
fn lines_are_asked_for_again_until_each_is_settled() {
    let third = json!({"items": [
        item(0, "created", json!({"task_id": "4194304"})),
        item(1, "unknown", json!({"problem": refusal(Code::OutcomeUnknown)})),
        item(2, "rejected", json!({"problem": refusal(Code::BacklogFull)})),
    ]});
    let alone = json!({"items": [item(0, "duplicate", json!({"task_id": "4194305"}))]});
    let server = Server::start(
        nothing(),
        vec![
            None,
            Some((503, refusal(Code::StoreBehind))),
            Some((207, third)),
            // Refused as a whole: the line that is to blame is found by halves.
            Some((422, refusal(Code::InvalidField))),
            Some((207, alone)),
            Some((422, refusal(Code::InvalidField))),
        ],
    );
    let said = Import::of(3).run(&server, &[]).ended(3);
    let outcomes: Vec<_> = said.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")).collect();
    let told: Vec<_> = outcomes.iter().map(|line| (line["line"].as_u64(), line["outcome"].as_str())).collect();
    assert_eq!(told[..3], [(Some(1), Some("created")), (Some(2), Some("duplicate")), (Some(3), Some("rejected"))]);
    let keys = server.keys();
    let [a, b, c] = [0, 1, 2].map(|i| keys[0][i].clone());
    let expected =
        [vec![a.clone(), b.clone(), c.clone()], vec![a.clone(), b.clone(), c.clone()], vec![a, b.clone(), c.clone()]];
    assert_eq!(keys[..3], expected, "the same lines with the same keys");
    assert_eq!(keys[3..], [vec![b.clone(), c.clone()], vec![b], vec![c]]);
}

#[test]
fn what_stays_open_is_said_and_has_its_exit_code() {
    let unknown = |_| Some((504, refusal(Code::OutcomeUnknown)));
    let server = Server::start(nothing(), (0..1_000).map(unknown).collect());
    let said = Import::of(2).run(&server, &["--patience", "20ms"]).ended(5);
    assert!(said.out.contains("\"unknown\":2") && said.err.contains("not created twice"), "{}{}", said.out, said.err);
    let full = |_| Some((429, refusal(Code::BacklogFull)));
    let server = Server::start(nothing(), (0..1_000).map(full).collect());
    let said = Import::of(2).run(&server, &["--patience", "20ms"]).ended(4);
    assert!(said.out.contains("\"not_sent\":2") && said.out.contains("backlog_full"), "{}", said.out);
}

#[test]
fn what_was_sent_longer_ago_than_keys_hold_is_refused_without_again() {
    const HOUR_MS: i64 = 3_600_000;
    let found = |hours: i64| {
        json!({"truncated": false, "unanswered": [], "tasks": [{
            "task_id": "4194304", "status": "SUCCESS", "cancel_requested": false, "run_no": 1, "version": 4,
            "task_type": "t", "queue": "t", "creator": "default", "priority": 4,
            "created_at": SystemClock.wall_ms() - hours * HOUR_MS, "timeouts": {}, "exec_epoch": 1, "retry_count": 0,
            "max_retries": 3, "lost_count": 0, "memory_usage_percent": 0, "trace_id": "0af7651916cd43dd8448eb211c80319c",
            "labels": {}, "payload_hash": "00".repeat(32), "steps": [], "as_of": {"partition": 0, "offset": 9},
        }]})
    };
    let created = || Some((207, json!({"items": [item(0, "created", json!({"task_id": "4194305"}))]})));
    let import = Import::of(1);
    for hours in [25, 24 * 20] {
        let server = Server::start(found(hours), vec![created()]);
        let said = import.run(&server, &[]).ended(2);
        for word in ["tasks.jsonl", "4194304", "--again", "--name"] {
            assert!(said.err.contains(word), "{word} is missing in {}", said.err);
        }
        assert!(server.keys().is_empty(), "nothing was sent");
        import.run(&server, &["--again"]).ended(0);
        assert_eq!(server.keys().len(), 1);
    }
    let server = Server::start(found(23), vec![created()]);
    import.run(&server, &[]).ended(0);
    // Nobody can tell.
    let silent = json!({"tasks": [], "truncated": false, "unanswered": [3]});
    let server = Server::start(silent, vec![created()]);
    assert!(import.run(&server, &[]).ended(1).err.contains("partition 3 does not answer"));
    assert!(server.keys().is_empty());
}
