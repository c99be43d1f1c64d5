//! What reports meet: counted, on record already, fenced, too early.

use task_core::decide::{self, Fate, Report, ReportBody};
use task_events::*;

use crate::kit::{play, task};
use crate::policy::view;

fn start() -> ReportBody {
    ReportBody::Starting { start_time: 0, memory_usage_percent: 0 }
}

fn step(name: &str) -> ReportBody {
    let output_hash = Sha256Hash::of(name.as_bytes());
    ReportBody::Step(StepDone { step: name.into(), index: 0, output_hash, is_idempotent: false })
}

fn success(result: [u8; 32]) -> ReportBody {
    let result_data_hash = Sha256Hash(result);
    ReportBody::Success { result_data_hash, execution_time_ms: 0, steps_done: vec![], memory_usage_percent: 0 }
}

fn failure(code: &str) -> ReportBody {
    ReportBody::Failure {
        error_code: code.into(),
        error_message: "".into(),
        category: ErrorCategory::Transient,
        failed_step: None,
        is_idempotent: None,
        execution_time_ms: 0,
        steps_done: vec![],
        memory_usage_percent: 0,
    }
}

fn fate(text: &str, body: ReportBody) -> Fate {
    let w = play(&format!("claim | submit t1 | {text}"));
    view(&w, |v| decide::classify(v, &Report { attempt: v.core.attempt(), worker_id: "w".into(), body }))
}

#[test]
fn reports_in_every_state() {
    use Fate::{Counts, Duplicate, Fenced, TooEarly};
    let again = "assign t1 | fail t1 E | approve t1 | plan t1 | retry t1";
    for (text, fates) in [
        ("overdue t1", [Fenced, Fenced, Fenced, Fenced, Fenced]),
        ("assign t1", [Counts, TooEarly, Counts, Counts, Counts]),
        ("assign t1 | start t1", [Duplicate, Counts, Counts, Counts, Fenced]),
        ("assign t1 | fail t1 E", [Fenced, Fenced, Fenced, Duplicate, Fenced]),
        (again, [Fenced, Fenced, Fenced, Duplicate, Fenced]),
        ("assign t1 | lose t1", [Fenced, Fenced, Counts, Fenced, Fenced]),
        ("assign t1 | lose t1 | approve t1 | plan t1 | retry t1", [Fenced, Fenced, Counts, Fenced, Fenced]),
        ("assign t1 | release t1", [Fenced, Fenced, Fenced, Fenced, Fenced]),
    ] {
        let bodies = [start(), step("z"), success([0; 32]), failure("E"), ReportBody::Declined { draining: false }];
        assert_eq!(bodies.map(|body| fate(text, body)), fates, "{text}");
    }
    assert_eq!(fate("assign t1 | fail t1 E", failure("F")), Fenced, "another failure is not the one on record");
    assert_eq!(fate("assign t1 | lose t1", failure("WORKER_LOST")), Fenced, "the owner said so, not the worker");
    assert_eq!(
        fate("assign t1 | timeout t1 START_TO_CLOSE", failure("TIMEOUT_START_TO_CLOSE")),
        Duplicate,
        "both saw it"
    );
    let waited = "assign t1 | fail t1 E | approve t1 | plan t1 | retry t1 | timeout t1 SCHEDULE_TO_START";
    assert_eq!(fate(waited, failure("TIMEOUT_SCHEDULE_TO_START")), Fenced, "that was the task's, not the attempt's");
}

fn late_fate(text: &str, body: ReportBody) -> Fate {
    let w = play(&format!("claim | submit t1 | {text}"));
    let closed = &w.closed[&task(1)];
    let report = Report { attempt: closed.core.attempt(), worker_id: "w".into(), body };
    for other in [
        task_core::Attempt { run_no: RunNo(9), ..report.attempt },
        task_core::Attempt { execution_id: ExecutionId::new(task(1), ExecEpoch(9)), ..report.attempt },
    ] {
        assert_eq!(decide::classify_closed(closed, &Report { attempt: other, ..report.clone() }), Fate::Fenced);
    }
    decide::classify_closed(closed, &report)
}

#[test]
fn reports_of_closed_tasks() {
    use Fate::{Duplicate, Fenced};
    let result = Sha256Hash::of(b"").0;
    let done = "assign t1 | start t1 | step t1 a | complete t1";
    let given_up = "assign t1 | fail t1 OOPS | giveup t1 OOPS";
    for (text, body, fate) in [
        (done, success(result), Duplicate),
        (done, success([1; 32]), Fenced),
        (done, failure("OOPS"), Fenced),
        (done, step("a"), Duplicate),
        (done, step("b"), Fenced),
        (done, start(), Fenced),
        (given_up, failure("OOPS"), Duplicate),
        (given_up, failure("OTHER"), Fenced),
        (given_up, success(result), Fenced),
        ("assign t1 | fail t1 OOPS | giveup t1 OOPS | review t1", failure("OOPS"), Duplicate),
        ("assign t1 | lose t1 | giveup t1 WORKER_LOST", failure("WORKER_LOST"), Fenced),
        ("assign t1 | lose t1 | giveup t1 WORKER_LOST", success(result), Fenced),
        ("assign t1 | cancel t1 | fail t1 CANCELLED | cancelled t1", failure("CANCELLED"), Duplicate),
        ("assign t1 | cancel t1 | cancelled t1", failure("CANCELLED"), Fenced),
        // The error on record is that of the attempt before.
        (
            "assign t1 | fail t1 E | approve t1 | plan t1 | retry t1 | assign t1 | cancel t1 | cancelled t1",
            failure("E"),
            Fenced,
        ),
    ] {
        let said = format!("{text}: {body:?}");
        assert_eq!(late_fate(text, body), fate, "{said}");
    }
}

#[test]
fn a_failure_is_explained_and_its_message_cut_on_a_character() {
    let w = play("claim | submit t1 max=4 | assign t1");
    let body = ReportBody::Failure {
        error_code: "E".into(),
        error_message: "ü".repeat(257).into(),
        category: ErrorCategory::Resource,
        failed_step: None,
        is_idempotent: None,
        execution_time_ms: 1,
        steps_done: vec![],
        memory_usage_percent: 93,
    };
    let drafts =
        view(&w, |v| decide::report(v, Report { attempt: v.core.attempt(), worker_id: "w".into(), body })).unwrap();
    let [analysis, failed] = &drafts[..] else { panic!("{drafts:?}") };
    assert_eq!((analysis.event_sequence, analysis.body.kind()), (failed.event_sequence, Kind::TaskFailureAnalysis));
    let Body::TaskFailed(b) = &failed.body else { panic!("{failed:?}") };
    assert_eq!((b.error_message.chars().count(), b.memory_usage_percent), (256, 93));
}

#[test]
fn only_terminal_reports_leave_a_trace_when_they_are_rejected() {
    let w = play("claim | submit t1 | assign t1");
    let attempt = w.core(1).attempt();
    let trace = |body| {
        decide::rejected_report(
            &Report { attempt, worker_id: "w".into(), body },
            task(1),
            ("t".into(), Default::default()),
            "not_live",
        )
    };
    assert!(trace(ReportBody::Starting { start_time: 0, memory_usage_percent: 0 }).is_none());
    assert!(trace(ReportBody::Declined { draining: true }).is_none());
    let hash = Sha256Hash::of(b"r");
    let success = ReportBody::Success {
        result_data_hash: hash,
        execution_time_ms: 0,
        steps_done: vec![],
        memory_usage_percent: 0,
    };
    let draft = trace(success).unwrap();
    let Body::RejectedReport(b) = &draft.body else { panic!("{draft:?}") };
    assert_eq!((draft.event_sequence.0, b.result_data_hash, b.reported), (0, Some(hash), ReportedStatus::Success));
}
