//! Prometheus' text exposition format, version 0.0.4.

use std::fmt::Write as _;

use coordinator::surface::{PartitionStatus, Status};
use service_kit::Metrics;
use task_events::PartitionId;

/// Everything there is to tell.
pub(super) fn text(metrics: &Metrics, status: &Status) -> String {
    let mut out = String::new();
    for (name, value) in metrics.counters() {
        let kind = if name.ends_with("_total") { "counter" } else { "untyped" };
        head(&mut out, name, kind, "a number of this process");
        line(&mut out, name, "", value);
    }
    let alarms = metrics.alarms();
    head(&mut out, "alarms_total", "counter", "how often an alarm went off");
    for (name, alarm) in &alarms {
        line(&mut out, "alarms_total", &label("alarm", name), alarm.count);
    }
    head(&mut out, "alarm_active", "gauge", "1 while an alarm stands");
    for (name, alarm) in &alarms {
        line(&mut out, "alarm_active", &label("alarm", name), u64::from(alarm.active));
    }
    head(&mut out, "partitions", "gauge", "partitions of the topic");
    line(&mut out, "partitions", "", u64::from(status.partitions));
    for (name, help, of) in PER_PARTITION {
        head(&mut out, name, "gauge", help);
        for (PartitionId(partition), owner) in &status.assigned {
            line(&mut out, name, &label("partition", &partition.to_string()), of(owner));
        }
    }
    out
}

type PerPartition = (&'static str, &'static str, fn(&PartitionStatus) -> u64);

const PER_PARTITION: [PerPartition; 6] = [
    ("partition_owning", "1 once the own claim was read back", |owner| u64::from(owner.owning)),
    ("partition_applied_offset", "offset of the next record to fold", |owner| owner.applied.0),
    ("partition_backlog", "tasks that could be handed out now", |owner| owner.backlog as u64),
    ("partition_open_tasks", "open tasks", |owner| owner.open_tasks as u64),
    ("partition_in_flight", "own records between append and read-back", |owner| owner.in_flight as u64),
    ("partition_owed_bytes", "rows owed to the store, bytes", |owner| owner.owed_bytes as u64),
];

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let name = sane(name);
    // Writing to a text cannot fail.
    let _ = writeln!(out, "# HELP dualtrack_{name} {help}\n# TYPE dualtrack_{name} {kind}");
}

fn line(out: &mut String, name: &str, labels: &str, value: u64) {
    let _ = writeln!(out, "dualtrack_{}{labels} {value}", sane(name));
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{{{name}=\"{value}\"}}")
}

fn sane(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_comment_or_a_sample() {
        let metrics = Metrics::default();
        metrics.counter("http_requests_total").add(3);
        metrics.counter("lag-records").set(7);
        metrics.alarm("store", "it is \"away\"");
        let mut status = Status { partitions: 4, ..Status::default() };
        status.assigned.insert(PartitionId(2), PartitionStatus { backlog: 5, ..PartitionStatus::default() });
        let text = text(&metrics, &status);
        for wanted in [
            "# TYPE dualtrack_http_requests_total counter\ndualtrack_http_requests_total 3\n",
            "dualtrack_lag_records 7\n",
            "dualtrack_alarm_active{alarm=\"store\"} 1\n",
            "dualtrack_partition_backlog{partition=\"2\"} 5\n",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("a sample");
            assert!(name.starts_with("dualtrack_") && value.parse::<u64>().is_ok(), "{line}");
        }
    }
}
