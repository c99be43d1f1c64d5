//! Bodies of verdicts, of people and of control.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{category, closed_task, execution_id, hash, sequence, skipped_step, skips, text, u32_any, u63};
use crate::{
    BacklogAlarm, Offset, OwnershipClaimed, QueuePaused, QueueResumed, RejectedReport, ReplayFrom, ReportedStatus,
    ReviewOutcome, RuleVersion, RulesActivated, TaskCancelRequested, TaskCancelled, TaskFailedPermanently,
    TaskFailureAnalysis, TaskOverdue, TaskReplayPlanned, TaskReplayRequested, TaskRetried, TaskRetryApproved,
    TaskReviewed, TaskSkippedByPolicy, TaskState, Witness, WorkerQuarantined, WorkerReleased,
};

pub(super) fn retry_approved() -> impl Strategy<Value = TaskRetryApproved> {
    let counts = (u32_any(), u32_any(), u32_any());
    let workers = (vec(text(), 0..3), vec(text(), 0..3));
    (option::of(any::<i64>()), u63(), counts, skips(), workers).prop_map(
        |(not_before, backoff_ms, counts, skip, workers)| TaskRetryApproved {
            not_before,
            backoff_ms,
            retry_count: counts.0,
            lost_count: counts.1,
            skip,
            prefer_workers: workers.0,
            avoid_workers: workers.1,
            policy_version: counts.2,
        },
    )
}

pub(super) fn failed_permanently() -> impl Strategy<Value = TaskFailedPermanently> {
    (text(), text(), any::<bool>(), u32_any()).prop_map(|(error_code, reason, review, policy_version)| {
        TaskFailedPermanently { error_code, reason, review, policy_version }
    })
}

pub(super) fn replay_planned() -> impl Strategy<Value = TaskReplayPlanned> {
    (option::of(text()), u32_any(), skips(), vec(sequence(), 0..6), select(Witness::ALL)).prop_map(
        |(resume_from_step, resume_index, skip, based_on, witness)| TaskReplayPlanned {
            resume_from_step,
            resume_index,
            skip,
            based_on,
            witness,
        },
    )
}

pub(super) fn retried() -> impl Strategy<Value = TaskRetried> {
    option::of(any::<i64>()).prop_map(|not_before| TaskRetried { not_before })
}

pub(super) fn cancel_requested() -> impl Strategy<Value = TaskCancelRequested> {
    (text(), text()).prop_map(|(actor, reason)| TaskCancelRequested { actor, reason })
}

pub(super) fn cancelled() -> impl Strategy<Value = TaskCancelled> {
    (any::<bool>(), u63()).prop_map(|(worker_stopped, lease_left_ms)| TaskCancelled { worker_stopped, lease_left_ms })
}

pub(super) fn replay_requested() -> impl Strategy<Value = TaskReplayRequested> {
    (closed_task(), select(ReplayFrom::ALL), option::of(text()), text(), text(), u63()).prop_map(
        |(carried, replay_from, from_step, actor, reason, offset)| TaskReplayRequested {
            carried: Box::new(carried),
            replay_from,
            from_step,
            actor,
            reason,
            closed_at_offset: Offset(offset),
        },
    )
}

pub(super) fn reviewed() -> impl Strategy<Value = TaskReviewed> {
    (closed_task(), select(ReviewOutcome::ALL), text(), text())
        .prop_map(|(carried, outcome, actor, note)| TaskReviewed { carried: Box::new(carried), outcome, actor, note })
}

pub(super) fn rejected_report() -> impl Strategy<Value = RejectedReport> {
    (execution_id(), select(ReportedStatus::ALL), text(), option::of(hash()), option::of(text()), text()).prop_map(
        |(execution_id, reported, worker_id, result_data_hash, error_code, reason)| RejectedReport {
            execution_id,
            reported,
            worker_id,
            result_data_hash,
            error_code,
            reason,
        },
    )
}

pub(super) fn overdue() -> impl Strategy<Value = TaskOverdue> {
    (select(TaskState::ALL), text(), any::<i64>()).prop_map(|(state, waiting_for, since)| TaskOverdue {
        state,
        waiting_for,
        since,
    })
}

pub(super) fn failure_analysis() -> impl Strategy<Value = TaskFailureAnalysis> {
    (execution_id(), category(), text()).prop_map(|(execution_id, category, summary)| TaskFailureAnalysis {
        execution_id,
        category,
        summary,
    })
}

pub(super) fn skipped_by_policy() -> impl Strategy<Value = TaskSkippedByPolicy> {
    skipped_step().prop_map(|skipped| TaskSkippedByPolicy { skipped })
}

pub(super) fn quarantined() -> impl Strategy<Value = WorkerQuarantined> {
    (text(), text(), any::<i64>()).prop_map(|(worker_id, reason, until)| WorkerQuarantined { worker_id, reason, until })
}

pub(super) fn worker_released() -> impl Strategy<Value = WorkerReleased> {
    (text(), text(), text()).prop_map(|(worker_id, actor, reason)| WorkerReleased { worker_id, actor, reason })
}

pub(super) fn queue_paused() -> impl Strategy<Value = QueuePaused> {
    (text(), text(), text()).prop_map(|(queue, actor, reason)| QueuePaused { queue, actor, reason })
}

pub(super) fn queue_resumed() -> impl Strategy<Value = QueueResumed> {
    (text(), text(), text()).prop_map(|(queue, actor, reason)| QueueResumed { queue, actor, reason })
}

pub(super) fn backlog_alarm() -> impl Strategy<Value = BacklogAlarm> {
    (u63(), text(), u63()).prop_map(|(overdue_per_minute, waiting_for, open_tasks)| BacklogAlarm {
        overdue_per_minute,
        waiting_for,
        open_tasks,
    })
}

pub(super) fn claimed() -> impl Strategy<Value = OwnershipClaimed> {
    (text(), u63()).prop_map(|(url, claim_attempt)| OwnershipClaimed { url, claim_attempt })
}

pub(super) fn rules_activated() -> impl Strategy<Value = RulesActivated> {
    u32_any().prop_map(|v| RulesActivated { activated: RuleVersion(v) })
}
