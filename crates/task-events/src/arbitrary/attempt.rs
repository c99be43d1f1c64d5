//! Bodies of [`crate::bodies::attempt`].

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{category, execution_id, hash, incarnation, labels, probe, step, steps, text, u32_any, u63};
use crate::{
    HashForm, ReleaseReason, TaskAssigned, TaskCompleted, TaskCreated, TaskFailed, TaskLost, TaskReleased, TaskStarted,
    TaskStepCompleted, TaskTimedOut, TimeoutConfig, TimeoutKind, Timeouts,
};

pub(super) fn created() -> impl Strategy<Value = TaskCreated> {
    let names = (text(), text(), text(), option::of(text()), option::of(text()), labels(), option::of(text()));
    let times = (option::of(any::<i64>()), option::of(any::<i64>()), u63(), option::of(u63()));
    let hashes = (hash(), select(HashForm::ALL), option::of(hash()), option::of(hash()));
    (names, times, hashes, 0..=9_u8, u32_any(), any::<bool>()).prop_map(
        |(names, times, hashes, priority, max_retries, trace_given)| TaskCreated {
            task_type: names.0,
            queue: names.1,
            creator: names.2,
            priority,
            deadline: times.0,
            not_before: times.1,
            payload_hash: hashes.0,
            hash_form: hashes.1,
            payload_ref: names.3,
            business_key: names.4,
            labels: names.5,
            concurrency_key: names.6,
            timeouts: Timeouts { start_to_close_ms: times.2, schedule_to_start_ms: times.3 },
            max_retries,
            trace_given,
            key_hash: hashes.2,
            request_hash: hashes.3,
        },
    )
}

pub(super) fn assigned() -> impl Strategy<Value = TaskAssigned> {
    let limits = (u63(), u63(), u63(), u63());
    (text(), incarnation(), execution_id(), any::<i64>(), limits, any::<bool>(), text()).prop_map(
        |(worker_id, incarnation, execution_id, assignment_time, limits, optimistic_start, handler_version)| {
            TaskAssigned {
                worker_id,
                incarnation,
                execution_id,
                assignment_time,
                timeout_config: TimeoutConfig {
                    start_to_close_ms: limits.0,
                    heartbeat_ms: limits.1,
                    lease_ms: limits.2,
                },
                lease_max_ms: limits.3,
                optimistic_start,
                handler_version,
            }
        },
    )
}

pub(super) fn started() -> impl Strategy<Value = TaskStarted> {
    (execution_id(), text(), any::<i64>(), u32_any()).prop_map(
        |(execution_id, worker_id, start_time, memory_usage_percent)| TaskStarted {
            execution_id,
            worker_id,
            start_time,
            memory_usage_percent,
        },
    )
}

pub(super) fn step_completed() -> impl Strategy<Value = TaskStepCompleted> {
    (execution_id(), step()).prop_map(|(execution_id, done)| TaskStepCompleted { execution_id, done })
}

pub(super) fn released() -> impl Strategy<Value = TaskReleased> {
    (execution_id(), select(ReleaseReason::ALL), u63()).prop_map(|(execution_id, reason, lease_left_ms)| TaskReleased {
        execution_id,
        reason,
        lease_left_ms,
    })
}

pub(super) fn completed() -> impl Strategy<Value = TaskCompleted> {
    (execution_id(), hash(), u63(), steps(), u32_any()).prop_map(
        |(execution_id, result_data_hash, execution_time_ms, steps_done, memory_usage_percent)| TaskCompleted {
            execution_id,
            result_data_hash,
            execution_time_ms,
            steps_done,
            memory_usage_percent,
        },
    )
}

pub(super) fn failed() -> impl Strategy<Value = TaskFailed> {
    let step = (option::of(text()), option::of(any::<bool>()));
    (execution_id(), text(), text(), category(), step, u63(), steps(), u32_any()).prop_map(
        |(execution_id, error_code, error_message, category, step, execution_time_ms, steps_done, memory)| TaskFailed {
            execution_id,
            error_code,
            error_message,
            category,
            failed_step: step.0,
            is_idempotent: step.1,
            execution_time_ms,
            steps_done,
            memory_usage_percent: memory,
        },
    )
}

pub(super) fn lost() -> impl Strategy<Value = TaskLost> {
    let step = (option::of(text()), option::of(any::<bool>()));
    (execution_id(), any::<i64>(), step, vec(probe(), 0..3), u63()).prop_map(
        |(execution_id, last_sign_of_life, step, probes, lease_left_ms)| TaskLost {
            execution_id,
            last_sign_of_life,
            step_in_progress: step.0,
            step_is_idempotent: step.1,
            probes,
            lease_left_ms,
        },
    )
}

pub(super) fn timed_out() -> impl Strategy<Value = TaskTimedOut> {
    let step = (option::of(text()), option::of(any::<bool>()));
    (select(TimeoutKind::ALL), option::of(execution_id()), step, u63()).prop_map(
        |(timeout, execution_id, step, lease_left_ms)| TaskTimedOut {
            timeout,
            execution_id,
            step_in_progress: step.0,
            step_is_idempotent: step.1,
            lease_left_ms,
        },
    )
}
