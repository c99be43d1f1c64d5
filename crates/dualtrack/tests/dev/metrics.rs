//! The metrics of all services: their document, and what a server really tells.

use std::io::Write as _;
use std::process::{Command, Stdio};

use service_kit::metrics::PREFIX;
use service_kit::{Described, Measure};

use crate::kit::Dev;
use crate::patience::until;

const INTRODUCTION: &str = "\
# Metrics

Generated from the code by `make docs`. `GET /metrics` of a coordinator (`dualtrack dev` included) and of the probe port of
task-engine and auto-replay answers in Prometheus' text format 0.0.4. Durations are in seconds, sizes in bytes. Histograms have
`_bucket`, `_sum` and `_count`. Labels have few values: `partition` is below the topic's partition count, `queue` is one of the
50 longest queues or `_other`, `endpoint` is a path of the API with its parameters as names.

What is read off owners and log (`partition_*`, `snapshot_*`, `queue_*`, `zombie_*`) is absent for a partition whose owner or log
does not answer within a second. Each instance tells of the partitions that it owns; sum over instances. `dualtrack dev` tells of the
engine and the replayer beside its owners as well.

| metric | type | labels | says |
|---|---|---|---|
";

const USE: &str = "
## What to look at

| question | ask |
|---|---|
| does every partition have an owner? | `sum(dualtrack_partition_owning{service=\"coordinator\"}) == max(dualtrack_partitions)` |
| does anybody fall behind? | `max by (service) (dualtrack_partition_lag_records)` rises while `rate(dualtrack_partition_applied_offset[1m])` does not |
| do people see what is true? | `max(dualtrack_snapshot_lag_seconds) < 5` |
| is the store too slow? | `max(dualtrack_partition_owed_bytes)` towards 32 MiB; `histogram_quantile(0.99, rate(dualtrack_store_seconds_bucket[5m]))` |
| is the log too slow? | `histogram_quantile(0.99, rate(dualtrack_read_back_seconds_bucket[5m]))` |
| does somebody write who is nobody any more? | `rate(dualtrack_zombie_rejected_total[5m])`: a few at a take-over, none otherwise |
| does work wait for workers? | `dualtrack_queue_backlog` with `dualtrack_queue_running` |
| do callers see errors? | `sum by (endpoint) (rate(dualtrack_http_requests_total{status=\"5xx\"}[5m]))` |
| does anything stand that people should look at? | `dualtrack_alarm_active == 1`; what to do: [operations](guide/operations.md) |
";

fn all() -> Vec<&'static Described> {
    let mut all: Vec<_> = [
        service_kit::metrics::ALL,
        coordinator::metrics::ALL,
        coordinator_edge::metrics::ALL,
        service_http::metrics::ALL,
        task_engine::metrics::ALL,
        auto_replay::metrics::ALL,
        ::telemetry::metrics::ALL,
    ]
    .concat();
    all.sort_by_key(|what| what.name);
    all
}

fn page() -> String {
    let rows = all().into_iter().map(|what| {
        let labels = what.labels.join(", ");
        format!("| `{PREFIX}_{}` | {} | {labels} | {} |\n", what.name, what.measure.as_str(), what.help)
    });
    format!("{INTRODUCTION}{}{USE}", rows.collect::<String>())
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the switch that rewrites instead of comparing")]
fn the_page_is_generated() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, page()).expect("writable");
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page(), "run `make docs`");
}

#[test]
fn names_say_what_they_are() {
    for what in all() {
        let name = what.name;
        assert_eq!(name.ends_with("_total"), what.measure == Measure::Counter, "{name}");
        let seconds = matches!(what.measure, Measure::Histogram | Measure::Seconds);
        assert_eq!(name.ends_with("_seconds"), seconds, "{name}");
        assert!(!what.help.ends_with('.') && what.help.len() > 10, "{name}");
    }
    let mut names: Vec<_> = all().into_iter().map(|what| what.name).collect();
    names.dedup();
    assert_eq!(names.len(), all().len(), "two descriptions of one name");
}

// What it tells once engine and replayer hold the first partition.
fn once_all_tell(dev: &Dev) -> String {
    until("all of them tell how far they are", || {
        let text = dev.metrics();
        let tells = |service| text.contains(&format!("lag_records{{service=\"{service}\",partition=\"0\"}}"));
        ["coordinator", "task-engine", "auto-replay"].into_iter().all(tells).then_some(text)
    })
}

#[test]
fn a_server_tells_what_prometheus_reads() {
    let dir = tempfile::tempdir().expect("a folder");
    let dev = Dev::start(&dir.path().join("data"), &["--partitions", "2"]);
    dev.task(&["create", "--type", "t", "--payload", "1"]).ended(0);
    let text = once_all_tell(&dev);
    let known: Vec<String> = all().iter().map(|what| format!("{PREFIX}_{}", what.name)).collect();
    for line in text.lines().filter(|line| line.starts_with("# TYPE ")) {
        let name = line.split(' ').nth(2).expect("a name");
        assert!(known.iter().any(|known| known == name), "{name} is told and not documented");
    }
    for wanted in [
        "dualtrack_partition_lag_records{service=\"coordinator\",partition=\"0\"}",
        "dualtrack_partition_epoch{partition=\"1\"} 1",
        "dualtrack_snapshot_lag_seconds{partition=\"0\"}",
        "dualtrack_http_requests_total{endpoint=\"/api/v1/task/create\",method=\"POST\",status=\"2xx\"} 1",
        "dualtrack_queue_backlog{queue=\"t\"} 1",
        "dualtrack_read_back_seconds_count",
        "dualtrack_store_seconds_bucket{operation=\"put_payloads\",le=\"+Inf\"}",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    promtool(&text);
    assert_eq!(dev.terminate(), Some(0));
}

// scripts/setup.sh installs it; where it is missing the assertions above must do.
fn promtool(text: &str) {
    let mut check = Command::new("promtool");
    check.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = check.spawn() else {
        eprintln!("promtool is not installed (Debian package prometheus): its check is skipped");
        return;
    };
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let says = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "promtool check metrics: {says}\n{text}");
}
