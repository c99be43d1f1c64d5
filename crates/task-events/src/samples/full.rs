//! Bodies with everything in them.

use super::{INCARNATION, NOW_MS, attempt, hash, step};
use crate::*;

fn created() -> TaskCreated {
    TaskCreated {
        task_type: "invoice.settle".into(),
        queue: "payments".into(),
        creator: "shop-frontend-of-the-northern-region".into(),
        priority: 9,
        deadline: Some(NOW_MS + 86_400_000),
        not_before: Some(NOW_MS + 1_000),
        payload_hash: hash("payload"),
        hash_form: HashForm::SaltedSha256,
        payload_ref: Some("s3://bucket/payloads/42".into()),
        business_key: Some("order-2027-000042".into()),
        labels: [("colour", "grün"), ("region", "north"), ("zähler", "3")]
            .map(|(k, v)| (k.into(), v.into()))
            .into_iter()
            .collect(),
        concurrency_key: Some("customer-7".into()),
        timeouts: Timeouts { start_to_close_ms: 600_000, schedule_to_start_ms: Some(60_000) },
        max_retries: 5,
        trace_given: true,
        key_hash: Some(hash("shop\0key")),
        request_hash: Some(hash("request")),
    }
}

fn closed() -> ClosedTask {
    ClosedTask {
        state: TaskState::FailedPermanently,
        run_no: RunNo(1),
        event_sequence: EventSequence(12),
        exec_epoch: ExecEpoch(2),
        execution_id: attempt(),
        created: Box::new(created()),
        created_at: NOW_MS - 60_000,
        steps: vec![step("reserve", 0), step("charge", 1)],
        handler_version: Some("2.1.0".into()),
        lease_left_ms: 12_000,
        history: bytes::Bytes::from_static(&[0x00, 0x01, 0x7f, 0x80, 0xff]),
        worker_id: "worker-eu-central-1a-0042-pool-b".into(),
        assigned_at: Some(NOW_MS - 50_000),
        start_time: Some(NOW_MS - 49_990),
        end_time: Some(NOW_MS - 10_000),
        memory_usage_percent: 93,
        retry_count: 3,
        lost_count: 1,
        result_data_hash: Some(hash("result")),
        error_code: Some("CARD_DECLINED".into()),
        error_message: Some("the bank said: nicht gedeckt (Ü-417)".into()),
        category: Some(ErrorCategory::Resource),
        failed_step: Some("charge".into()),
    }
}

fn skipped() -> SkippedStep {
    SkippedStep {
        step: "reserve".into(),
        rule: "declared-idempotent-with-stand-in".into(),
        evidence: vec![EventSequence(3), EventSequence(1_000)],
    }
}

pub(super) fn body(kind: Kind) -> Body {
    let execution_id = attempt();
    let reason: Text = "asked for by the customer – ticket 4711 ☎".into();
    let actor: Text = "ops@example.org".into();
    match kind {
        Kind::TaskCreated => Body::TaskCreated(Box::new(created())),
        Kind::TaskAssigned => Body::TaskAssigned(Box::new(TaskAssigned {
            worker_id: "worker-eu-central-1a-0042-pool-b".into(),
            incarnation: INCARNATION,
            execution_id,
            assignment_time: NOW_MS,
            timeout_config: TimeoutConfig { start_to_close_ms: 600_000, heartbeat_ms: 7_500, lease_ms: 22_500 },
            lease_max_ms: 120_000,
            optimistic_start: true,
            handler_version: "2.1.0".into(),
        })),
        Kind::TaskStarted => Body::TaskStarted(TaskStarted {
            execution_id,
            worker_id: "worker-eu-central-1a-0042-pool-b".into(),
            start_time: NOW_MS + 2,
            memory_usage_percent: 41,
        }),
        Kind::TaskStepCompleted => Body::TaskStepCompleted(TaskStepCompleted { execution_id, done: step("charge", 1) }),
        Kind::TaskReleased => Body::TaskReleased(TaskReleased {
            execution_id,
            reason: ReleaseReason::NeverDelivered,
            lease_left_ms: 15_000,
        }),
        Kind::TaskCompleted => Body::TaskCompleted(Box::new(TaskCompleted {
            execution_id,
            result_data_hash: hash("result"),
            execution_time_ms: 1_234,
            steps_done: vec![step("reserve", 0), step("charge", 1), step("tell-the-customer-by-letter", 2)],
            memory_usage_percent: 55,
        })),
        Kind::TaskFailed => Body::TaskFailed(Box::new(TaskFailed {
            execution_id,
            error_code: "CARD_DECLINED".into(),
            error_message: "the bank said: nicht gedeckt (Ü-417)".into(),
            category: ErrorCategory::OutcomeUnknown,
            failed_step: Some("charge".into()),
            is_idempotent: Some(true),
            execution_time_ms: 900,
            steps_done: vec![step("reserve", 0)],
            memory_usage_percent: 93,
        })),
        Kind::TaskLost => Body::TaskLost(Box::new(TaskLost {
            execution_id,
            last_sign_of_life: NOW_MS - 65_000,
            step_in_progress: Some("charge".into()),
            step_is_idempotent: Some(false),
            probes: vec![
                Probe { at: NOW_MS - 2_000, answer: "connection refused".into() },
                Probe { at: NOW_MS, answer: "no answer in 2000 ms".into() },
            ],
            lease_left_ms: 8_500,
        })),
        Kind::TaskTimedOut => Body::TaskTimedOut(TaskTimedOut {
            timeout: TimeoutKind::Deadline,
            execution_id: Some(execution_id),
            step_in_progress: Some("charge".into()),
            step_is_idempotent: Some(false),
            lease_left_ms: 8_500,
        }),
        Kind::TaskRetryApproved => Body::TaskRetryApproved(Box::new(TaskRetryApproved {
            not_before: Some(NOW_MS + 4_321),
            backoff_ms: 4_321,
            retry_count: 2,
            lost_count: 1,
            skip: vec![skipped()],
            prefer_workers: vec!["w2".into(), "w3".into()],
            avoid_workers: vec!["w1".into()],
            policy_version: 7,
        })),
        Kind::TaskFailedPermanently => Body::TaskFailedPermanently(TaskFailedPermanently {
            error_code: "CARD_DECLINED".into(),
            reason,
            review: true,
            policy_version: 7,
        }),
        Kind::TaskReplayPlanned => Body::TaskReplayPlanned(Box::new(TaskReplayPlanned {
            resume_from_step: Some("charge".into()),
            resume_index: 1,
            skip: vec![skipped(), skipped()],
            based_on: vec![EventSequence(1), EventSequence(3), EventSequence(4)],
            witness: Witness::LogOnly,
        })),
        Kind::TaskRetried => Body::TaskRetried(TaskRetried { not_before: Some(NOW_MS + 4_321) }),
        Kind::TaskCancelRequested => Body::TaskCancelRequested(TaskCancelRequested { actor, reason }),
        Kind::TaskCancelled => Body::TaskCancelled(TaskCancelled { worker_stopped: true, lease_left_ms: 9_000 }),
        Kind::TaskReplayRequested => Body::TaskReplayRequested(Box::new(TaskReplayRequested {
            carried: Box::new(closed()),
            replay_from: ReplayFrom::Step,
            from_step: Some("charge".into()),
            actor,
            reason,
            closed_at_offset: Offset(1_234_567),
        })),
        Kind::TaskReviewed => Body::TaskReviewed(Box::new(TaskReviewed {
            carried: Box::new(closed()),
            outcome: ReviewOutcome::Abandoned,
            actor,
            note: reason,
        })),
        Kind::RejectedReport => Body::RejectedReport(Box::new(RejectedReport {
            execution_id,
            reported: ReportedStatus::Failed,
            worker_id: "w1".into(),
            result_data_hash: Some(hash("result")),
            error_code: Some("E_LATE".into()),
            reason: "stale_epoch".into(),
        })),
        Kind::TaskOverdue => Body::TaskOverdue(TaskOverdue {
            state: TaskState::RetryApproved,
            waiting_for: "auto-replay".into(),
            since: NOW_MS - 30_000,
        }),
        Kind::TaskFailureAnalysis => Body::TaskFailureAnalysis(TaskFailureAnalysis {
            execution_id,
            category: ErrorCategory::NonRetryable,
            summary: "third refusal by the same bank".into(),
        }),
        Kind::TaskSkippedByPolicy => Body::TaskSkippedByPolicy(TaskSkippedByPolicy { skipped: skipped() }),
        Kind::WorkerQuarantined => Body::WorkerQuarantined(WorkerQuarantined {
            worker_id: "w1".into(),
            reason: "memory at 93 percent".into(),
            until: NOW_MS + 600_000,
        }),
        Kind::WorkerReleased => Body::WorkerReleased(WorkerReleased { worker_id: "w1".into(), actor, reason }),
        Kind::QueuePaused => Body::QueuePaused(QueuePaused { queue: "payments".into(), actor, reason }),
        Kind::QueueResumed => Body::QueueResumed(QueueResumed { queue: "payments".into(), actor, reason }),
        Kind::BacklogAlarm => Body::BacklogAlarm(BacklogAlarm {
            overdue_per_minute: 101,
            waiting_for: "task-engine".into(),
            open_tasks: 250_000,
        }),
        Kind::OwnershipClaimed => {
            Body::OwnershipClaimed(OwnershipClaimed { url: "http://127.0.0.1:7400".into(), claim_attempt: 1 })
        }
        Kind::OwnershipRenewed => Body::OwnershipRenewed(OwnershipRenewed {}),
        Kind::RulesActivated => Body::RulesActivated(RulesActivated { activated: RuleVersion(2) }),
        Kind::LogSealed => Body::LogSealed(LogSealed {
            note: "dualtrack/7\n65536\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n— audit-report-1 AAAA\n".into(),
        }),
    }
}
