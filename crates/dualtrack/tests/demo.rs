//! The demo as a user starts it, with real processes: killed half-way, resumed, proved complete.

use std::path::Path;
use std::process::{Command, Output};

use event_log::conformance::broker::Broker;
use tempfile::TempDir;

fn demo(dir: &Path, work: &Path, more: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_dualtrack"))
        .args(["demo", "--exit"])
        .args(["--dir".as_ref(), dir, "--work".as_ref(), work])
        .arg("--checker")
        .arg(root.join("tests/checker/check.py"))
        .args(more)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

// Names and contents that trip programs: blanks, other scripts, nothing at all, no text.
fn tree() -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    };
    write("empty", b"");
    write("with blanks in its name.txt", b"one two  three\nfour");
    write("仓库/库存.csv", "货号,数量\n1,2\n".as_bytes());
    write("deep/er/and/deeper.bin", &(0..=255u8).cycle().take(100_000).collect::<Vec<_>>());
    for n in 0..26 {
        write(&format!("many/{n}.txt"), format!("{n}\n").repeat(n * 7).as_bytes());
    }
    dir
}

fn adds_up(output: &Output) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("everything adds up"), "{out}");
    assert!(out.contains("30 of 30 tasks ended in SUCCESS"), "{out}");
    assert!(!out.contains('\u{1b}'), "no colour where nobody looks at a terminal: {out}");
}

#[test]
fn on_the_embedded_log_it_is_killed_resumed_and_complete() {
    let (dir, work) = (tree(), tempfile::tempdir().expect("a folder"));
    adds_up(&demo(dir.path(), &work.path().join("work"), &[]));
}

#[test]
fn on_a_real_kafka_it_is_killed_resumed_and_complete() {
    let broker = Broker::shared();
    let (dir, work) = (tree(), tempfile::tempdir().expect("a folder"));
    let more = ["--log", "kafka", "--bootstrap", &broker.bootstrap, "--topic", "demo-end-to-end"];
    adds_up(&demo(dir.path(), &work.path().join("work"), &more));
}

#[test]
fn what_cannot_work_is_said_with_what_to_do_next() {
    let (empty, work) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let nothing = demo(empty.path(), &work.path().join("work"), &[]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(text(&nothing.stderr).contains("holds no files: give --dir"), "{}", text(&nothing.stderr));
    let nowhere = demo(Path::new("/no/such/folder"), &work.path().join("work"), &[]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("/no/such/folder"), "{}", text(&nowhere.stderr));
    let flag = demo(empty.path(), work.path(), &["--log", "paper"]);
    assert_eq!(flag.status.code(), Some(2));
    assert!(text(&flag.stderr).contains("embedded, kafka"), "{}", text(&flag.stderr));
}

#[test]
fn a_folder_that_is_not_its_own_is_not_emptied() {
    let (dir, work) = (tree(), tempfile::tempdir().expect("a folder"));
    std::fs::write(work.path().join("thesis.txt"), "years of work").expect("a file");
    let output = demo(dir.path(), work.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is not a folder of an earlier demo"), "{}", text(&output.stderr));
    assert!(work.path().join("thesis.txt").exists());
}
