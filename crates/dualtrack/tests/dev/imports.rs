//! `task create --from` against a real server: case 13, and files that are interrupted and sent again.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::kit::{Dev, Said, program};

/// A server, and a folder for files.
struct Place {
    dir: tempfile::TempDir,
    dev: Dev,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let dev = Dev::start(&dir.path().join("data"), &["--partitions", "4"]);
        Self { dir, dev }
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    fn import(&self, path: &Path, more: &[&str]) -> Said {
        import(&self.dev.url, path, more)
    }

    /// Tasks that are open, whatever line they came from.
    fn open_tasks(&self) -> u64 {
        let address = self.dev.url.strip_prefix("http://").expect("a URL");
        let mut socket = std::net::TcpStream::connect(address).expect("a connection");
        write!(socket, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("sent");
        let mut text = String::new();
        socket.read_to_string(&mut text).expect("an answer");
        let values = text.lines().filter(|line| line.starts_with("dualtrack_partition_open_tasks{"));
        values.map(|line| line.rsplit(' ').next().expect("a value").parse::<u64>().expect("a number")).sum()
    }
}

fn import(url: &str, path: &Path, more: &[&str]) -> Said {
    let mut command = program();
    command.args(["task", "create", "--url", url, "--from"]).arg(path).args(more);
    command.output().expect("the program starts").into()
}

/// What was said of each line: line, outcome, and task or code.
fn outcomes(said: &Said) -> Vec<(u64, String, String)> {
    let lines = said.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let lines = lines.filter(|line| line.get("summary").is_none());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines
        .map(|line| {
            let more = line.get("task_id").or_else(|| line.get("code")).map(text).unwrap_or_default();
            (line["line"].as_u64().expect("a line"), text(&line["outcome"]), more)
        })
        .collect()
}

fn lines_of(said: &Said, outcome: &str) -> Vec<u64> {
    outcomes(said).into_iter().filter(|(_, became, _)| became == outcome).map(|(line, ..)| line).collect()
}

const JSON: &[&str] = &["--output", "json"];

#[test]
fn files_as_they_come_from_the_field_make_exactly_their_tasks() {
    let place = Place::new();
    let utf16 = |text: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(order).collect()
    };
    let bom = b"\xef\xbb\xbf";
    let csv = "task_type,payload.text,label.国\r\nt,\"a\nb\",中\r\n\r\nt,\"say \"\"hi\"\"\",\r\nt,last,";
    let semicolons = "task_type;payload;queue\nt;\"{\"\"n\"\": 9223372036854775808}\";q,1\n";
    let jsonl = "{\"task_type\":\"t\",\"payload\":[1]}\r\n\r\n  \n{\"task_type\":\"t\"}";
    let long = format!("{{\"task_type\":\"t\",\"payload\":\"{}\"}}", "x".repeat(200 * 1024));
    let padded = format!("{{\"task_type\":\"t\",{}\"payload\":1}}", " ".repeat(300 * 1024));
    for (name, content, lines) in [
        ("bom.csv", [bom, csv.as_bytes()].concat(), &[2, 5, 6][..]),
        ("semicolons.csv", semicolons.into(), &[2]),
        ("utf16le.csv", utf16(csv, u16::to_le_bytes), &[2, 5, 6]),
        ("utf16be.csv", utf16(csv, u16::to_be_bytes), &[2, 5, 6]),
        ("header.csv", "task_type,payload\r\n".into(), &[]),
        ("empty.csv", Vec::new(), &[]),
        ("bom.jsonl", [bom, jsonl.as_bytes()].concat(), &[1, 4]),
        ("utf16.jsonl", utf16(jsonl, u16::to_le_bytes), &[1, 4]),
        ("empty.jsonl", Vec::new(), &[]),
        ("long.jsonl", format!("{long}\n{padded}\n").into(), &[1, 2]),
    ] {
        let path = place.file(name, content);
        let before = place.open_tasks();
        let said = place.import(&path, JSON).ended(0);
        assert_eq!(lines_of(&said, "created"), lines, "{name}: {}", said.out);
        assert_eq!(place.open_tasks() - before, lines.len() as u64, "{name}");
        let again = place.import(&path, JSON).ended(0);
        assert_eq!(lines_of(&again, "duplicate"), lines, "{name}: {}", again.out);
    }
    // The cells as they were, quotes and line breaks included, and the label.
    let first = &outcomes(&place.import(&place.dir.path().join("bom.csv"), JSON).ended(0))[0].2;
    let json = place.dev.task(&["show", first, "--output", "json"]).ended(0).out;
    let view: Value = serde_json::from_str(&json).expect("JSON");
    let payload = task_events::Sha256Hash::of(br#"{"text":"a\nb"}"#).to_string();
    assert_eq!((view["payload_hash"].as_str(), view["labels"]["国"].as_str()), (Some(payload.as_str()), Some("中")));
    assert!(view["label"].is_null());
}

#[test]
fn what_cannot_be_read_names_its_physical_line_and_sends_nothing() {
    let place = Place::new();
    let quote = format!("task_type,queue\nt,\"q\n{}", "t,q\n".repeat(100_000));
    let too_many = "task_type,queue\nt,q\n\nt,q,x\nt,q\n";
    let odd = [0xff, 0xfe, b'{', 0, b'}', 0, b'\n'];
    for (name, content, words) in [
        ("quote.csv", quote.clone().into_bytes(), &["line 2 opens a quote"][..]),
        ("cells.csv", too_many.into(), &["line 4", "3 cells", "nothing was sent", "--keep-going"]),
        ("column.csv", "task_type,prio\nt,1\n".into(), &["line 1", "\"prio\"", "priority"]),
        ("cut.jsonl", "{\"task_type\":\"t\"}\n{\"task_ty".into(), &["line 2", "still being written"]),
        ("twice.jsonl", "{\"task_type\":\"t\",\"task_type\":\"u\"}\n".into(), &["line 1", "duplicate_field"]),
        ("latin.csv", b"task_type,queue\nt,caf\xe9\n".to_vec(), &["line 2", "not UTF-8"]),
        ("half.jsonl", odd.to_vec(), &["line 1", "no text in the file's encoding"]),
    ] {
        let path = place.file(name, content);
        let said = place.import(&path, &[]).ended(2);
        for word in words {
            assert!(said.err.contains(word), "{name}: {word} is missing in {}", said.err);
        }
    }
    assert_eq!(place.open_tasks(), 0, "nothing of any of them");
    // Repaired where it stands; then all of it, and all of it once.
    let repaired = place.file("quote.csv", quote.replacen("\"q\n", "q\n", 1).replace("t,q\nt,q\nt,q\nt,q\n", "t,q\n"));
    let lines = std::fs::read_to_string(&repaired).expect("readable").lines().count() as u64 - 1;
    let (first, second) = (place.import(&repaired, &[]).ended(0), place.import(&repaired, &[]).ended(0));
    assert!(first.out.starts_with(&format!("{lines} created")), "{}", first.out);
    assert!(second.out.starts_with("0 created") && second.out.contains(&format!("{lines} dup")), "{}", second.out);
    assert_eq!(place.open_tasks(), lines);
}

#[test]
fn rejected_lines_are_kept_and_the_others_go_on() {
    let place = Place::new();
    let big = format!("{{\"task_type\":\"t\",\"payload\":\"{}\"}}", "x".repeat(300 * 1024));
    let text =
        format!("{{\"task_type\":\"t\"}}\n{big}\n{{\"task_type\":\"t\",\"priority\":12}}\n{{\"task_type\":\"t\"}}\n");
    let path = place.file("mixed.jsonl", text);
    let rejects = place.dir.path().join("rejects.jsonl");
    let to = ["--output", "json", "--failed-to", rejects.to_str().expect("UTF-8")];
    let said = place.import(&path, &to).ended(3);
    assert_eq!(lines_of(&said, "created"), [1, 4]);
    let refused: Vec<_> = outcomes(&said).into_iter().filter(|(_, became, _)| became == "rejected").collect();
    let codes: Vec<_> = refused.iter().map(|(line, _, code)| (*line, code.as_str())).collect();
    assert_eq!(codes, [(2, "payload_too_large"), (3, "invalid_field")]);
    let priority = said.out.lines().find(|line| line.contains("\"line\":3")).expect("line 3");
    let priority: Value = serde_json::from_str(priority).expect("JSON");
    assert_eq!((priority["field"].as_str(), priority["value"].as_u64()), (Some("/priority"), Some(12)));
    assert_eq!(priority["limit"].as_str(), Some("0 to 9"));
    let kept = std::fs::read_to_string(&rejects).expect("the file");
    assert_eq!(kept.lines().collect::<Vec<_>>(), [big.as_str(), "{\"task_type\":\"t\",\"priority\":12}"]);
    // Never over what is there.
    assert!(place.import(&path, &to).ended(2).err.contains("there already"));

    let csv = place.file("mixed.csv", "queue;priority\nq;1\n\"q;\";x\nq;2;3\n");
    let rejects = place.dir.path().join("rejects.csv");
    let to = rejects.to_str().expect("UTF-8");
    let said = place.import(&csv, &["--type", "t", "--keep-going", "--failed-to", to]).ended(3);
    assert!(said.out.starts_with("1 created, 2 rejected") && said.err.contains("line 4"), "{}{}", said.out, said.err);
    assert_eq!(std::fs::read_to_string(&rejects).expect("the file"), "queue,priority\nq;,x\nq,2,3\n");
}

#[test]
fn what_makes_no_sense_is_refused_at_once() {
    let nobody = "http://127.0.0.1:1";
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tasks.jsonl");
    std::fs::write(&path, "{\"task_type\":\"t\"}\n").expect("a file");
    let away = import(nobody, &path, &[]).ended(4);
    assert!(away.err.contains("cannot be reached") && away.err.contains("named by --url"), "{}", away.err);
    for (args, word) in [
        (&["--deadline", "+1h"][..], "counts from now"),
        (&["--key", "k"], "--key"),
        (&["--wait"], "--wait"),
        (&["--delimiter", "ab"], "ASCII"),
        (&["--encoding", "klingon"], "klingon"),
        (&["--parallel", "0"], "1..=16"),
    ] {
        let said = import(nobody, &path, args).ended(2);
        assert!(said.err.contains(word), "{args:?}: {}", said.err);
    }
    assert!(import(nobody, &dir.path().join("none.csv"), &[]).ended(2).err.contains("none.csv"));
    assert!(import(nobody, dir.path(), &["--format", "csv"]).ended(2).err.contains("is a folder"));
    std::fs::copy(&path, dir.path().join("tasks.txt")).expect("a file");
    assert!(import(nobody, &dir.path().join("tasks.txt"), &[]).ended(2).err.contains("--format"));
}

/// `task create --from` as a process that a test ends.
struct Importing {
    child: Child,
}

impl Importing {
    fn start(url: &str, path: &Path) -> Self {
        let mut command = program();
        command.args(["task", "create", "--output", "json", "--parallel", "2", "--url", url, "--from"]).arg(path);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        Self { child }
    }

    /// Ends it with this signal once so many lines are settled; its exit code and what it said.
    fn end_after(mut self, lines: usize, signal: Signal) -> (Option<i32>, String) {
        let mut out = BufReader::new(self.child.stdout.take().expect("piped"));
        for _ in 0..lines {
            assert_ne!(
                out.read_line(&mut String::new()).expect("UTF-8"),
                0,
                "it ended before it was to be interrupted"
            );
        }
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a pid")).expect("not 0");
        kill_process(pid, signal).expect("it is there");
        std::io::copy(&mut out, &mut std::io::sink()).expect("read to its end");
        let mut said = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut said).expect("UTF-8");
        (self.child.wait().expect("it ended").code(), said)
    }
}

#[test]
fn a_long_file_that_is_interrupted_and_sent_again_makes_each_task_once() {
    const LINES: usize = 20_000;
    let place = Place::new();
    let text: String = (0..LINES).map(|n| format!("{{\"task_type\":\"t\",\"payload\":{n}}}\n")).collect();
    let path = place.file("many.jsonl", text);
    let url = &place.dev.url;
    assert_eq!(Importing::start(url, &path).end_after(2_000, Signal::KILL).0, None);
    let (code, said) = Importing::start(url, &path).end_after(5_000, Signal::INT);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("interrupted with") && said.contains("not created twice"), "{said}");
    let (code, _) = Importing::start(url, &path).end_after(8_000, Signal::TERM);
    assert_eq!(code, Some(143));
    assert!(place.open_tasks() < LINES as u64, "it was interrupted before its end");
    let said = place.import(&path, JSON).ended(0);
    let ids: BTreeSet<_> = outcomes(&said).into_iter().map(|(.., id)| id).collect();
    assert_eq!((ids.len(), place.open_tasks()), (LINES, LINES as u64));
    // From another folder, as from another machine, and through a pipe: the same lines.
    std::fs::create_dir(place.dir.path().join("elsewhere")).expect("a folder");
    let copy = place.file("elsewhere/many.jsonl", std::fs::read(&path).expect("readable"));
    assert!(place.import(&copy, &[]).ended(0).out.starts_with("0 created, 20000 duplicate"));
    let mut piped = program();
    piped.args(["task", "create", "--url", url, "--from", "-", "--format", "jsonl", "--name", "many.jsonl"]);
    let piped = Said::from(piped.stdin(std::fs::File::open(&path).expect("readable")).output().expect("it starts"));
    assert!(piped.ended(0).out.starts_with("0 created, 20000 duplicate"));
    assert_eq!(place.open_tasks(), LINES as u64);
}

#[test]
fn a_pipe_that_breaks_off_keeps_what_was_sent_and_says_where() {
    let place = Place::new();
    let mut command = program();
    command.args(["task", "create", "--url", &place.dev.url, "--from", "-", "--format", "csv"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut to = child.stdin.take().expect("piped");
    to.write_all(b"task_type,queue\nt,q\nt,q\nt,\"q\nt,q").expect("written");
    drop(to);
    let said = Said::from(child.wait_with_output().expect("it ended")).ended(2);
    assert!(said.err.contains("line 4 opens a quote") && said.err.contains("2 lines before it"), "{}", said.err);
    assert_eq!(place.open_tasks(), 2);
}
