//! Start, use, stop and refusal of `dualtrack dev`; exit codes and words of the command line.

use std::time::Duration;

use rustix::process::Signal;

use crate::kit::{Dev, Said, program, task};

#[test]
fn tasks_are_created_shown_awaited_and_cancelled_and_outlive_the_process() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let dev = Dev::start(&data, &[]);
    let id = dev.task(&["create", "--type", "order", "--payload", r#"{"n":9223372036854775808}"#]).ended(0).out;
    let json = dev.task(&["show", &id, "--output", "json"]).ended(0).out;
    let view: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((view["task_id"].as_str(), view["status"].as_str()), (Some(id.as_str()), Some("CREATED")));
    assert!(dev.task(&["why", &id]).ended(0).out.contains("waits for"));
    // Nobody works here: the wait ends before the task does.
    assert!(dev.task(&["show", &id, "--wait", "50ms"]).ended(6).err.contains("task why"));
    let keyed = ["create", "--type", "order", "--key", "k-1", "--payload", "[1]", "--label", "国=中"];
    let first = dev.task(&keyed).ended(0).out;
    let again = dev.task(&keyed).ended(0).out;
    assert!(again.starts_with(&first) && again.contains("same key"), "{again}");
    let other = dev.task(&["create", "--type", "order", "--key", "k-1", "--payload", "[2]"]).ended(3);
    assert!(other.err.contains("idempotency_conflict") && other.err.contains(&first), "{}", other.err);
    dev.task(&["cancel", &id, "--reason", "no more"]).ended(0);
    let cancelled = dev.task(&["show", &id, "--wait", "10s"]).ended(1);
    assert!(cancelled.out.contains("CANCELLED") && cancelled.err.contains("task events"), "{}", cancelled.out);
    let events = dev.task(&["events", &id]).ended(0).out;
    for words in ["TaskCreated", "TaskCancelRequested", "no more", "TaskCancelled", "accepted"] {
        assert!(events.contains(words), "{words} is missing in\n{events}");
    }
    assert!(!events.contains('\u{1b}'), "no colour where nobody looks at a terminal");
    assert_eq!(dev.task(&["result", &id]).ended(3).code, 3);

    assert_eq!(dev.terminate(), Some(0), "a clean hand-over");
    let dev = Dev::start(&data, &[]);
    assert!(dev.task(&["show", &first]).ended(0).out.contains("国=中"));
    assert!(dev.task(&["show", &id]).ended(0).out.contains("CANCELLED"));
    dev.task(&["replay", &id, "--reason", "after all"]).ended(0);
    assert!(dev.task(&["replay", &first]).ended(3).err.contains("task_open"));
    dev.kill();
    let dev = Dev::start(&data, &[]);
    assert!(dev.task(&["show", &first]).ended(0).out.contains("CREATED"));
    assert_eq!(dev.terminate(), Some(0));
}

#[test]
fn two_coordinators_in_one_process_answer_for_each_other_and_hand_over() {
    let dir = tempfile::tempdir().expect("a folder");
    let dev = Dev::start(&dir.path().join("data"), &["--instances", "2", "--partitions", "4"]);
    let ids: Vec<String> = (0..8).map(|_| dev.task(&["create", "--type", "t"]).ended(0).out).collect();
    ids.iter().for_each(|id| drop(dev.task(&["show", id]).ended(0)));
    assert_eq!(dev.terminate(), Some(0));
}

#[test]
fn a_folder_a_port_and_settings_that_cannot_work_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let (data, other) = (dir.path().join("data"), dir.path().join("other"));
    let dev = Dev::start(&data, &["--partitions", "2"]);
    // The file that its stderr goes to is the running one's, so the second is started by hand.
    let refused = |args: &[&str]| Said::from(program().arg("dev").args(args).output().expect("it starts"));
    let data = data.to_str().expect("UTF-8");
    let second = refused(&["--listen", "127.0.0.1:0", "--data", data]).ended(1);
    assert!(
        second.err.contains("is used by another dualtrack (pid") && second.err.contains("--data"),
        "{}",
        second.err
    );
    let port = dev.url.strip_prefix("http://").expect("a URL");
    let taken = refused(&["--listen", port, "--data", other.to_str().expect("UTF-8")]).ended(1);
    assert!(taken.err.contains("cannot listen on") && taken.err.contains("--listen"), "{}", taken.err);
    let stranger = refused(&["--listen", "0.0.0.0:0"]).ended(2);
    assert!(stranger.err.contains("--insecure"), "{}", stranger.err);
    assert!(refused(&["--set", "coordinator.leese_ms=1"]).ended(2).err.contains("leese_ms"));
    refused(&["--partitions", "many"]).ended(2);
    assert!(refused(&["--print-config"]).ended(0).out.contains("lease_ms = 60000"));
    assert_eq!(dev.terminate(), Some(0));
    let other_count = refused(&["--listen", "127.0.0.1:0", "--data", data, "--partitions", "3"]).ended(1);
    assert!(other_count.err.contains("has 2 partitions, configured are 3"), "{}", other_count.err);
}

#[test]
fn a_lease_that_cannot_be_renewed_does_not_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    for lease in ["30000", "59000"] {
        let lease_ms = format!("coordinator.lease_ms={lease}");
        let args = ["--set", "coordinator.heartbeat_ms=30000", "--set", &lease_ms];
        let said = Dev::try_start(&data, &args).err().expect("refused");
        assert!(said.contains(&format!("lease_ms = {lease}")) && said.contains("heartbeat_ms = 30000"), "{said}");
    }
    let args = ["--set", "coordinator.heartbeat_ms=30000", "--set", "coordinator.lease_ms=90000"];
    assert_eq!(Dev::start(&data, &args).terminate(), Some(0));
}

#[test]
fn without_an_archive_tasks_flow_and_it_says_that_nothing_is_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let dev = Dev::start(&data, &["--set", "archive.enabled=false"]);
    let id = dev.task(&["create", "--type", "t"]).ended(0).out;
    dev.task(&["show", &id]).ended(0);
    assert!(dev.log().contains("nothing_is_kept") && dev.log().contains("a restart loses all tasks"), "{}", dev.log());
    assert_eq!(dev.terminate(), Some(0));
    assert!(!data.exists(), "nothing was written where it would be kept");
}

#[test]
fn a_drain_gives_the_answers_that_are_waited_for() {
    let dir = tempfile::tempdir().expect("a folder");
    let dev = Dev::start(&dir.path().join("data"), &["--partitions", "2"]);
    let id = dev.task(&["create", "--type", "t"]).ended(0).out;
    let url = dev.url.clone();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let client = rest_client::Client::new(&url).expect("a URL");
    let waiting =
        runtime.spawn(async move { client.get(id.parse().expect("an id"), Some(Duration::from_secs(60))).await });
    // Whether it is under way by now or not: it is answered, or was certainly not taken.
    assert_eq!(dev.terminate(), Some(0));
    let answer = runtime.block_on(waiting).expect("no panic");
    assert!(answer.is_ok() || answer.is_err_and(|e| e.retry() == rest_client::contract::Retry::Later));
}

#[test]
fn failures_have_their_codes_and_say_what_to_do() {
    let nobody = "http://127.0.0.1:1";
    let away = task(nobody, &["show", "4194304"]).ended(4);
    assert!(away.err.contains("dualtrack dev") && away.err.contains("--url"), "{}", away.err);
    for args in [
        &["show", "not-an-id"][..],
        &["show", "-1"],
        &["create"],
        &["create", "--type", "t", "--payload", "{"],
        &["create", "--type", "t", "--payload", "@/no/such/file"],
        &["create", "--type", "t", "--deadline", "tomorrow"],
        &["replay", "4194304", "--from", "step"],
        &["frobnicate"],
    ] {
        task(nobody, args).ended(2);
    }
    assert_eq!(task("ftp://127.0.0.1", &["show", "4194304"]).ended(2).code, 2);
    let dir = tempfile::tempdir().expect("a folder");
    let dev = Dev::start(&dir.path().join("data"), &["--partitions", "2"]);
    // Above every id of its partition: one that was never given out.
    assert!(dev.task(&["show", "4194304"]).ended(3).err.contains("task_unknown"));
    let early = dev.task(&["create", "--type", "t", "--payload", "1", "--deadline", "1"]).ended(3);
    assert!(early.err.contains("deadline"), "{}", early.err);
    let version: Said = program().args(["version", "--url", &dev.url]).output().expect("the program starts").into();
    let version = version.ended(0).out;
    let both = concat!("client ", env!("CARGO_PKG_VERSION"), "\nserver ", env!("CARGO_PKG_VERSION"), " at ");
    assert!(version.starts_with(both) && version.contains("coordinator-1"), "{version}");
    // Stopped, not dead: it takes the request and does not answer.
    dev.signal(Signal::STOP);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let second = Duration::from_millis(300);
    let timeouts = rest_client::Timeouts { connect: second, answer: second };
    let client = rest_client::Client::with_timeouts(&dev.url, timeouts).expect("a URL");
    let request = rest_client::contract::CreateRequest { task_type: "t".into(), ..Default::default() };
    let silent = runtime.block_on(client.create(&request, None)).expect_err("no answer");
    assert!(matches!(silent, rest_client::ClientError::UnknownOutcome { .. }), "{silent}");
    dev.signal(Signal::CONT);
}
