//! Bodies with nothing in them that can be left out.

use super::{INCARNATION, attempt, hash};
use crate::*;

pub(super) fn created() -> TaskCreated {
    TaskCreated {
        task_type: "noop".into(),
        queue: "noop".into(),
        creator: "default".into(),
        priority: 4,
        deadline: None,
        not_before: None,
        payload_hash: hash("{}"),
        hash_form: HashForm::PlainSha256,
        payload_ref: None,
        business_key: None,
        labels: Default::default(),
        concurrency_key: None,
        timeouts: Timeouts { start_to_close_ms: 3_600_000, schedule_to_start_ms: None },
        max_retries: 3,
        trace_given: false,
        key_hash: None,
        request_hash: None,
    }
}

fn closed() -> ClosedTask {
    ClosedTask {
        state: TaskState::Success,
        run_no: RunNo(1),
        event_sequence: EventSequence(4),
        exec_epoch: ExecEpoch(1),
        execution_id: ExecutionId::NONE,
        created: Box::new(created()),
        created_at: super::NOW_MS,
        steps: vec![],
        handler_version: None,
        lease_left_ms: 0,
        history: bytes::Bytes::new(),
        worker_id: Text::default(),
        assigned_at: None,
        start_time: None,
        end_time: None,
        memory_usage_percent: 0,
        retry_count: 0,
        lost_count: 0,
        result_data_hash: None,
        error_code: None,
        error_message: None,
        category: None,
        failed_step: None,
    }
}

pub(super) fn body(kind: Kind) -> Body {
    let execution_id = attempt();
    let nothing = Text::default;
    match kind {
        Kind::TaskCreated => Body::TaskCreated(Box::new(created())),
        Kind::TaskAssigned => Body::TaskAssigned(Box::new(TaskAssigned {
            worker_id: "w1".into(),
            incarnation: INCARNATION,
            execution_id,
            assignment_time: super::NOW_MS,
            timeout_config: TimeoutConfig { start_to_close_ms: 3_600_000, heartbeat_ms: 5_000, lease_ms: 15_000 },
            lease_max_ms: 60_000,
            optimistic_start: false,
            handler_version: nothing(),
        })),
        Kind::TaskStarted => Body::TaskStarted(TaskStarted {
            execution_id,
            worker_id: "w1".into(),
            start_time: super::NOW_MS,
            memory_usage_percent: 0,
        }),
        Kind::TaskStepCompleted => {
            Body::TaskStepCompleted(TaskStepCompleted { execution_id, done: super::step("s", 0) })
        }
        Kind::TaskReleased => {
            Body::TaskReleased(TaskReleased { execution_id, reason: ReleaseReason::Drain, lease_left_ms: 0 })
        }
        Kind::TaskCompleted => Body::TaskCompleted(Box::new(TaskCompleted {
            execution_id,
            result_data_hash: hash(""),
            execution_time_ms: 0,
            steps_done: vec![],
            memory_usage_percent: 0,
        })),
        Kind::TaskFailed => Body::TaskFailed(Box::new(TaskFailed {
            execution_id,
            error_code: "E".into(),
            error_message: nothing(),
            category: ErrorCategory::Transient,
            failed_step: None,
            is_idempotent: None,
            execution_time_ms: 0,
            steps_done: vec![],
            memory_usage_percent: 0,
        })),
        Kind::TaskLost => Body::TaskLost(Box::new(TaskLost {
            execution_id,
            last_sign_of_life: super::NOW_MS,
            step_in_progress: None,
            step_is_idempotent: None,
            probes: vec![],
            lease_left_ms: 0,
        })),
        Kind::TaskTimedOut => Body::TaskTimedOut(TaskTimedOut {
            timeout: TimeoutKind::ScheduleToStart,
            execution_id: None,
            step_in_progress: None,
            step_is_idempotent: None,
            lease_left_ms: 0,
        }),
        Kind::TaskRetryApproved => Body::TaskRetryApproved(Box::new(TaskRetryApproved {
            not_before: None,
            backoff_ms: 0,
            retry_count: 1,
            lost_count: 0,
            skip: vec![],
            prefer_workers: vec![],
            avoid_workers: vec![],
            policy_version: 1,
        })),
        Kind::TaskFailedPermanently => Body::TaskFailedPermanently(TaskFailedPermanently {
            error_code: "E".into(),
            reason: nothing(),
            review: false,
            policy_version: 1,
        }),
        Kind::TaskReplayPlanned => Body::TaskReplayPlanned(Box::new(TaskReplayPlanned {
            resume_from_step: None,
            resume_index: 0,
            skip: vec![],
            based_on: vec![],
            witness: Witness::SnapshotAndLog,
        })),
        Kind::TaskRetried => Body::TaskRetried(TaskRetried { not_before: None }),
        Kind::TaskCancelRequested => {
            Body::TaskCancelRequested(TaskCancelRequested { actor: "a".into(), reason: nothing() })
        }
        Kind::TaskCancelled => Body::TaskCancelled(TaskCancelled { worker_stopped: false, lease_left_ms: 0 }),
        Kind::TaskReplayRequested => Body::TaskReplayRequested(Box::new(TaskReplayRequested {
            carried: Box::new(closed()),
            replay_from: ReplayFrom::Failure,
            from_step: None,
            actor: "a".into(),
            reason: nothing(),
            closed_at_offset: Offset(0),
        })),
        Kind::TaskReviewed => Body::TaskReviewed(Box::new(TaskReviewed {
            carried: Box::new(closed()),
            outcome: ReviewOutcome::Accepted,
            actor: "a".into(),
            note: nothing(),
        })),
        Kind::RejectedReport => Body::RejectedReport(Box::new(RejectedReport {
            execution_id,
            reported: ReportedStatus::Success,
            worker_id: "w1".into(),
            result_data_hash: None,
            error_code: None,
            reason: nothing(),
        })),
        Kind::TaskOverdue => Body::TaskOverdue(TaskOverdue {
            state: TaskState::Created,
            waiting_for: "worker".into(),
            since: super::NOW_MS,
        }),
        Kind::TaskFailureAnalysis => Body::TaskFailureAnalysis(TaskFailureAnalysis {
            execution_id,
            category: ErrorCategory::Transient,
            summary: nothing(),
        }),
        Kind::TaskSkippedByPolicy => Body::TaskSkippedByPolicy(TaskSkippedByPolicy {
            skipped: SkippedStep { step: "s".into(), rule: "r".into(), evidence: vec![] },
        }),
        Kind::WorkerQuarantined => Body::WorkerQuarantined(WorkerQuarantined {
            worker_id: "w1".into(),
            reason: nothing(),
            until: super::NOW_MS,
        }),
        Kind::WorkerReleased => {
            Body::WorkerReleased(WorkerReleased { worker_id: "w1".into(), actor: "a".into(), reason: nothing() })
        }
        Kind::QueuePaused => Body::QueuePaused(QueuePaused { queue: "q".into(), actor: "a".into(), reason: nothing() }),
        Kind::QueueResumed => {
            Body::QueueResumed(QueueResumed { queue: "q".into(), actor: "a".into(), reason: nothing() })
        }
        Kind::BacklogAlarm => {
            Body::BacklogAlarm(BacklogAlarm { overdue_per_minute: 0, waiting_for: "worker".into(), open_tasks: 0 })
        }
        Kind::OwnershipClaimed => Body::OwnershipClaimed(OwnershipClaimed { url: nothing(), claim_attempt: 1 }),
        Kind::OwnershipRenewed => Body::OwnershipRenewed(OwnershipRenewed {}),
        Kind::RulesActivated => Body::RulesActivated(RulesActivated { activated: RuleVersion(1) }),
        Kind::LogSealed => Body::LogSealed(LogSealed { note: nothing() }),
    }
}
