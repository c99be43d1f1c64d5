//! What a server and a worker tell of themselves, as real processes: one trace from upstream to result,
//! log lines, and that nothing of it holds anything up.

use std::process::{Child, Stdio};

use ::telemetry::testing::{Collector, Received};

use crate::kit::{Dev, program};
use crate::patience::until;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const UNRECORDED: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const UPSTREAM: &str = "00f067aa0ba902b7";
const CANARY: &str = "canary-4711-nobody-may-see-this";

struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// Fails at first, then answers with the trace context it was given.
fn worker(dev: &Dev, dir: &std::path::Path, flags: &[&str]) -> Worker {
    let says = std::fs::File::create(dir.join("worker.says")).expect("a file");
    let child = program()
        .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT")
        .args(["worker", "--log-format", "json", "exec", "--url", &dev.url, "--type", "flaky", "--name", "w1"])
        .args(flags)
        .args(["--", "sh", "-c", r#"[ "$DUALTRACK_ATTEMPT" != 1 ] || exit 3; echo "\"$TRACEPARENT\"""#])
        .stdin(Stdio::null())
        .stdout(says.try_clone().expect("a file"))
        .stderr(says)
        .spawn()
        .expect("the program starts");
    Worker(child)
}

// Creates a task and waits for its end; what it came to.
fn run(dev: &Dev, traceparent: &str) -> serde_json::Value {
    let headers = format!("content-type: application/json\r\ntraceparent: {traceparent}\r\n");
    let body = format!(r#"{{"task_type":"flaky","payload":"{CANARY}","max_retries":2}}"#);
    let json = |(head, body): (String, String)| -> serde_json::Value {
        serde_json::from_str(body.trim()).unwrap_or_else(|why| panic!("{why}: {head}\n{body}"))
    };
    let created = json(dev.ask("POST", "/api/v1/task/create", &headers, &body));
    let id = created["task_id"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
    let view = json(dev.ask("GET", &format!("/api/v1/task/{id}?wait=30s"), "", ""));
    assert_eq!(view["status"], "SUCCESS", "{view}");
    json(dev.ask("GET", &format!("/api/v1/task/{id}/result"), "", ""))["result"].clone()
}

fn named<'a>(spans: &'a [Received], name: &str) -> Vec<&'a Received> {
    spans.iter().filter(|span| span.trace == TRACE && span.name == name).collect()
}

#[test]
fn one_trace_joins_upstream_create_assignment_execution_retry_and_result() {
    let dir = tempfile::tempdir().expect("a folder");
    let collector = Collector::start();
    let endpoint = format!("telemetry.otlp_endpoint={}", collector.endpoint());
    let quick = ["--partitions", "2", "--set", "task_engine.backoff_base_ms=1", "--set", &endpoint];
    let json = ["--set", "telemetry.log_format=json"];
    let dev = Dev::start(&dir.path().join("data"), &[&quick[..], &json[..]].concat());
    let worker = worker(&dev, dir.path(), &["--otlp-endpoint", &collector.endpoint()]);

    let unrecorded = run(&dev, &format!("00-{UNRECORDED}-{UPSTREAM}-00"));
    assert!(unrecorded.as_str().is_some_and(|text| text.ends_with("-00")), "{unrecorded}");
    let result = run(&dev, &format!("00-{TRACE}-{UPSTREAM}-01"));
    let wanted = [
        ("POST /api/v1/task/create", 1),
        ("TaskCreated", 1),
        ("TaskAssigned", 2),
        ("hand-out", 2),
        ("execute", 2),
        ("attempt", 2),
        ("TaskFailed", 1),
        ("TaskRetryApproved", 1),
        ("TaskReplayPlanned", 1),
        ("TaskRetried", 1),
        ("TaskCompleted", 1),
    ];
    let spans = collector.until("the trace", |spans| {
        wanted.iter().all(|(name, n)| named(spans, name).len() >= *n) && !named(spans, "store rows").is_empty()
    });
    let trace: Vec<&Received> = spans.iter().filter(|span| span.trace == TRACE).collect();
    for (name, n) in wanted {
        assert_eq!(named(&spans, name).len(), n, "{name}: {trace:#?}");
    }
    // A tree whose root is upstream's span, over all services.
    for span in &trace {
        let known = span.parent == UPSTREAM || trace.iter().any(|other| other.span == span.parent);
        assert!(known, "{} hangs on {}, which nobody told of", span.name, span.parent);
        assert!(span.start_ns <= span.end_ns, "{span:?}");
    }
    let request = named(&spans, "POST /api/v1/task/create")[0];
    assert_eq!(request.parent, UPSTREAM);
    assert_eq!(named(&spans, "TaskCreated")[0].parent, request.span);
    assert_eq!(named(&spans, "TaskRetryApproved")[0].links, [named(&spans, "TaskFailed")[0].span.clone()]);
    assert!(named(&spans, "execute").iter().all(|span| span.service == "dualtrack-worker"));
    assert!(named(&spans, "TaskFailed")[0].error.is_some());
    // What the handler was given is its own execution.
    let second = named(&spans, "execute").into_iter().find(|span| span.error.is_none()).expect("a success");
    assert_eq!(result, serde_json::json!(format!("00-{TRACE}-{}-01", second.span)));
    assert!(spans.iter().all(|span| span.trace != UNRECORDED), "a trace that its caller does not record");

    for span in &spans {
        assert!(!format!("{span:?}").contains(CANARY), "a payload in {span:?}");
    }
    drop(worker);
    let log = dev.log();
    let said = std::fs::read_to_string(dir.path().join("worker.says")).expect("readable");
    assert!(!log.contains(CANARY) && !said.contains(CANARY), "a payload in a log:\n{log}\n{said}");
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        assert!(line["timestamp"].is_string() && line["level"].is_string() && line["target"].is_string(), "{line}");
    }
    assert_eq!(dev.terminate(), Some(0));
}

#[test]
fn a_collector_that_is_away_holds_nothing_up() {
    let dir = tempfile::tempdir().expect("a folder");
    // Nobody listens there any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let endpoint = format!("telemetry.otlp_endpoint=http://{gone}");
    let dev = Dev::start(&dir.path().join("data"), &["--partitions", "2", "--set", &endpoint]);
    let _worker = worker(&dev, dir.path(), &[]);
    run(&dev, &format!("00-{TRACE}-{UPSTREAM}-01"));
    let failed = || {
        let page = dev.metrics();
        let line = page.lines().find_map(|line| line.strip_prefix("dualtrack_spans_failed_total "));
        line.is_some_and(|count| count.trim() != "0")
    };
    // The first batch leaves after a second. A span is counted before its line is written.
    until("a span that failed is counted and told of", || {
        (failed() && dev.log().contains("the collector does not take spans")).then_some(())
    });
    assert_eq!(dev.terminate(), Some(0));
}

#[test]
fn an_endpoint_that_is_none_is_refused_by_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let why = Dev::try_start(&dir.path().join("data"), &["--set", "telemetry.otlp_endpoint=collector:4317"])
        .err()
        .expect("refused");
    assert!(why.contains("telemetry.otlp_endpoint") && why.contains("4318"), "{why}");
}
