//! What lists look like on screens of 40, 80 and 120 columns, with texts in every script: compared with
//! the files in `golden`, which `UPDATE_DOCS=1` writes anew.

use rest_client::contract::{AttemptView, QueueView, TaskItem};
use task_events::{ExecutionId, Incarnation, TaskId, TaskState};
use unicode_width::UnicodeWidthStr as _;

use super::super::list::table;
use super::*;

const AT: i64 = 1_795_999_119_960;

fn task(n: u64) -> TaskId {
    TaskId::from_raw((380_345_723_523_694_592 + n).cast_signed()).expect("an id")
}

#[expect(clippy::disallowed_methods, reason = "the switch that rewrites instead of comparing")]
pub fn golden(name: &str, show: impl Fn(&Screen) -> String) {
    for width in [40, 80, 120] {
        let text = show(&Screen { width: Some(width), colour: false }) + "\n";
        for line in text.lines() {
            assert!(line.width() <= usize::from(width), "{width} columns: {line:?} in\n{text}");
        }
        let path = format!("{}/src/cli/golden/{name}-{width}.txt", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &text).expect("writable");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "{path}: run with UPDATE_DOCS=1");
    }
}

fn item(n: u64, status: TaskState, task_type: &str, worker: Option<&str>, error: Option<(&str, &str)>) -> TaskItem {
    TaskItem {
        task_id: task(n),
        status,
        run_no: 1,
        task_type: task_type.into(),
        queue: if n == 2 { "加急".into() } else { task_type.into() },
        creator: "default".into(),
        worker_id: worker.map(Into::into),
        created_at: AT,
        completed_at: status.is_terminal().then_some(AT + 1_000),
        error_code: error.map(|(code, _)| code.into()),
        error_summary: error.map(|(_, summary)| summary.into()),
        labels: [].into(),
    }
}

#[test]
fn tasks() {
    let tasks = [
        item(0, TaskState::Success, "word_count", Some("packer-7"), None),
        item(1, TaskState::Executing, "订单处理/结算与对账", Some("工作者-1"), None),
        item(2, TaskState::FailedPermanently, "📦 ship 👩‍💻", Some("w"), Some(("BANK_DOWN", "银行没有回应：连接被拒绝"))),
        item(3, TaskState::Cancelled, "e\u{301}clair \u{202e}kcab", None, None),
    ];
    golden("tasks", |screen| table(tasks.iter(), screen));
}

fn packer(name: &str, draining: bool, last_poll_at: Option<i64>) -> WorkerView {
    WorkerView {
        worker_id: name.into(),
        incarnation: Some(Incarnation(7)),
        handler_version: Some("2026-11".into()),
        queues: vec!["word_count".into(), "订单处理".into()],
        free_slots: 3,
        held: 1,
        last_poll_at,
        instance: Some("coordinator-1".into()),
        draining,
        running: 12,
    }
}

#[test]
fn workers_and_one_of_them() {
    let workers =
        vec![packer("packer-7", false, Some(AT)), packer("仓库-工作者-1", true, Some(AT)), packer("gone", false, None)];
    let view = WorkersView { workers, unanswered_instances: Vec::new(), unanswered: Vec::new() };
    golden("workers", |screen| super::workers(&view, screen));
    let attempt = AttemptView {
        task_id: task(1),
        task_type: "订单处理/结算与对账".into(),
        queue: "q".into(),
        status: TaskState::Executing,
        run_no: 1,
        exec_epoch: 2,
        execution_id: ExecutionId::NONE,
        assigned_at: AT,
    };
    let view = WorkerDetail {
        worker: packer("packer-7", false, Some(AT)),
        attempts: vec![attempt],
        unanswered_instances: Vec::new(),
        unanswered: Vec::new(),
    };
    golden("worker", |screen| worker(&view, screen));
}

#[test]
fn queues() {
    let queue = |name: &str, paused, paused_partitions: &[u16], polled_ms_ago| QueueView {
        queue: name.into(),
        paused,
        paused_partitions: paused_partitions.to_vec(),
        ready: 1_204,
        running: 64,
        open: 1_268,
        polled_ms_ago,
    };
    let queues = vec![
        queue("word_count", false, &[], Some(1_500)),
        queue("付款与对账（银行维护中）", true, &[0, 1], Some(90_000)),
        queue("🚚", false, &[1], None),
        queue("nobody", false, &[], None),
    ];
    let view = QueuesView { queues, unanswered: Vec::new() };
    golden("queues", |screen| super::queues(&view, screen));
}
