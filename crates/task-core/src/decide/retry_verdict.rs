//! TaskRetryApproved or TaskFailedPermanently: may it run again? (task-engine)

use task_events::{Body, ErrorCategory, Kind, TaskFailedPermanently, TaskRetryApproved, TaskState, Text};

use super::{Draft, Refusal, View};
use crate::core_state::MAX_LOST;

/// Retry policy of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Recorded with every verdict (invariant 12).
    pub version: u32,
    /// Ceiling of the first backoff, ms; doubled with every further one.
    pub base_ms: u64,
    /// Ceiling of all of them, ms.
    pub cap_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { version: 1, base_ms: 1_000, cap_ms: 300_000 }
    }
}

/// Exponential backoff with full jitter: uniform in 0..=min(cap, base × 2^tried). `jitter` is a
/// uniform random number of the caller.
pub fn backoff_ms(policy: RetryPolicy, tried: u32, jitter: u64) -> u64 {
    let doubled = policy.base_ms.saturating_mul(1u64.checked_shl(tried.min(63)).unwrap_or(u64::MAX));
    let ceiling = policy.cap_ms.min(doubled);
    // Multiply-shift instead of a remainder: no bias worth speaking of, no division by zero.
    ((u128::from(jitter) * (u128::from(ceiling) + 1)) >> 64) as u64
}

/// The verdict on a FAILED or LOST task.
pub fn retry_verdict(view: View<'_>, policy: RetryPolicy, now_ms: i64, jitter: u64) -> Result<Draft, Refusal> {
    if view.core.cancel_requested {
        return Err(Refusal::CancelRequested(Kind::TaskRetryApproved));
    }
    if let Some((reason, review)) = end_of_it(view, now_ms) {
        return view.next(Body::TaskFailedPermanently(TaskFailedPermanently {
            error_code: view.row.error_code.clone().unwrap_or_default(),
            reason: Text::const_new(reason),
            review,
            policy_version: policy.version,
        }));
    }
    let lost = view.core.state == TaskState::Lost;
    let (retry_count, lost_count) = (view.core.retry_count + u32::from(!lost), view.core.lost_count + u32::from(lost));
    let tried = if lost { view.core.lost_count } else { view.core.retry_count };
    let backoff = backoff_ms(policy, tried, jitter);
    let avoid = Some(view.row.worker_id.clone()).filter(|w| lost && !w.is_empty());
    view.next(Body::TaskRetryApproved(Box::new(TaskRetryApproved {
        not_before: Some(now_ms.saturating_add(i64::try_from(backoff).unwrap_or(i64::MAX))),
        backoff_ms: backoff,
        retry_count,
        lost_count,
        skip: Vec::new(),
        prefer_workers: Vec::new(),
        avoid_workers: avoid.into_iter().collect(),
        policy_version: policy.version,
    })))
}

// Why it may not run again, and whether people should look at it.
fn end_of_it(view: View<'_>, now_ms: i64) -> Option<(&'static str, bool)> {
    let row = view.row;
    // Whether a step that must not run twice did its work, neither silence nor a time limit tells.
    let cut_off = view.core.state == TaskState::Lost || row.category == Some(ErrorCategory::Timeout);
    // One whose output is kept did it, and is not run again.
    let done = |step: &Text| row.kept_steps().iter().any(|kept| kept.done.step == *step);
    let unfinished = row.failed_step.as_ref().is_some_and(|step| !done(step));
    let unknown = cut_off && unfinished && row.failed_step_idempotent == Some(false);
    if view.core.state == TaskState::Lost {
        if unknown {
            return Some(("outcome_unknown", true));
        }
        if view.core.lost_count >= MAX_LOST {
            return Some(("lost_too_often", true));
        }
    } else {
        if row.error_code.as_deref() == Some("TIMEOUT_DEADLINE") {
            return Some(("deadline", unknown));
        }
        if unknown {
            return Some(("outcome_unknown", true));
        }
        match row.category {
            Some(ErrorCategory::NonRetryable) => return Some(("non_retryable", true)),
            Some(ErrorCategory::OutcomeUnknown) => return Some(("outcome_unknown", true)),
            Some(ErrorCategory::Transient | ErrorCategory::Resource | ErrorCategory::Timeout) | None => {}
        }
        if view.core.retry_count >= view.core.max_retries {
            return Some(("retries_exhausted", true));
        }
    }
    row.created.deadline.is_some_and(|d| d <= now_ms).then_some(("deadline", false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_the_cap_with_full_jitter() {
        let p = RetryPolicy { version: 1, base_ms: 100, cap_ms: 1_000 };
        assert_eq!(
            [0, 1, 2, 3, 4, 63, 64, u32::MAX].map(|n| backoff_ms(p, n, u64::MAX)),
            [100, 200, 400, 800, 1000, 1000, 1000, 1000]
        );
        assert_eq!(backoff_ms(p, 5, 0), 0);
        assert_eq!(backoff_ms(p, 0, u64::MAX / 2), 50);
        assert_eq!(backoff_ms(RetryPolicy { base_ms: 0, ..p }, 9, u64::MAX), 0);
    }
}
