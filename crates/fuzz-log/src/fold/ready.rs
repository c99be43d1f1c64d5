//! Deciders on whatever state the log led to: none panics, and what one proposes is accepted.

use task_core::decide::{self, Assign, Draft, Lost, Refusal, Report, ReportBody, RetryPolicy, Stamp, View};
use task_core::{PartitionState, Record, Slot, Verdict};
use task_events::{
    ErrorCategory, EventId, Incarnation, OwnerSeq, Producer, RecordKey, ReleaseReason, RuleVersion, Service,
    Sha256Hash, TimeoutKind, Witness, writer_of,
};

const TASKS: usize = 4;

/// Every decider on some open tasks, others each time.
pub fn deciders(state: &PartitionState) -> Result<(), String> {
    let first = state.next_offset.0 as usize % state.tasks.len().max(1);
    for slot in state.tasks.iter().cycle().skip(first).take(TASKS.min(state.tasks.len())) {
        for now_ms in [i64::MIN, 0, i64::MAX] {
            for proposed in proposals(slot, now_ms).into_iter().flatten() {
                try_on(state, &proposed)?;
            }
        }
    }
    Ok(())
}

fn try_on(state: &PartitionState, drafts: &[Draft]) -> Result<(), String> {
    let mut after = state.clone();
    for draft in drafts {
        let service = writer_of(draft.body.kind());
        let owner = service == Service::Coordinator;
        let Some(seq) = after.owner_seq.next() else { return Ok(()) };
        let event = draft.clone().stamped(Stamp {
            event_id: EventId::default(),
            partition_epoch: owner.then_some(after.epoch),
            owner_seq: owner.then_some(OwnerSeq(seq.0)),
            event_time: 0,
            causation_id: None,
            producer: Producer { service, instance: "i".into(), incarnation: Incarnation(1) },
            rule_version: RuleVersion(1),
        });
        let key = RecordKey::of(&event, after.partition);
        let record = Record { offset: after.next_offset, broker_ms: 0, key, event };
        // Nobody decides in a partition that nobody owns.
        let owned = after.epoch.0 > 0;
        if let (Verdict::Rejected(reason), true) = (after.apply(&record), owned) {
            return Err(format!("proposed, but rejected as {reason}: {draft:?}"));
        }
    }
    Ok(())
}

fn proposals(slot: &Slot, now_ms: i64) -> Vec<Option<Vec<Draft>>> {
    let Some(row) = slot.row.as_deref() else { return Vec::new() };
    let view = View { core: &slot.core, row };
    let one = |draft: Result<Draft, Refusal>| draft.ok().map(|d| vec![d]);
    let to = Assign {
        worker_id: "w1".into(),
        incarnation: Incarnation(1),
        handler_version: "1".into(),
        lease_ms: 1,
        lease_max_ms: 1,
        heartbeat_ms: 1,
        optimistic_start: false,
    };
    let lost = Lost { step_in_progress: Some(("s".into(), false)), ..Lost::default() };
    let due = decide::due_timeout(view).map(|(_, kind)| kind);
    let report = |body| Report { attempt: slot.core.attempt(), worker_id: "w1".into(), body };
    let reports = [
        ReportBody::Starting { start_time: now_ms, memory_usage_percent: 1 },
        ReportBody::Declined { draining: true },
        ReportBody::Success {
            result_data_hash: Sha256Hash::default(),
            execution_time_ms: 1,
            steps_done: Vec::new(),
            memory_usage_percent: 1,
        },
        ReportBody::Failure {
            error_code: "E".into(),
            error_message: "x".repeat(300).into(),
            category: ErrorCategory::Transient,
            failed_step: None,
            is_idempotent: None,
            execution_time_ms: 1,
            steps_done: Vec::new(),
            memory_usage_percent: 1,
        },
    ];
    let mut out = vec![
        one(decide::assign(view, to, now_ms)),
        one(decide::release(view, ReleaseReason::Declined, 1)),
        one(decide::lost(view, lost)),
        one(decide::timed_out(view, due.unwrap_or(TimeoutKind::Deadline), Some(("s".into(), false)), 1)),
        one(decide::retried(view)),
        one(decide::cancel_request(view, "a".into(), "r".into())),
        one(decide::cancelled(view, false, 1)),
        one(decide::retry_verdict(view, RetryPolicy::default(), now_ms, u64::MAX)),
        one(decide::replay_plan(view, Witness::LogOnly)),
        decide::overdue(view, now_ms, None).map(|d| vec![d]),
    ];
    out.extend(reports.into_iter().map(report).map(|r| {
        let counts = decide::classify(view, &r) == decide::Fate::Counts;
        decide::report(view, r).ok().filter(|_| counts)
    }));
    out
}
